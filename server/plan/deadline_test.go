package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// TestDeadline: what a rollout says that stood still for so long; "": it is not stalled.
func TestDeadline(t *testing.T) {
	const update = "ordered 3 n1 update=h2 current=h1 0:ready 1:ready "
	for _, c := range []struct{ name, world, stalled string }{
		{"a broken update is stalled after ten minutes", update + "2:loop/h2? still=600", "600 s; db-2: it reports CrashLoop"},
		{"not before", update + "2:loop/h2? still=599", ""},
		{"the time on top of minReadySeconds", update + "2:loop/h2? min=30 still=629", ""},
		{"after that", update + "2:loop/h2? min=30 still=630", "630 s; db-2"},
		{"as the manifest says", update + "2:running/h2? deadline=60 still=60", "60 s; db-2: it is running, but not ready"},
		{"who cannot start is named", "ordered 2 update=h2 current=h1 n1~ 0:ready 1:turned still=600", "db-0: node n1 is unreachable"},
		{"one whose turn came is named before others", "parallel 3 max=2 n1 update=h2 current=h1 0:running 1:ready 2:loop/h2? still=600", "db-2: it reports CrashLoop"},
		{"one that waits for a thing before one that waits for members", "ordered 2 n1 update=h2 current=h1? 0:missing/h2? still=600", "db-0: it reports ImageMissing"},
		{"of two that wait for a thing, the first", "ordered 3 n1 update=h2 current=h1 0:running 1:running 2:ready still=600", "db-0: it is running, but not ready"},
		{"one that waits for a thing before one that waits for its turn", "ordered 2 Recreate n1 update=h2 current=h1 0:none 1:stopping still=600", "db-1: it is stopping"},
		{"all broken at once: the first who was replaced", "ordered 3 n1 update=h2 current=h1 0:loop 1:loop 2:running/h2? still=600", "db-2: it is running, but not ready"},
		{"a disruption floor that is in the way", update + "2:ready floor=3 still=600", "db-2: its update is held back: the disruption floor"},
		{"one whose turn came is not named when it waits for another", "ordered 2 n1 update=h2 current=h1 0:running 1:turned still=600", "600 s; db-0: it is running, but not ready"},
		{"of those who wait for others the first is named", "ordered 2 Recreate floor=1 n1 update=h2 current=h1 0:ready 1:ready still=600", "db-1: waiting until all members may stop"},
		{"not when surplus members take long to go", "ordered 2 partition=1 n1 update=h2 current=h1 0:ready 1:ready/h2 2:stopping still=6000", ""},
		{"the very first rollout", "ordered 2 n1 0:loop/h1? still=600", "db-0: it reports CrashLoop"},
		{"not while paused", "paused " + update + "2:loop/h2? still=600", ""},
		{"not when the part above the partition is done", "partition=2 " + update + "2:ready/h2 still=6000", ""},
		{"but while that part is broken", "partition=2 " + update + "2:loop/h2? still=600", "db-2"},
		{"not when people move members on", "OnDelete " + update + "2:ready still=6000", ""},
		{"not when there is no rollout", "ordered 2 n1 current=h1 0:ready 1:loop still=6000", ""},
		{"not when all is done", "ordered 1 n1 update=h2 current=h1 0:ready/h2 still=6000", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world(t, c.world)
			p := Next(w)
			x := p.Status.Conditions[2]
			if got := x.Status == "True"; got != (c.stalled != "") || !strings.Contains(x.Message, c.stalled) {
				t.Errorf("world %s\ngot  %s %s\nwant %q", c.world, x.Status, x.Message, c.stalled)
			}
			stands := strings.HasPrefix(c.name, "not when") || strings.HasPrefix(c.name, "not while")
			if p.Clock == stands {
				t.Errorf("the clock runs: %v", p.Clock)
			}
			if left := w.Set.Spec.ProgressDeadline() - w.Standstill; p.Clock && left > 0 && p.Wake != left {
				t.Errorf("wakes after %s; want %s", p.Wake, left)
			}
		})
	}
}

