package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// harmSet runs one member in trouble: HARM is its argument list.
const harmSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: harm}
spec:
  selector: {matchLabels: {app: harm}}
  template:
    metadata: {labels: {app: harm}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, harm]
        args: [HARM]
        resources: {limits: {memory: 48Mi}}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: CLASS, resources: {requests: {storage: 1Mi}}}
`

func harmWith(args, class string) string {
	return strings.NewReplacer("HARM", args, "CLASS", class).Replace(harmSet)
}

func TestAMemberThatUsesTooMuchMemoryIsToldAsSuch(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("harm", harmWith(`memory, "128"`, "local"))
	var m member
	l.eventually(time.Minute, "the kill is told, and the next start waits", func() (err error) {
		if m, err = l.member("harm-0"); err != nil {
			return err
		}
		if m.Status.Cause != "OOMKilled" || m.Status.Restarts < 1 || !strings.Contains(m.Status.Message, "the next start waits") {
			return fmt.Errorf("%+v", m.Status)
		}
		return nil
	})
	if !strings.Contains(m.Status.Message, "raise resources.limits.memory") {
		t.Errorf("the message is %q", m.Status.Message)
	}
	for _, args := range [][]string{{"describe", "member", "harm-0"}, {"get", "members"}, {"get", "events"}, {"explain", "harm"}} {
		l.eventually(time.Minute, "stead "+strings.Join(args, " ")+" tells it", func() error {
			return l.steadSays("OOMKilled", args...)
		})
	}
	t.Log("the step that the message names: a larger limit, or a program that needs less")
	l.apply("harm", strings.Replace(harmWith(`memory, "128"`, "local"), "48Mi", "256Mi", 1), "--wait", "--timeout", patience)
	if now := l.waitReady("harm-0", nil); now.Status.Token == m.Status.Token {
		t.Errorf("after the fix: %+v", now.Status)
	}
}
