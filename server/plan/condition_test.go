package plan

import (
	"strings"
	"testing"
)

// conditions writes the conditions of a world's next status as Status and Reason.
func conditions(t *testing.T, line string) (list [4]string, messages [4]string) {
	t.Helper()
	for i, x := range Next(world(t, line)).Status.Conditions {
		list[i], messages[i] = x.Status+" "+x.Reason, x.Message
	}
	return list, messages
}

func TestConditions(t *testing.T) {
	const well = "False AsExpected"
	cases := map[string]struct{ world, available, progressing, stalled, degraded string }{
		"complete":                       {"ordered 1 n1 0:ready", "True AllAvailable", "False Complete", well, well},
		"the last mark is no work":       {"ordered 1 fresh n1 0:ready", "True AllAvailable", "False Complete", well, well},
		"under way":                      {"ordered 2 n1 0:ready", "False NotAllAvailable", "True Working", well, well},
		"waiting for a person":           {"ordered 2 n1 0:missing", "False NotAllAvailable", "False ImageMissing", well, "True ImageMissing"},
		"no node":                        {"ordered 2", "False NotAllAvailable", "False NoNode", well, "True NoNode"},
		"scaling down":                   {"ordered 1 n1 0:ready 1:ready", "True AllAvailable", "True Working", well, well},
		"a surplus one that is bad":      {"ordered 1 n1 0:ready 1:stopping", "True AllAvailable", "True Working", well, well},
		"an update":                      {"ordered 2 n1 update=h2 current=h1 0:ready 1:ready/h2", "False NotAllAvailable", "True Working", well, well},
		"one that starts":                {"ordered 1 n1 0:none", "False NotAllAvailable", "True Working", well, well},
		"one that was ready":             {"ordered 1 n1 0:running", "False NotAllAvailable", "True Working", well, "True NotReady"},
		"one on a silent node":           {"ordered 1 n1~ 0:ready", "False NotAllAvailable", "False NodeSilent", well, "True NodeSilent"},
		"a young one":                    {"ordered 1 min=5 n1 0:young", "False NotAllAvailable", "True Working", well, well},
		"a surplus one on a silent node": {"ordered 1 n1 n2~ 0:ready 1:ready@n2", "True AllAvailable", "False NodeSilent", well, well},
		"partitioned":                    {"ordered 2 n1 update=h2 current=h1 partition=1 0:ready 1:ready/h2", "True AllAvailable", "False Partitioned", well, well},
		"on delete":                      {"ordered 2 n1 update=h2 current=h1 OnDelete 0:ready 1:ready", "True AllAvailable", "False OnDelete", well, well},
		"paused":                         {"ordered 2 n1 update=h2 current=h1 paused 0:ready 1:ready", "True AllAvailable", "False Paused", well, well},
		"rolled back":                    {"ordered 2 n1 update=h2 current=h1 back=h2 0:ready 1:ready", "True AllAvailable", "False RolledBack", well, well},
		"stalled":                        {"ordered 2 n1 update=h2 current=h1 still=600 0:ready 1:loop/h2", "False NotAllAvailable", "False CrashLoop", "True ProgressDeadlineExceeded", "True CrashLoop"},
		"one that died, and its turn":    {"ordered 2 n1 0:none 1:over", "False NotAllAvailable", "True Working", well, well},
		"deleting what was orphaned":     {"ordered 1 orphaned deleting n1 0:ready", "False Deleting", "True Deleting", well, well},
		"deleting, half way":             {"ordered 1 deleting n1 update=h2 current=h1 0:stopped", "False Deleting", "True Deleting", well, well},
		"deleting":                       {"ordered 1 deleting n1 0:ready", "False Deleting", "True Deleting", well, well},
	}
	for name, c := range cases {
		if got, _ := conditions(t, c.world); got != [4]string{c.available, c.progressing, c.stalled, c.degraded} {
			t.Errorf("%s: got %q; want %s, %s, %s, %s", name, got, c.available, c.progressing, c.stalled, c.degraded)
		}
	}
}

func TestAConditionNamesTheMemberAndTheCause(t *testing.T) {
	_, got := conditions(t, "ordered 3 n1 update=h2 current=h1 still=600 0:ready 1:ready 2:loop/h2")
	for i, want := range [4]string{
		"2 of 3 members are available",
		"db-2: it reports CrashLoop: exited with code 1",
		"no member became available for 600 s; db-2: it reports CrashLoop: exited with code 1",
		"db-2: it reports CrashLoop: exited with code 1",
	} {
		if !strings.Contains(got[i], want) {
			t.Errorf("condition %d says %q; want %q", i, got[i], want)
		}
	}
}
