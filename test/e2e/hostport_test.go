package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const hostPortSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: net}
spec:
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: net}}
  template:
    metadata: {labels: {app: net}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, hold, "0.0.0.0:80"]
        ports: [{containerPort: 80, hostPort: 8080}]
        readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}
`

// waitForAPort waits until a third member of the set net says that each host has its host port taken by another.
func waitForAPort(hosts []*Lab) {
	l := hosts[0]
	l.t.Helper()
	l.eventually(time.Minute, "a third member waits for a port", func() error {
		out, err := l.trySteadFor(time.Minute, "explain", "net-2")
		if err != nil || strings.Count(out, "has its host port 8080/TCP taken by default/net-") != len(hosts) {
			return fmt.Errorf("%v: it says\n%s", err, out)
		}
		return nil
	})
}

// TestAMachineOutsideReachesAHostPort: it knows the hosts alone, no route and no name. Then one of the hosts is drained.
func TestAMachineOutsideReachesAHostPort(t *testing.T) {
	t.Parallel()
	hosts := newHosts(t, 2)
	l := hosts[0]
	client := l.Name + "-cl"
	l.run("ip", "netns", "add", client)
	t.Cleanup(func() { l.run("ip", "netns", "del", client) })
	for _, line := range []string{
		"link add up0 type veth peer name client netns " + l.Name + "-sw", "address add 172.31.9.98/24 dev up0", "link set up0 up",
	} {
		l.run("ip", append([]string{"-n", client}, strings.Fields(line)...)...)
	}
	l.run("ip", "-n", l.Name+"-sw", "link", "set", "client", "master", "br0", "up")
	dial := func(host int) (string, error) {
		return l.try(10*time.Second, "nsenter", "--net=/run/netns/"+client, "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/172.31.9.%d/8080", host+1))
	}
	reaches := func(host int) {
		t.Helper()
		l.eventually(time.Minute, fmt.Sprintf("the host port of host %d answers", host), func() error {
			out, err := dial(host)
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		})
	}
	l.startServer("--listen", api)
	letIn(hosts)
	connect(hosts)
	for _, h := range hosts {
		l.stead("image", "load", l.toolArchive(), "--node", h.nodeName())
	}
	l.apply("net", hostPortSet, "--wait", "--timeout", patience)
	reaches(0)
	reaches(1)
	l.stead("scale", "net", "--replicas", "3")
	waitForAPort(hosts)
	l.stead("scale", "net", "--replicas", "1", "--wait", "--timeout", patience)

	// Restarted in its place, where it lets go of the port first; then on the other host,
	// where a process has it.
	was := l.mustMember("net-0")
	home, away := 0, 1
	if was.Status.Node == hosts[1].nodeName() {
		home, away = 1, 0
	}
	l.stead("node", "cordon", hosts[away].nodeName())
	l.stead("restart", "net-0")
	now := l.waitReady("net-0", &was)
	if now.Status.Node != was.Status.Node {
		t.Errorf("it is on %s, was on %s", now.Status.Node, was.Status.Node)
	}
	reaches(home)
	holder := hosts[away].start("holder", toolBinary, "hold", ":8080")
	holder.waitSaid(l, "held")
	l.stead("node", "cordon", hosts[home].nodeName())
	l.stead("node", "uncordon", hosts[away].nodeName())
	l.stead("restart", "net-0")
	m := l.waitCause("net-0", "HostPortTaken")
	says(t, m.Status.Message, "a process of the host has port 8080/TCP")
	end(t, holder)
	m = l.waitReady("net-0", &now)
	if m.Status.Node != hosts[away].nodeName() || m.Status.Address != was.Status.Address {
		t.Errorf("it is on %s at %s, want %s, %s", m.Status.Node, m.Status.Address, hosts[away].nodeName(), was.Status.Address)
	}
	reaches(away)
	l.eventually(time.Minute, "the port of the host it left is refused", func() error {
		if out, err := dial(home); err == nil || !strings.Contains(out, "refused") {
			return fmt.Errorf("%v %s", err, out)
		}
		return nil
	})
	drains(t, l, hosts[away], hosts[home], "net-0")
}
