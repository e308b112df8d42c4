package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const keptSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: kept}
spec:
  replicas: 1
  selector: {matchLabels: {app: kept}}
  template:
    metadata: {labels: {app: kept}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, hold, "0.0.0.0:80"]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// drains empties a host: what has no volume there starts on the other one, which may take members again, and what has waits
// until the work is done.
func drains(t *testing.T, l, host, other *Lab, free string) {
	t.Helper()
	name := host.nodeName()
	l.apply("kept", keptSet, "--wait", "--timeout", patience)
	l.stead("node", "uncordon", other.nodeName())
	was, data := l.mustMember(free), l.mustMember("kept-0")
	if was.Status.Node != name || data.Status.Node != name {
		t.Fatalf("%s is on %s, kept-0 on %s; want both on %s", free, was.Status.Node, data.Status.Node, name)
	}
	says(t, l.stead("drain", name, "--dry-run"), "set default/kept: kept-0 stops (Drain), and waits: its volumes are on node "+name+", which is drained")
	said := l.stead("drain", name, "--timeout", patience)
	for _, want := range []string{"2 members to stop", "kept-0 stopped", "node " + name + " drained", "kept-0 waits: its volumes are on node " + name} {
		says(t, said, want)
	}
	for _, member := range []string{free, "kept-0"} {
		if pids := host.pidsOf(member); len(pids) > 0 {
			t.Errorf("processes %v of %s are left on the host", pids, member)
		}
	}
	if now := l.waitReady(free, &was); now.Status.Node != other.nodeName() || now.Status.Address != was.Status.Address {
		t.Errorf("%s is on %s at %s, want %s, %s", free, now.Status.Node, now.Status.Address, other.nodeName(), was.Status.Address)
	}
	end(t, host.agent) // as a reboot does; the drain holds
	host.startAgent()
	l.eventually(time.Minute, "the host is back, and drained still", func() error {
		out, err := l.trySteadFor(time.Minute, "get", "nodes")
		if err != nil || !strings.Contains(lineWith(out, name), "Ready,Cordoned,Drain") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	if m := l.mustMember("kept-0"); m.Status.Token != data.Status.Token {
		t.Errorf("kept-0 began %s while its host is drained", m.Status.Token)
	}
	l.stead("uncordon", name)
	if now := l.waitReady("kept-0", &data); now.Status.Node != name {
		t.Errorf("kept-0 is on %s, want %s", now.Status.Node, name)
	}
}
