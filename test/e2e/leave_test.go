package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

const leaveSet = `
apiVersion: stead/v1
kind: StatefulSet
metadata: {name: leave}
spec:
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: leave}}
  decommission:
    exec: {command: [/box, command, trial, /data/left, /data/may]}
    abort: {exec: {command: [/box, command, trial, /data/stayed, /data]}}
  forget: {exec: {command: [/box, command, trial, /data/forgot, /data]}}
  template:
    metadata: {labels: {app: leave}}
    spec:
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, command, wait]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// TestAMemberLeavesWhenItsHookHasSucceeded: its hook fails, and is run again; the member runs on, and stays when it is wanted
// again. Then it leaves, though its agent is killed meanwhile, and a peer is told.
func TestAMemberLeavesWhenItsHookHasSucceeded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	l.apply("leave", leaveSet, "--wait", "--timeout", patience)
	place := func(ordinal int, name string) string {
		return l.path(fmt.Sprintf("agent/volumes/default/leave/data-%d/data/%s", ordinal, name))
	}
	runs := func(ordinal int, name, want string, least int) {
		t.Helper()
		l.eventually(time.Minute, fmt.Sprintf("%s was run %d times", want, least), func() error {
			got, err := os.ReadFile(place(ordinal, name))
			if lines := strings.Fields(string(got)); err != nil || len(lines) < least || strings.Count(string(got), want+"\n") != len(lines) {
				return fmt.Errorf("%q, %v; want %q", got, err, want)
			}
			return nil
		})
	}
	was := l.mustMember("leave-2")

	if out := l.stead("scale", "leave", "--replicas", "2"); !strings.Contains(out, "stops leave-2, each after its decommission hook has succeeded, and the others forget it") {
		t.Errorf("the scale-down says %s", out)
	}
	runs(2, "left", "decommission::ScaleDown", 3)
	l.eventually(time.Minute, "it says what it waits for", func() error {
		m, err := l.member("leave-2")
		if err == nil && (!m.Status.Ready || m.Status.Token != was.Status.Token || !strings.Contains(m.Status.Blocked, "its decommission hook failed (") || !strings.Contains(m.Status.Blocked, "shards are left")) {
			err = fmt.Errorf("%+v", m.Status)
		}
		return err
	})

	l.stead("scale", "leave", "--replicas", "3")
	runs(2, "stayed", "abort::", 1)
	l.eventually(time.Minute, "it stays", func() error {
		m, err := l.member("leave-2")
		if err == nil && (!m.Status.Ready || m.Status.Token != was.Status.Token || m.Status.Blocked != "") {
			err = fmt.Errorf("%+v", m.Status)
		}
		return err
	})
	before, err := os.ReadFile(place(2, "left"))
	if err != nil {
		t.Fatal(err)
	}

	l.stead("scale", "leave", "--replicas", "2")
	runs(2, "left", "decommission::ScaleDown", len(strings.Fields(string(before)))+1)
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.startAgent()
	if _, err := l.member("leave-2"); err != nil {
		t.Errorf("it has left before its hook succeeded: %v", err)
	}
	if err := os.WriteFile(place(2, "may"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.eventually(time.Minute, "it is gone", func() error {
		if m, err := l.member("leave-2"); err == nil {
			return fmt.Errorf("%+v", m.Status)
		}
		return nil
	})
	runs(0, "forgot", "forget:leave-2.leave.default.svc.cluster.local:", 1)
	if _, err := os.Stat(place(1, "forgot")); err == nil {
		t.Error("two members were told of it")
	}
	l.stead("wait", "set/leave", "--for", "available", "--timeout", patience)
}
