package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// The init container note adds a line to a file each time it runs; gate fails until there is a
// file; what shows what it finds.
const initSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: made}
spec:
  replicas: 1
  selector: {matchLabels: {app: made}}
  template:
    metadata: {labels: {app: made}}
    spec:
      terminationGracePeriodSeconds: 5
      initContainers:
      - name: note
        image: stead.local/tool:1
        command: [/box, command, note, /data/runs]
        volumeMounts: [{name: data, mountPath: /data}]
      - name: beside
        image: stead.local/tool:1
        restartPolicy: Always
        command: [/box, command, wait]
        startupProbe: {exec: {command: [/box, command, cat, /data/runs]}, periodSeconds: 1, timeoutSeconds: 60}
        volumeMounts: [{name: data, mountPath: /data}]
      - name: gate
        image: stead.local/tool:1
        command: [/box, command, cat, /data/open]
        volumeMounts: [{name: data, mountPath: /data}]
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, show, /data/runs]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// TestInitContainersAndASidecar: in order, each until it succeeds, over a kill of the agent; what has
// succeeded runs again in a new life only.
func TestInitContainersAndASidecar(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("made", initSet)
	data := l.path("agent", "volumes", "default", "made", "data-0", "data")
	wantRuns := func(want int) {
		t.Helper()
		runs, err := os.ReadFile(data + "/runs")
		if got := strings.Count(string(runs), "noted"); err != nil || got != want {
			judge.Broken(t, "the first init container ran %d times, not %d: %v", got, want, err)
		}
	}

	t.Log("one that fails is tried again, and what it said last is shown")
	m := l.waitCause("made-0", "CrashLoop")
	if !strings.HasPrefix(m.Status.Message, "init container gate: exited with code 1; its last line: ") || !strings.Contains(m.Status.Message, "/data/open") {
		t.Errorf("the member says %q", m.Status.Message)
	}
	for _, c := range []struct{ word, args string }{
		{"no such file", "logs made-0 -c gate"},
		{"Init containers:", "describe member made-0"},
		{"beside (sidecar)", "describe member made-0"},
	} {
		l.eventually(time.Minute, c.args, func() error { return l.steadSays(c.word, strings.Fields(c.args)...) })
	}

	t.Log("the agent is killed meanwhile: what has succeeded does not run again")
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data+"/open", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l.startAgent()
	m = l.waitReady("made-0", nil)
	wantRuns(1)
	l.eventually(time.Minute, "the container finds what was made for it", func() error { return l.steadSays(`noted\n`, "logs", "made-0") })

	t.Log("a restart in place runs none of them, a new life all")
	l.killMember("made-0")
	m = l.waitReady("made-0", &m)
	wantRuns(1)
	l.stead("restart", "made-0")
	l.eventually(time.Minute, "it has another life", func() error {
		now, err := l.member("made-0")
		if err == nil && (now.Status.Token == m.Status.Token || !now.Status.Ready) {
			err = fmt.Errorf("%+v", now.Status)
		}
		return err
	})
	wantRuns(2)

	l.stead("delete", "set", "made", "--wait", "--timeout", patience)
	l.eventually(time.Minute, "nothing of it runs", func() error {
		if pids := l.pidsOf("made-0"); len(pids) > 0 {
			return errors.New(fmt.Sprint(pids))
		}
		return nil
	})
}
