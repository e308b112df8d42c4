package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// out has members of the world not available for so long.
func out(since time.Duration, ordinals ...int) func(*World) {
	return func(w *World) {
		if w.Outages == nil {
			w.Outages = map[Outage]time.Duration{}
		}
		for _, o := range Next(*w).Outages {
			if slices.Contains(ordinals, o.ID.Ordinal) {
				w.Outages[o] = since
			}
		}
	}
}

// restarts has the first member report this cause, and its containers so many restarts.
func restarts(cause causes.Cause, counts ...int) func(*World) {
	return func(w *World) {
		r := w.Slots[0].Report
		r.Cause, r.Message = cause, "again"
		for _, n := range counts {
			r.Containers = append(r.Containers, records.ContainerReport{Restarts: n})
		}
	}
}

func TestCureOrdered(t *testing.T) {
	check(t, []rule{
		{name: "the forced-rollback wedge: a fixed file alone cures it", world: "ordered 3 n1 update=h3 current=h1 0:ready 1:ready 2:missing/h2?",
			want: "stop=2/Update | 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "and so does a rollback", world: "ordered 3 n1 update=h1 current=h1 0:ready 1:ready 2:missing/h2?",
			want: "stop=2/Update | 2:Stopping"},
		{name: "it returns on its target", world: "ordered 3 n1 update=h3 current=h1 0:ready 1:ready 2:turned/h2?",
			want: "start=2/Update@n1/h3 | 2:Starting 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "also when the very first revision was bad", world: "ordered 3 n1 update=h2 current=h1? 0:missing/h1?",
			want: "stop=0/Update | 0:Stopping 1:WaitingForPredecessor 2:WaitingForPredecessor"},
		{name: "or only never was ready", world: "ordered 1 n1 update=h2 current=h1? 0:running/h1?",
			want: "stop=0/Update | 0:Stopping"},
		{name: "one that only never was ready on an abandoned revision", world: "ordered 2 n1 update=h3 current=h1 0:ready 1:running/h2?",
			want: "stop=1/Update | 1:Stopping 0:WaitingForTurn"},
		{name: "a starting one on the completed revision is not broken", world: "ordered 2 n1 update=h2 current=h1 0:ready 1:starting",
			want: "| 1:Starting 0:WaitingForTurn"},
		{name: "one that was available on the abandoned revision is not broken", world: "ordered 2 n1 update=h3 current=h1 0:ready 1:running/h2",
			want: "| 1:NotReady 0:WaitingForTurn"},
		{name: "a crash loop on the completed revision is", world: "ordered 2 n1 update=h2 current=h1 0:loop 1:ready",
			want: "stop=0/Update | 0:Stopping 1:WaitingForTurn"},
		{name: "killed for its memory again and again is", world: "ordered 1 n1 update=h2 current=h1 0:running",
			change: restarts("OOMKilled", 0, 2), want: "stop=0/Update | 0:Stopping"},
		{name: "killed for its health, too", world: "ordered 1 n1 update=h2 current=h1 0:running",
			change: restarts("Unhealthy", 2), want: "stop=0/Update | 0:Stopping"},
		{name: "once is no loop", world: "ordered 1 n1 update=h2 current=h1 0:running",
			change: restarts("OOMKilled", 1, 1), want: "| 0:OOMKilled"},
		{name: "ready but young is not broken, whatever was before", world: "ordered 2 min=5 n1 update=h2 current=h1 0:young 1:ready",
			change: restarts("CrashLoop", 3), want: "| 0:CrashLoop 1:WaitingForTurn"},
		{name: "what its volume lacks is no cause of its template", world: "ordered 1 n1 update=h2 current=h1 0:running",
			change: func(w *World) { w.Slots[0].Report.Cause, w.Slots[0].Report.Message = "VolumeRefused", "x" }, want: "| 0:VolumeRefused"},
		{name: "broken on its target it waits for another file", world: "ordered 1 n1 0:missing", want: "| 0:ImageMissing"},
		{name: "a silent node's is not judged", world: "ordered 2 n1 n2~ update=h3 current=h1 0:ready 1:missing@n2/h2?", want: "| 1:NodeSilent 0:WaitingForTurn"},
		{name: "highest first", world: "ordered 3 n1 update=h2 current=h1 0:loop 1:loop 2:loop",
			want: "stop=2/Update | 0:CrashLoop 1:CrashLoop 2:Stopping"},
		{name: "it returns before those below are replaced", world: "ordered 3 n1 update=h2 current=h1 0:loop 1:loop 2:turned",
			want: "start=2/Update@n1/h2 | 0:CrashLoop 1:CrashLoop 2:Starting"},
		{name: "the next waits until it is available", world: "ordered 3 n1 update=h2 current=h1 0:loop 1:loop 2:starting/h2",
			want: "| 0:CrashLoop 1:CrashLoop 2:Starting"},
		{name: "and follows then", world: "ordered 3 n1 update=h2 current=h1 0:loop 1:loop 2:ready/h2",
			want: "stop=1/Update | 0:CrashLoop 1:Stopping"},
		{name: "a dead one between does not wedge them", world: "ordered 3 n1 update=h2 current=h1 0:loop 1:over 2:turned",
			want: "start=2/Update@n1/h2 | 0:CrashLoop 1:WaitingForPredecessor 2:Starting"},
		{name: "nor does a well one that starts there", world: "ordered 3 n1 update=h2 current=h1 0:loop 1:starting 2:turned",
			want: "| 0:CrashLoop 1:Starting 2:WaitingForPredecessor"},
		{name: "one above that ends for another cause does not hold it", world: "ordered 2 n1 update=h2 current=h1 0:loop 1:stopping/h2",
			want: "stop=0/Update | 0:Stopping 1:Stopping"},
		{name: "never ready for longer than the deadline is broken, also on the completed revision", world: "ordered 2 n1 update=h2 current=h1 0:never 1:ready",
			change: out(600*time.Second, 0), want: "stop=0/Update | 0:Stopping 1:WaitingForTurn", says: "it did not become ready in this life in 600 s"},
		{name: "never ready for less is starting still", world: "ordered 2 n1 update=h2 current=h1 0:never 1:ready",
			change: out(599*time.Second, 0), want: "| 0:NotReady 1:WaitingForTurn"},
		{name: "the allowance of its own startup probe comes on top", world: "ordered 2 n1 update=h2 current=h1 0:never 1:ready",
			change: both(out(600*time.Second, 0), startup(50)), want: "| 0:NotReady 1:WaitingForTurn"},
		{name: "and has an end", world: "ordered 2 n1 update=h2 current=h1 0:never 1:ready",
			change: both(out(650*time.Second, 0), startup(50)), want: "stop=0/Update | 0:Stopping 1:WaitingForTurn"},
		{name: "one that never said a word, too", world: "ordered 2 n1 update=h2 current=h1 0:assigned 1:ready",
			change: out(600*time.Second, 0), want: "stop=0/Update | 0:Stopping 1:WaitingForTurn"},
		{name: "never ready on its target it waits for another file", world: "ordered 1 n1 0:never", change: out(time.Hour, 0), want: "| 0:NotReady"},
		{name: "below the partition the update's revision is not an abandoned one", world: "ordered 2 partition=2 n1 update=h2 current=h1 0:ready 1:running/h2?",
			want: "| 1:NotReady"},
		{name: "below the partition only back to the current one", world: "ordered 2 partition=2 n1 update=h2 current=h1 0:ready 1:missing/h2?",
			want: "stop=1/Update | 1:Stopping"},
		{name: "a member on the current one below the partition is on its target", world: "ordered 2 partition=2 n1 update=h2 current=h1 0:ready 1:loop",
			want: "| 1:CrashLoop"},
		{name: "Never opts out", world: "ordered 2 never n1 update=h3 current=h1 0:ready 1:missing/h2?", want: "| 1:ImageMissing 0:WaitingForTurn"},
		{name: "and then nobody returns before it", world: "ordered 3 never n1 update=h2 current=h1 0:loop 1:ready 2:turned",
			want: "| 0:CrashLoop 2:WaitingForPredecessor 1:WaitingForTurn"},
		{name: "a refused life is not tried again on an old revision", world: "ordered 2 n1 update=h2 current=h1 0:ready 1:failed",
			want: "start=1/Replace@n1/h2 | 1:Starting 0:WaitingForTurn"},
		{name: "nor one that ended without a chance on an abandoned one", world: "ordered 2 n1 update=h3 current=h1 0:ready 1:over/h2?",
			want: "start=1/Replace@n1/h3 | 1:Starting 0:WaitingForTurn"},
		{name: "but one that ended so on the completed one is", world: "ordered 2 n1 update=h2 current=h1 0:ready 1:over/h1?",
			want: "start=1/Replace@n1 | 1:Starting 0:WaitingForTurn"},
		{name: "what is not known any more cannot be run", world: "ordered 2 n1 update=h2 current=h1 0:ready 1:over/h9",
			want: "start=1/Replace@n1/h2 | 1:Starting 0:WaitingForTurn"},
		{name: "the rest after failures on another revision does not hold it", world: "ordered 2 n1 update=h3 current=h1 0:ready 1:turned/h2?",
			change: func(w *World) { w.Rest = map[spec.Identity]time.Duration{w.Slots[1].ID: time.Minute} }, want: "start=1/Update@n1/h3 | 1:Starting 0:WaitingForTurn"},
		{name: "one that stops already is not ended again", world: "ordered 1 n1 update=h3 current=h1 0:stopping/h2?", want: "| 0:Stopping"},
		{name: "one is disturbed at a time", world: "ordered 2 n1 update=h3 current=h1 0:over 1:missing/h2?",
			want: "stop=1/Update | 0:WaitingForTurn 1:Stopping"},
		{name: "surplus waits", world: "ordered 1 n1 update=h3 current=h1 0:missing/h2? 1:ready",
			want: "stop=0/Update | 0:Stopping 1:WaitingForSurvivors"},
	})
}