// A drain that moves members begins no move for a while: nobody waits for them.
func TestAMemberThatIsAvailableAndOnlyToBeMovedStallsNothing(t *testing.T) {
	w := world(t, "OnDelete 1 volumes n1 n2 update=h2 current=h1 0:ready@n1 still=6000")
	movers(&w)
	w.Nodes = drained(w.Nodes, "n1", true, false)
	proof.FindNode(w.Nodes, "n1").Node.Drain = &records.Drain{Move: true}
	w.MoveRest = map[spec.Identity]MoveRest{w.Slots[0].ID: {Left: 1, Why: "node n2: the disk is full"}}
	p := Next(w)
	if len(p.Blocked) != 1 || p.Clock || p.Status.Conditions[2].Status != "False" {
		t.Errorf("the clock runs: %v; %+v; blocked %+v", p.Clock, p.Status.Conditions[2], p.Blocked)
	}
}

func TestTheMemberThatKeepsOthersWaitingIsNamed(t *testing.T) {
	w := world(t, "ordered 2 n1 update=h2 current=h1 0:ready 1:running still=600")
	asked(0)(&w)
	if x := Next(w).Status.Conditions[2]; !strings.Contains(x.Message, "db-1: it is running, but not ready") {
		t.Errorf("stalled says %q; want db-1, for whom db-0 waits with its restart", x.Message)
	}
}

func TestAStartupProbesAllowanceComesOnTop(t *testing.T) {
	w := world(t, "ordered 1 n1 0:running/h1? still=899")
	tpl := &w.Revisions[0].Template
	tpl.Spec.Containers = []spec.Container{{}, {StartupProbe: &spec.Probe{InitialDelaySeconds: 100, PeriodSeconds: 10, FailureThreshold: 20}}}
	if p := Next(w); p.Status.Conditions[2].Status != "False" || p.Wake != time.Second {
		t.Errorf("stalled %+v, wake %s; want a second left", p.Status.Conditions[2], p.Wake)
	}
	w.Standstill += time.Second
	if p := Next(w); p.Status.Conditions[2].Status != "True" {
		t.Errorf("%+v; want stalled", p.Status.Conditions[2])
	}
}

func TestTheClockStartsAgainWithProgressOnly(t *testing.T) {
	from := "ordered 3 n1 update=h2 current=h1 0:ready 1:ready 2:loop/h2?"
	for name, c := range map[string]struct {
		to    string
		anew  bool
		token int64
	}{
		"nothing":                             {from, false, 0},
		"a member available on the new one":   {"ordered 3 n1 update=h2 current=h1 0:ready 1:turning 2:ready/h2?", true, 0},
		"one that is not the newest":          {"ordered 3 n1 update=h2 current=h1 0:ready/h2? 1:ready 2:loop/h2?", true, 0},
		"that is marked":                      {"ordered 3 n1 update=h2 current=h1 0:ready 1:turning 2:running/h2", true, 0},
		"another template":                    {"ordered 3 n1 update=h3 current=h1 0:ready 1:ready 2:loop/h2?", true, 0},
		"a new life of another member":        {from, true, 40},
		"a member that is down":               {"ordered 3 n1 update=h2 current=h1 0:ready 1:running 2:loop/h2?", false, 0},
		"more members":                        {"ordered 4 n1 update=h2 current=h1 0:ready 1:ready 2:loop/h2?", false, 0},
		"a rollback, which is another target": {"ordered 3 n1 update=h2 current=h1 back=h2 0:ready 1:ready 2:loop/h2?", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			before := Next(world(t, from)).Reached
			w := world(t, c.to)
			if c.token > 0 {
				w.Slots[0].Member.Token.Number, w.Slots[0].Report.Token.Number = c.token, c.token
			}
			w.Reached, w.Standstill = before, time.Hour
			p := Next(w)
			if stalled := p.Status.Conditions[2].Status == "True"; stalled == c.anew || p.Reached.Beyond(before) != c.anew {
				t.Errorf("stalled %v; want anew %v; reached %+v after %+v", stalled, c.anew, p.Reached, before)
			}
		})
	}
	// One that was available, is not, and is again, in the same life, is no progress.
	was := Next(world(t, from)).Reached
	w := world(t, "ordered 3 n1 update=h2 current=h1 0:running 1:running 2:loop/h2?")
	w.Reached = was
	down := Next(w).Reached
	w = world(t, from)
	w.Reached = down
	if Next(w).Reached.Beyond(down) {
		t.Errorf("reached %+v after %+v; want no progress", Next(w).Reached, down)
	}
}

