package plan

import (
	"testing"
	"time"

	"github.com/stead-project/stead/spec"
)

// TestOnlyOutagesAreMeasured: of one that is available nothing is, or its next outage would
// count from before it.
func TestOnlyOutagesAreMeasured(t *testing.T) {
	w := world(t, "ordered 3 n1 0:ready 1:running 2:none")
	if got := Next(w).Outages; len(got) != 1 || got[0].ID != w.Slots[1].ID {
		t.Errorf("measured are %+v; want db-1 alone", got)
	}
}

// SAFETY S20: a member that was ready and is not may still serve.
func TestALapsedMemberIsReplacedAlone(t *testing.T) {
	const minute = time.Minute
	check(t, []rule{
		{name: "the only unavailable one, after a lapse", world: "ordered 2 n1 update=h2 current=h1 0:running 1:ready",
			change: out(lapse, 0), want: "stop=0/Update | 0:Stopping 1:WaitingForTurn", says: "it was ready in this life, and has not been available for 30 s"},
		{name: "not before", world: "ordered 2 n1 update=h2 current=h1 0:running 1:ready",
			change: out(lapse-1, 0), want: "| 0:NotReady 1:WaitingForTurn", says: "is replaced when that has lasted 30 s"},
		{name: "of two nobody: each may serve", world: "parallel 3 n1 update=h2 current=h1 0:running 1:running 2:ready",
			change: out(9*minute, 0, 1), want: "| 0:NotReady 1:NotReady 2:WaitingForTurn",
			says: "db-0: it is running, but not ready; it still runs revision h1, and is replaced when that has lasted 600 s; to replace it now: stead restart db-0"},
		{name: "nor while another one is missing", world: "parallel 2 n1! update=h2 current=h1 0:running 1:none",
			change: out(9*minute, 0), want: "| 0:NotReady 1:NoNode"},
		{name: "nor while another's node is silent", world: "parallel 2 n1 n2~ update=h2 current=h1 0:running 1:ready@n2",
			change: out(9*minute, 0, 1), want: "| 0:NotReady 1:NodeSilent"},
		{name: "nor while the update has one down: it is never two for one", world: "parallel 3 n1 update=h2 current=h1 0:running 1:running 2:starting/h2",
			change: out(minute, 0, 1, 2), want: "| 0:NotReady 1:NotReady 2:Starting"},
		{name: "after the deadline the highest goes, and no other", world: "parallel 3 n1 update=h2 current=h1 0:running 1:running 2:running",
			change: out(10*minute, 0, 1, 2), want: "stop=2/Update | 0:NotReady 1:NotReady 2:Stopping"},
		{name: "so it is in order", world: "ordered 3 n1 update=h2 current=h1 0:running 1:running 2:running",
			change: out(10*minute, 0, 1, 2), want: "stop=2/Update | 0:NotReady 1:NotReady 2:Stopping"},
		{name: "of those whose time is over", world: "parallel 3 n1 update=h2 current=h1 0:running 1:running 2:running",
			change: both(out(10*minute, 0), out(9*minute, 1, 2)), want: "stop=0/Update | 0:Stopping 1:NotReady 2:NotReady"},
		{name: "the next waits for the one that stops", world: "parallel 2 n1 update=h2 current=h1 0:running 1:turning",
			change: both(out(20*minute, 0), out(10*minute-1, 1)), want: "| 0:NotReady 1:Stopping"},
		{name: "as long as that one may take to stop", world: "parallel 2 n1 update=h2 current=h1 0:running 1:turning",
			change: both(out(20*minute, 0, 1), grace(1, 601)), want: "| 0:NotReady 1:Stopping"},
		{name: "and for the one that starts", world: "parallel 2 n1 update=h2 current=h1 0:running 1:starting/h2",
			change: both(out(20*minute, 0), out(10*minute-1, 1)), want: "| 0:NotReady 1:Starting"},
		{name: "until that one's own time is over", world: "parallel 2 n1 update=h2 current=h1 0:running 1:starting/h2",
			change: out(10*minute, 0, 1), want: "stop=0/Update | 0:Stopping 1:Starting"},
		{name: "so it is in order, too", world: "ordered 2 n1 update=h2 current=h1 0:running 1:starting/h2",
			change: out(10*minute, 0, 1), want: "stop=0/Update | 0:Stopping 1:Starting"},
		{name: "a broken one goes first, whatever its place", world: "parallel 2 n1 update=h2 current=h1 0:loop 1:running",
			change: out(time.Hour, 0, 1), want: "stop=0/Update | 0:Stopping 1:NotReady"},
		{name: "one whose turn came does not wait for a lapsed one below it", world: "ordered 2 n1 update=h2 current=h1 0:running 1:turned",
			change: out(lapse, 0), want: "start=1/Update@n1/h2 | 0:NotReady 1:Starting"},
		{name: "but gives it a while", world: "ordered 2 n1 update=h2 current=h1 0:running 1:turned",
			change: out(lapse-1, 0), want: "| 0:NotReady 1:WaitingForPredecessor"},
		{name: "and its whole time to one that never was ready", world: "ordered 2 n1 update=h2 current=h1 0:never 1:turned",
			change: out(599*time.Second, 0), want: "| 0:NotReady 1:WaitingForPredecessor"},
		{name: "and to one that is ready, but young", world: "ordered 2 min=60 n1 update=h2 current=h1 0:young 1:turned",
			change: out(lapse, 0), want: "| 0:NotAvailableYet 1:WaitingForPredecessor"},
		{name: "a broken one is none, and waits in order for the one above it", world: "ordered 2 n1 update=h3 current=h1 0:loop/h2? 1:starting/h3",
			change: out(time.Hour, 0), want: "| 0:CrashLoop 1:Starting"},
		{name: "it counts for the budget, for it was up", world: "parallel 2 n1 update=h2 current=h1 0:running 1:ready",
			change: out(time.Second, 0), want: "| 0:NotReady 1:WaitingForTurn"},
		{name: "in order nobody else is disturbed beside it", world: "ordered 2 n1 update=h2 current=h1 0:none 1:running",
			change: out(time.Hour, 1), want: "stop=1/Update | 0:WaitingForTurn 1:Stopping"},
		{name: "under Parallel healthy ones go beside it as far as the budget allows", world: "parallel 3 max=2 n1 update=h2 current=h1 0:running 1:ready 2:ready",
			change: out(lapse, 0), want: "stop=0/Update stop=2/Update | 0:Stopping 2:Stopping 1:WaitingForTurn"},
		{name: "the report's word that it was ready is enough", world: "parallel 3 n1 update=h3 current=h1 0:never/h2? 1:never/h2? 2:ready",
			change: func(w *World) { w.Slots[0].Report.ReadyOnce, w.Slots[1].Report.ReadyOnce = true, true }, want: "| 0:NotReady 1:NotReady 2:WaitingForTurn"},
		{name: "on an abandoned revision it goes at once, within the budget", world: "parallel 3 min=5 n1 update=h3 current=h1 0:young/h2? 1:ready 2:ready",
			change: func(w *World) { w.Slots[0].Identity.ReadyToken = spec.Token{} }, want: "stop=0/Update | 0:Stopping 2:WaitingForTurn 1:WaitingForTurn"},
		{name: "and not beyond it", world: "parallel 3 min=5 n1 update=h3 current=h1 0:young/h2? 1:running/h2? 2:ready",
			change: out(9*minute, 0, 1), want: "| 0:NotAvailableYet 1:NotReady 2:WaitingForTurn"},
		{name: "one that its node cannot see is left", world: "ordered 2 n1 update=h2 current=h1 0:running 1:ready",
			change: func(w *World) { w.Slots[0].Report.Cause = "RuntimeUnavailable"; out(time.Hour, 0)(w) }, want: "| 0:RuntimeUnavailable 1:WaitingForTurn"},
		{name: "on its target it stays", world: "ordered 1 n1 0:running", change: out(time.Hour, 0), want: "| 0:NotReady"},
		{name: "a paused rollout leaves it", world: "ordered 1 paused n1 update=h2 current=h1 0:running", change: out(time.Hour, 0), want: "| 0:NotReady"},
		{name: "Never opts out", world: "ordered 1 never n1 update=h2 current=h1 0:running", change: out(time.Hour, 0), want: "| 0:NotReady",
			says: "replaceBroken is Never; to replace it: stead restart db-0"},
	})
}