func TestCureParallel(t *testing.T) {
	check(t, []rule{
		{name: "healthy ones beside them as far as the budget allows", world: "parallel 5 max=3 n1 update=h2 current=h1 0:ready 1:ready 2:ready 3:loop 4:turning",
			want: "stop=3/Update stop=2/Update | 3:Stopping 4:Stopping 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "none beyond it", world: "parallel 4 max=2 n1 update=h2 current=h1 0:ready 1:ready 2:loop 3:loop",
			want: "stop=3/Update stop=2/Update | 2:Stopping 3:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "those that never were ready in time are broken, all at once", world: "parallel 3 n1 update=h2 current=h1 0:never 1:never 2:ready",
			change: out(600*time.Second, 0, 1), want: "stop=1/Update stop=0/Update | 0:Stopping 1:Stopping 2:WaitingForTurn"},
		{name: "all broken ones at once, before the healthy", world: "parallel 4 n1 update=h3 current=h1 0:missing/h2? 1:ready 2:loop 3:missing/h2?",
			want: "stop=3/Update stop=2/Update stop=0/Update | 0:Stopping 2:Stopping 3:Stopping 1:WaitingForTurn"},
		{name: "it costs nothing from the budget, but is waited for", world: "parallel 2 n1 update=h2 current=h1 0:loop 1:ready",
			want: "stop=0/Update | 0:Stopping 1:WaitingForTurn"},
		{name: "nor one that is left broken", world: "parallel 2 never n1 update=h2 current=h1 0:loop 1:ready",
			want: "stop=1/Update | 0:CrashLoop 1:Stopping"},
		{name: "one whose node is silent costs", world: "parallel 2 n1 n2~ update=h2 current=h1 0:loop@n2 1:ready",
			want: "| 0:NodeSilent 1:WaitingForTurn"},
	})
}

// startup gives h1 a startup probe that allows so many seconds.
func startup(seconds int32) func(*World) {
	return func(w *World) {
		w.Revisions[0].Template.Spec.Containers = []spec.Container{{StartupProbe: &spec.Probe{PeriodSeconds: 1, FailureThreshold: seconds}}}
	}
}

func both(a, b func(*World)) func(*World) {
	return func(w *World) { a(w); b(w) }
}
