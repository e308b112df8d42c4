package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

const hookSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: hook}
spec:
  replicas: 1
  selector: {matchLabels: {app: hook}}
  template:
    metadata: {labels: {app: hook}}
    spec:
      terminationGracePeriodSeconds: 600
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, command, ended, /data/stop]
        lifecycle:
          postStart: {exec: {command: [/box, command, await, /data/go, /data/start]}}
          preStop: {exec: {command: [/box, command, await, /data/leave, /data/stop]}}
          stopSignal: SIGUSR1
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// TestHooksHoldReadinessAndTheStopSignal: a member is not ready before its postStart hook has
// returned, and gets no stopSignal before its preStop hook has. An agent that is killed in the middle of
// one runs it again.
func TestHooksHoldReadinessAndTheStopSignal(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	l.apply("hook", hookSet)
	place := func(name string) string { return l.path("agent/volumes/default/hook/data-0/data", name) }
	lines := func(name string, want ...string) {
		t.Helper()
		l.eventually(time.Minute, fmt.Sprintf("%s is written: %v", name, want), func() error {
			if got, err := os.ReadFile(place(name)); err != nil || strings.Join(strings.Fields(string(got)), " ") != strings.Join(want, " ") {
				return fmt.Errorf("%q, %v", got, err)
			}
			return nil
		})
	}
	returns := func(name string) {
		t.Helper()
		if err := os.WriteFile(place(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	restartAgent := func() {
		t.Helper()
		if err := l.agent.signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l.startAgent()
	}
	waits := func(what string, ok func(m member) bool) {
		t.Helper()
		l.eventually(time.Minute, what, func() error {
			m, err := l.member("hook-0")
			if err == nil && !ok(m) {
				err = fmt.Errorf("%+v", m.Status)
			}
			return err
		})
	}

	lines("start", "begun")
	held := func(m member) bool {
		return !m.Status.Ready && strings.Contains(m.Status.Message, "its postStart hook")
	}
	waits("it is not ready, and says why", held)
	restartAgent()
	lines("start", "begun", "begun")
	waits("it still is not ready", held)
	returns("go")
	m := l.waitReady("hook-0", nil)
	if m.Status.Restarts != 0 {
		t.Errorf("it was restarted: %+v", m.Status)
	}

	l.stead("scale", "hook", "--replicas", "0")
	lines("stop", "begun")
	restartAgent()
	lines("stop", "begun", "begun")
	returns("leave")
	lines("stop", "begun", "begun", "ended")
	l.stead("wait", "set/hook", "--for", "available", "--timeout", patience)
	l.eventually(time.Minute, "it is gone", func() error {
		if m, err := l.member("hook-0"); err == nil {
			return fmt.Errorf("%+v", m.Status)
		}
		return nil
	})
}
