package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

func TestAWarningIsAboutWhatDoesNotComeByItself(t *testing.T) {
	var p plan.Plan
	for i, reason := range []causes.BlockedReason{causes.BlockedTurn, causes.BlockedNoRoom, causes.BlockedStarting, causes.BlockedPaused, causes.BlockedNodeSilent} {
		p.Blocked = append(p.Blocked, plan.Blocked{ID: member(i), Reason: reason, Text: "why"})
	}
	var got []string
	for _, n := range warnings(db, p, time.Now()) {
		got = append(got, fmt.Sprint(n.name, " ", n.event.Member, " ", n.event.Type, " ", n.event.Reason))
	}
	want := []string{"wait-1-NoRoom db-1 Warning NoRoom", "wait-4-NodeSilent db-4 Warning NodeSilent"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAStalledOrRolledBackRolloutHasAnEvent(t *testing.T) {
	condition := func(kind, status string) []records.Condition {
		return []records.Condition{{Type: kind, Status: status, Reason: "Late", Message: "why"}}
	}
	for _, c := range []struct {
		name   string
		status records.SetStatus
		want   string
	}{
		{"it goes on", records.SetStatus{Conditions: condition(plan.ConditionStalled, "False")}, ""},
		{"it stands", records.SetStatus{Conditions: condition(plan.ConditionStalled, "True")}, "stalled-h2-1 Late"},
		{"something else is so", records.SetStatus{Conditions: condition(plan.ConditionProgressing, "True")}, ""},
		{"it went back", records.SetStatus{RolledBackFrom: "h2"}, "back-h2 RolledBack"},
	} {
		var got []string
		for _, n := range rolloutEvents(db, plan.Plan{Status: c.status, Reached: plan.Progress{Aim: "h2", Arrived: 1}}, time.Now()) {
			got = append(got, n.name+" "+n.event.Reason)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestACauseIsCountedOnceEachTimeItComesBack(t *testing.T) {
	stored := func(count int) map[string]*records.Event { return map[string]*records.Event{"x": {Count: count}} }
	x := []namedEvent{{name: "x"}}
	var r recurrences
	for _, step := range []struct {
		name string
		list []namedEvent
		old  map[string]*records.Event
		want int // the count that it is to get; 0: none
	}{
		{"a new leader finds it told", x, stored(1), 0},
		{"it goes on", x, stored(1), 0},
		{"it is over", nil, stored(1), 0},
		{"it comes back", x, stored(1), 2},
		{"that is not stored yet", x, stored(1), 2},
		{"and then it is", x, stored(2), 0},
		{"it is over again", nil, stored(2), 0},
		{"and back", x, stored(2), 3},
		{"its event is gone with its lease before", x, nil, 0},
	} {
		r.observe(step.list, func(name string) *records.Event { return step.old[name] })
		if got := r.due["x"]; got != step.want {
			t.Errorf("%s: count %d is due, want %d", step.name, got, step.want)
		}
	}
}

// step is what one tells of a set with so many events: causes that are new, some that
// came back, by number, and more that are new.
type step struct {
	old   int
	lease store.LeaseID
	fresh int
	back  []int
	more  int
}

// tell returns what was added, raised and removed. The higher the number of an old event
// the older it is; the two oldest are of one time.
func (st step) tell(t *testing.T) (added, raised, gone []string) {
	name := func(i int) string { return fmt.Sprintf("wait-%03d", i) }
	notes := func(kind string, n int) (list []namedEvent) {
		for i := range n {
			list = append(list, namedEvent{name: fmt.Sprintf("%s-%03d", kind, i)})
		}
		return list
	}
	var ops []store.Op
	for i := range st.old {
		at := time.Unix(2000-int64(min(i, st.old-2)), 0)
		ops = append(ops, store.Put(store.EventKey(db, name(i)), store.Encode(records.Event{Ref: db, Count: 1, At: at})))
	}
	var back []namedEvent
	due := map[string]int{}
	for _, i := range st.back {
		back, due[name(i)] = append(back, namedEvent{name: name(i)}), 2
	}
	var u decision
	look, _ := addresses(t, ops...)
	look(func(v cache.View) {
		l := newEventLog(v, db, st.lease)
		l.write(&u, notes("fresh", st.fresh))
		l.recount(&u, append(back, namedEvent{name: "another"}), due)
		l.write(&u, append(back, notes("more", st.more)...))
	})
	for _, op := range u.Then {
		what := strings.TrimPrefix(op.Key, store.EventKey(db, ""))
		switch {
		case op.Delete:
			gone = append(gone, what)
		case strings.HasPrefix(what, "wait"):
			raised = append(raised, what)
		default:
			added = append(added, what)
		}
	}
	return added, raised, gone
}

func TestAStepTellsFewEventsAndTheOldestGo(t *testing.T) {
	many := make([]int, 40)
	for i := range many {
		many[i] = i
	}
	for _, c := range []struct {
		name          string
		step          step
		added, raised int
		gone          string
	}{
		{"without a lease nothing is told", step{old: 2, back: []int{0}, more: 3}, 0, 0, "[]"},
		{"there is room", step{2, 7, 1, []int{0}, 2}, 3, 1, "[]"},
		{"not all at once", step{2, 7, 0, []int{0}, 30}, eventsAtOnce - 1, 1, "[]"},
		{"nor all that came back", step{40, 7, 0, many, 5}, 0, eventsAtOnce, "[]"},
		{"the last place is taken", step{maxEvents - 1, 7, 1, nil, 0}, 1, 0, "[]"},
		{"the oldest goes, of one time the first by name", step{maxEvents, 7, 1, nil, 0}, 1, 0, "[wait-098]"},
		{"the oldest go", step{maxEvents, 7, 1, nil, 2}, 3, 0, "[wait-098 wait-099 wait-097]"},
		{"what came back is not among them", step{maxEvents, 7, 0, []int{98, 97}, 2}, 2, 2, "[wait-099 wait-096]"},
		{"what went does not come back", step{maxEvents, 7, 1, []int{98}, 0}, 1, 0, "[wait-098]"},
	} {
		added, raised, gone := c.step.tell(t)
		if len(added) != c.added || len(raised) != c.raised || fmt.Sprint(gone) != c.gone {
			t.Errorf("%s: %d are added, %d raised, %s gone; want %d, %d and %s", c.name, len(added), len(raised), gone, c.added, c.raised, c.gone)
		}
	}
}
