package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const leaderSet = `
apiVersion: v1
kind: Service
metadata: {name: boss}
spec:
  clusterIP: None
  selector: {app: led, stead.dev/role: leader}
---
apiVersion: stead/v1
kind: StatefulSet
metadata: {name: led}
spec:
  replicas: 3
  podManagementPolicy: Parallel
  updateStrategy: {rollingUpdate: {order: LeaderLast}}
  selector: {matchLabels: {app: led}}
  template:
    metadata: {labels: {app: led}, annotations: {version: "%d"}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, command, wait]
        stepDown: {exec: {command: [/box, command, await, /data/handed, /data/asked]}, timeoutSeconds: 60}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

const bossName = "boss.default.svc.cluster.local"

// TestALeaderIsUpdatedLastAndStepsDown: the name of a Service that selects the leader leads to the one member that leads, or to
// nobody, at every moment of a rolling update; the leader is updated after the others, when it has stepped down.
func TestALeaderIsUpdatedLastAndStepsDown(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("led", fmt.Sprintf(leaderSet, 1), "--wait", "--timeout", patience)
	before := map[string]member{}
	for n := range 3 {
		name := fmt.Sprint("led-", n)
		before[name] = l.mustMember(name)
	}
	claims := func(name, term string) {
		t.Helper()
		l.stead("exec", name, "--", "/box", "command", "write", "/run/stead/self/leader", term)
	}
	address := func(name string) string { return l.mustMember(name).Status.Address }
	data := func(name, file string) string {
		return l.path("agent/volumes/default/led", "data-"+strings.TrimPrefix(name, "led-"), "data", file)
	}

	if got, err := l.dig(bossName); got != "" || err != nil {
		t.Fatalf("nobody leads, and %s is %q, %v", bossName, got, err)
	}
	claims("led-2", "1")
	l.waitDig(bossName, address("led-2"))
	if out := l.stead("get", "members"); strings.Count(out, "leader") != 1 {
		t.Errorf("want one leader:\n%s", out)
	}

	var group sync.WaitGroup
	ended, asked := make(chan struct{}), 0
	group.Go(func() { // the name leads to one or to nobody, whatever happens
		for {
			select {
			case <-ended:
				return
			default:
			}
			if got, err := l.dig(bossName); err == nil && len(strings.Fields(got)) > 1 {
				t.Errorf("two lead: %q", got)
			}
			asked++
		}
	})

	l.apply("led", fmt.Sprintf(leaderSet, 2))
	for _, name := range []string{"led-1", "led-0"} {
		was := before[name]
		l.waitReady(name, &was)
		if now := l.mustMember("led-2"); now.Status.Token != before["led-2"].Status.Token {
			t.Fatalf("led-2, which leads, was updated before %s", name)
		}
	}
	l.eventually(time.Minute, "led-2 is asked to step down", func() error {
		_, err := os.Stat(data("led-2", "asked"))
		return err
	})
	for _, name := range []string{"led-0", "led-1"} {
		if _, err := os.Stat(data(name, "asked")); err == nil {
			t.Errorf("%s was asked to step down, and did not lead", name)
		}
	}
	l.waitDig(bossName, "") // it is to stop, and is not ready any more
	claims("led-1", "2")
	l.waitDig(bossName, address("led-1"))
	if now := l.mustMember("led-2"); now.Status.Token != before["led-2"].Status.Token {
		t.Error("led-2 was stopped before its stepDown hook had returned")
	}
	if err := os.WriteFile(data("led-2", "handed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	was := before["led-2"]
	l.waitReady("led-2", &was)
	l.stead("rollout", "status", "led", "--timeout", patience)
	l.waitDig(bossName, address("led-1"))
	close(ended)
	group.Wait()
	t.Logf("asked %d times", asked)
	if asked == 0 {
		t.Error("the name was not asked for")
	}
	if text, err := os.ReadFile(data("led-2", "asked")); err != nil || strings.Count(string(text), "begun") != 1 {
		t.Errorf("led-2 was asked to step down %q, %v; want once", text, err)
	}
}

const probedSet = `
apiVersion: v1
kind: Service
metadata: {name: boss}
spec:
  clusterIP: None
  selector: {app: probed, stead.dev/role: leader}
---
apiVersion: stead/v1
kind: StatefulSet
metadata: {name: probed}
spec:
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: probed}}
  template:
    metadata: {labels: {app: probed}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, command, wait]
        leaderProbe: {exec: {command: [/box, command, cat, /data/term]}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// TestALeaderProbeTellsWhoLeads: a member leads while its probe succeeds, in the term that its command writes, also when its agent is killed.
func TestALeaderProbeTellsWhoLeads(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("probed", probedSet, "--wait", "--timeout", patience)
	address := func(name string) string { return l.mustMember(name).Status.Address }
	term := func(name string) string {
		return l.path("agent/volumes/default/probed", "data-"+strings.TrimPrefix(name, "probed-"), "data", "term")
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(term(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := l.dig(bossName); got != "" || err != nil {
		t.Fatalf("nobody leads, and %s is %q, %v", bossName, got, err)
	}
	write("probed-1", "1\n")
	l.waitDig(bossName, address("probed-1"))
	write("probed-0", "2\n")
	l.waitDig(bossName, address("probed-0"))
	_ = l.agent.signal(syscall.SIGKILL)
	l.startAgent()
	l.waitDig(bossName, address("probed-0"))
	if out := l.stead("get", "members"); strings.Count(out, "leader") != 1 {
		t.Errorf("want one leader:\n%s", out)
	}
	if err := os.Remove(term("probed-0")); err != nil {
		t.Fatal(err)
	}
	l.waitDig(bossName, address("probed-1"))
}
