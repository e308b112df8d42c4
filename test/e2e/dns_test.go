package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const dnsSet = `
apiVersion: v1
kind: Service
metadata: {name: name}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {app: name}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: name}
spec:
  serviceName: name
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: name}}
  template:
    metadata: {labels: {app: name}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: name, image: "stead.local/tool:1", imagePullPolicy: Never, command: [/box, life, --lock=]}]
`

// asker asks the lab's DNS, until saw is called, for the addresses that members of a set have, and for the set's service.
type asker struct {
	l *Lab
	p *process
}

func (l *Lab) startAsker(set string, members ...string) *asker {
	l.t.Helper()
	var all, names []string
	fqdn := func(name string) string { return name + "." + set + ".default.svc.cluster.local" }
	for _, name := range members {
		m := l.mustMember(name)
		all = append(all, m.Status.Address)
		names = append(names, fqdn(name)+"="+m.Status.Address)
	}
	slices.Sort(all)
	names = append(names, set+".default.svc.cluster.local="+strings.Join(all, ","))
	return &asker{l, l.start(fmt.Sprint("asker.", len(l.all)), append([]string{toolBinary, "ask", "--server", gateway + ":53"}, names...)...)}
}

// saw ends the asking and fails the test if a question was lost, or answered wrongly.
func (a *asker) saw() {
	a.l.t.Helper()
	end(a.l.t, a.p)
	var seen struct {
		Asked, Lost int
		Wrong       []string
		Slow        float64
	}
	if err := json.Unmarshal([]byte(a.p.said()), &seen); err != nil {
		a.l.t.Fatalf("the asker: %v\n%s", err, a.p.said())
	}
	a.l.t.Logf("%d questions, the slowest %.3f s", seen.Asked, seen.Slow)
	if seen.Asked < 100 || seen.Lost > 0 || len(seen.Wrong) > 0 {
		a.l.t.Errorf("of %d questions %d were not answered; wrong: %q", seen.Asked, seen.Lost, seen.Wrong)
	}
}

// nameServers are the processes of the lab's name servers.
func (l *Lab) nameServers() []int { return l.living("stead-dns\x00", l.path("run", "dns")) }

// oneNameServer waits until one runs that was not there before.
func (l *Lab) oneNameServer(before int) (pid int) {
	l.t.Helper()
	l.eventually(time.Minute, "another name server runs alone", func() error {
		now := l.nameServers()
		if len(now) != 1 || now[0] == before {
			return fmt.Errorf("name servers %v, before %d", now, before)
		}
		pid = now[0]
		return nil
	})
	return pid
}

// The name server of a host outlives its agent: agent and server are killed, stopped, started, configured
// otherwise, and no question is lost, or answered otherwise.
func TestDNSAnswersWithoutAGap(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("name", dnsSet, "--wait", "--timeout", patience)
	pid := l.oneNameServer(0)
	a := l.startAsker("name", "name-0", "name-1")
	address := l.mustMember("name-1").Status.Address
	askAway := func() { // as members do, while nobody else is there
		t.Helper()
		if got, err := l.dig("name-1.name.default.svc.cluster.local"); err != nil || got != address {
			t.Errorf("dig says %q, %v; want %s", got, err, address)
		}
	}
	t.Log("the agent is killed")
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	askAway()
	l.startAgent()
	t.Log("it is stopped, and started with one more address")
	end(t, l.agent)
	askAway()
	l.startAgent("--dns-listen", "127.0.0.9:5353")
	pid = l.oneNameServer(pid)
	t.Log("all are killed at once")
	for _, p := range []*process{l.agent, l.server} {
		if err := p.signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	askAway()
	l.startServer()
	l.startAgent()
	pid = l.oneNameServer(pid)
	a.saw()
	t.Log("the name server is killed, and started again")
	l.kill(pid)
	l.oneNameServer(pid)
	askAway()
}