func TestRollback(t *testing.T) {
	const stalled = "ordered 3 rollback n1 update=h2 current=h1 0:ready 1:ready 2:loop/h2? still=600"
	given := func(line string) spec.RevisionHash { return Next(world(t, line)).Status.RolledBackFrom }
	if got := brief(Next(world(t, stalled))); got != "| 2:CrashLoop 1:WaitingForTurn 0:WaitingForTurn" || given(stalled) != "h2" {
		t.Errorf("%s, given up %q; want h2 given up, and nothing done before that is written", got, given(stalled))
	}
	for name, line := range map[string]string{
		"before the deadline":                 strings.Replace(stalled, "600", "599", 1),
		"unless it is asked for":              strings.Replace(stalled, "rollback", "max=1", 1),
		"when no revision was ever completed": strings.Replace(stalled, "current=h1", "current=h1?", 1),
		"while paused":                        stalled + " paused",
	} {
		if got := given(line); got != "" {
			t.Errorf("%s: gave up %s", name, got)
		}
	}
	check(t, []rule{
		{name: "the broken one goes back", world: "ordered 3 rollback n1 update=h2 current=h1 back=h2 0:ready 1:ready 2:loop/h2?", // no time passed
			want: "stop=2/Update | 2:Stopping"},
		{name: "on the completed revision", world: "ordered 3 n1 update=h2 current=h1 back=h2 0:ready 1:ready 2:turned/h2?",
			want: "start=2/Update@n1 | 2:Starting"},
		{name: "also one that only starts there", world: "ordered 2 n1 update=h2 current=h1 back=h2 0:ready 1:starting/h2?",
			want: "stop=1/Update | 1:Stopping"},
		{name: "then one by one those who were well, within the budget", world: "ordered 3 n1 update=h2 current=h1 back=h2 0:ready 1:ready/h2 2:ready/h2",
			want: "stop=2/Update | 2:Stopping 1:WaitingForTurn"},
		{name: "a new member begins there", world: "ordered 2 initial=1 n1 update=h2 current=h1 back=h2 0:ready",
			want: "start=1/ScaleUp@n1 | 1:Starting"},
		{name: "nothing when all are back", world: "ordered 2 n1 update=h2 current=h1 back=h2 0:ready 1:ready", want: "|"},
		{name: "another template is tried", world: "ordered 2 n1 update=h3 current=h1 back=h2 0:ready 1:ready",
			want: "stop=1/Update | 1:Stopping 0:WaitingForTurn"},
	})
	if st := Next(world(t, "ordered 1 n1 update=h2 current=h1 back=h2 0:ready/h2")).Status; st.CurrentRevision != "h1" || st.RolledBackFrom != "h2" {
		t.Errorf("%+v; a revision that was given up must not complete", st)
	}
	if got := given("ordered 2 n1 update=h3 current=h1 back=h2 0:ready 1:ready"); got != "" {
		t.Errorf("%s stays given up after another template", got)
	}
	if got := given("ordered 2 n1 update=h2 current=h1 back=h2 0:ready 1:ready"); got != "h2" {
		t.Errorf("given up: %q; want h2 until the template changes", got)
	}
}

// A rollback that stalls, too, is not followed by another.
func TestARollbackIsOnce(t *testing.T) {
	p := Next(world(t, "ordered 2 rollback n1 update=h2 current=h1 back=h2 0:ready 1:loop still=600"))
	if x := p.Status.Conditions[2]; x.Status != "True" || p.Status.RolledBackFrom != "h2" || p.Status.CurrentRevision != "h1" {
		t.Errorf("%+v, from %s; want it stalled, and still back from h2", x, p.Status.RolledBackFrom)
	}
}
