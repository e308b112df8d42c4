package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// lapseSet is the life set under Parallel, with a readiness probe and the ConfigMap beside it.
func lapseSet(probe, data string) string {
	set := strings.NewReplacer(
		"apiVersion: apps/v1", "apiVersion: stead/v1",
		"replicas: 3", "replicas: 3\n  podManagementPolicy: Parallel\n  progressDeadlineSeconds: 60",
		"readinessProbe: {tcpSocket: {port: probe}, periodSeconds: 1}", "readinessProbe: "+probe,
		"volumeMounts: [{name: data, mountPath: /data}]",
		"volumeMounts: [{name: data, mountPath: /data}, {name: conf, mountPath: /conf}]\n      volumes: [{name: conf, configMap: {name: conf}}]",
	).Replace(lifeSet)
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: " + data + "\n---" + set
}

// TestReadinessThatLapsesEverywhereStopsOneMemberAtATime: the file that goes with an update is
// the one that the old members' readiness probe reads. They serve all the same.
func TestReadinessThatLapsesEverywhereStopsOneMemberAtATime(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	heard := l.startWitness()
	l.apply("life", lapseSet("{exec: {command: [/box, command, cat, /conf/ready]}, periodSeconds: 1, timeoutSeconds: 20}", "{ready: now}"), "--wait", "--timeout", patience)

	// The first member of the update is not ready again before the others' lapse is old.
	l.apply("life", lapseSet("{tcpSocket: {port: probe}, periodSeconds: 1, initialDelaySeconds: 40}", "{other: file}"))
	l.eventually(time.Minute, "the readiness of those that wait lapses", func() error {
		for _, name := range []string{"life-0", "life-1"} {
			m, err := l.member(name)
			if err != nil || m.Status.Ready || !strings.Contains(m.Status.Blocked, "to replace it now: stead restart "+name) {
				return fmt.Errorf("%s is ready still (%v) or does not say how to replace it: %s", name, err, m.Status.Blocked)
			}
		}
		return nil
	})
	var gaps []gap
	l.eventually(6*time.Minute, "each member's next life is ready, without hands", func() error {
		gaps = l.gaps(heard)
		if len(gaps) < 3 {
			return fmt.Errorf("lives changed as %+v", gaps)
		}
		for _, name := range []string{"life-0", "life-1", "life-2"} {
			if m, err := l.member(name); err != nil || !m.Status.Ready {
				return fmt.Errorf("%s is not ready (%v): %s", name, err, m.Status.Blocked)
			}
		}
		return nil
	})
	// Of the two whose readiness lapsed the one whose probe said so first may be first.
	order := map[string]bool{}
	for _, g := range gaps {
		order[g.member] = true
	}
	if len(gaps) != 3 || len(order) != 3 || gaps[0].member != "life-2" {
		t.Errorf("lives changed as %+v; want life-2, then each of the others once", gaps)
	}
	for i := 1; i < len(gaps); i++ {
		if gaps[i].from < gaps[i-1].to {
			judge.Broken(t, "%+v and %+v: a cure stopped a second member that served", gaps[i-1], gaps[i])
		}
	}
	l.assertOneLife(heard, "life-0", "life-1", "life-2")
}