// grace gives a life so many seconds to stop.
func grace(ordinal int, seconds int64) func(*World) {
	return func(w *World) { w.Slots[ordinal].Member.GraceSeconds = seconds }
}

// A look follows when the next of these times is over, though nothing changed.
func TestALapsedMemberIsLookedAtAgainWhenItsTimeComes(t *testing.T) {
	for _, c := range []struct {
		world  string
		change func(*World)
		want   time.Duration
	}{
		{"ordered 2 n1 update=h2 current=h1 0:running 1:ready", out(10*time.Second, 0), 20 * time.Second},
		{"parallel 3 n1 update=h2 current=h1 0:running 1:running 2:ready", out(500*time.Second, 0, 1), 100 * time.Second},
		{"parallel 2 n1 update=h2 current=h1 0:running 1:turning", both(out(700*time.Second, 0), out(550*time.Second, 1)), 50 * time.Second},
		{"ordered 2 n1 update=h2 current=h1 0:never 1:ready", both(out(600*time.Second, 0), startup(30)), 30 * time.Second},
	} {
		w := world(t, c.world)
		w.Set.Spec.ProgressDeadlineSeconds = nil
		c.change(&w)
		if got := Next(w).Wake; got != c.want {
			t.Errorf("%s: wakes after %s; want %s", c.world, got, c.want)
		}
	}
}

