package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

const jobSet = `
apiVersion: stead/v1
kind: StatefulSet
metadata: {name: jobs}
spec:
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: jobs}}
  jobs:
  - {name: create, after: Bootstrapped, exec: {command: [/box, command, trial, /data/created, /data/may]}}
  - {name: grow, after: Grown, exec: {command: [/box, command, wait]}}
  template:
    metadata: {labels: {app: jobs}}
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

// TestAJobOfASetRunsOnce: it fails, and is run again until it succeeds; one whose agent is killed meanwhile is not, until a user decides. What
// was done is not done again after a deletion that keeps the data.
func TestAJobOfASetRunsOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	l.apply("jobs", jobSet)
	place := func(name string) string { return l.path("agent/volumes/default/jobs/data-0/data/" + name) }
	runs := func() int {
		got, err := os.ReadFile(place("created"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(got), "job::\n")
	}
	explains := func(what string) {
		t.Helper()
		l.eventually(time.Minute, "explain says "+what, func() error {
			if out := l.stead("explain", "jobs"); !strings.Contains(out, what) {
				return fmt.Errorf("%s", out)
			}
			return nil
		})
	}
	l.eventually(2*time.Minute, "it is run again", func() error {
		if n := runs(); n < 2 {
			return fmt.Errorf("it was run %d times", n)
		}
		return nil
	})
	explains("shards are left")
	if err := os.WriteFile(place("may"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.stead("wait", "set/jobs", "--for", "condition=JobsDone", "--timeout", patience)
	before := runs()

	l.stead("scale", "jobs", "--replicas", "3")
	explains("job grow runs in jobs-0")
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.startAgent()
	explains("the agent was restarted while it ran")
	l.stead("job", "skip", "jobs", "grow")
	l.stead("wait", "set/jobs", "--for", "condition=JobsDone", "--timeout", patience)

	l.stead("delete", "set/jobs", "--wait")
	l.apply("jobs", strings.Replace(jobSet, "replicas: 2", "replicas: 3", 1), "--wait", "--timeout", patience)
	l.stead("wait", "set/jobs", "--for", "condition=JobsDone", "--timeout", patience)
	if n := runs(); n != before {
		t.Errorf("it was run %d times, and %d after it was deleted and applied again", before, n)
	}
}