// Who waits for a member off its target reads when it is replaced, and how to have it now;
// of any other member that would not be true.
func TestTheWayOutIsNamedWhereNothingElseHelps(t *testing.T) {
	const off = "; it still runs revision h1, and is replaced when that has lasted "
	for _, c := range []struct {
		world, want string
		change      func(*World)
	}{
		{world: "ordered 1 n1 update=h2 current=h1 0:never", want: "it is running, but not ready" + off + "600 s; to replace it now: stead restart db-0"},
		{world: "ordered 1 n1 update=h2 current=h1 0:starting", change: startup(50), want: "it is starting on node n1" + off + "650 s; to replace it now: stead restart db-0"},
		{world: "ordered 1 n1 update=h2 current=h1 0:running", want: "it is running, but not ready" + off + "30 s; to replace it now: stead restart db-0"},
		{world: "parallel 2 n1 update=h2 current=h1 0:running 1:running", want: "it is running, but not ready" + off + "600 s; to replace it now: stead restart db-0"},
		{world: "ordered 1 never n1 update=h2 current=h1 0:loop",
			want: "it reports CrashLoop: exited with code 1; it still runs revision h1, and replaceBroken is Never; to replace it: stead restart db-0"},
		{world: "ordered 1 n1 0:running", want: "it is running, but not ready"},
		{world: "ordered 2 n1 update=h2 current=h1 0:loop 1:starting/h2", want: "it reports CrashLoop: exited with code 1"},
		{world: "ordered 1 min=5 n1 update=h2 current=h1 0:young", want: "it is ready, but not yet for 5 s"},
		{world: "ordered 1 n1 update=h2 current=h1 0:running", change: anew(0), want: "node n1 reconnected and has not reported on it yet"},
		{world: "ordered 1 paused n1 update=h2 current=h1 0:running", want: "it is running, but not ready"},
		{world: "ordered 1 OnDelete n1 update=h2 current=h1 0:running", want: "it is running, but not ready"},
	} {
		w := world(t, c.world)
		if c.change != nil {
			c.change(&w)
		}
		if got := Next(w).Blocked[0].Text; got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.world, got, c.want)
		}
	}
}
