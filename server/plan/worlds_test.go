package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// The states in which a member may be when the good template comes, as kit_test.go writes
// them: on the completed revision, on one that was given up, on the good one, or without a life.
var states = strings.Fields(`
	ready/h1 loop/h1 missing/h1 running/h1 never/h1 starting/h1 over/h1 failed/h1
	ready/h2 loop/h2? missing/h2? running/h2 running/h2? never/h2? over/h2?
	ready/h3 never/h3? starting/h3? turned/h1 turning/h2 none`)

// takes is how long a new life of the good template takes to become ready: longer than a lapse.
const takes = 100 * time.Second

// TestEveryWorldConverges: whatever became of three members, a good template is all it takes,
// and on the way no cure stops what may serve beyond the budget.
func TestEveryWorldConverges(t *testing.T) {
	for _, set := range []string{
		"ordered current=h1", "parallel current=h1", "parallel max=2 current=h1", "Recreate current=h1",
		"ordered partition=2 current=h1?", "parallel partition=2 current=h1?",
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			for i := range len(states) * len(states) * len(states) {
				a, b, c := states[i%len(states)], states[i/len(states)%len(states)], states[i/len(states)/len(states)]
				if (quick || testing.Short()) && i%11 != 0 {
					continue
				}
				line := fmt.Sprintf("%s 3 n1 update=h3 0:%s 1:%s 2:%s", set, a, b, c)
				if strings.Contains(set, "partition") { // h1 never was completed
					line = strings.ReplaceAll(strings.ReplaceAll(line, "/h1", "/h1?"), "ready/h1?", "ready/h1")
				}
				if why := newOutlook(t, line).run(); why != "" {
					t.Fatalf("world %s\n%s", line, why)
				}
			}
		})
	}
}

// outlook is a world that nobody touches any more.
type outlook struct {
	w      World
	now    time.Duration
	ready  map[life]time.Duration // when lives of the good template are
	before map[life]bool          // lives of the beginning stay as they are
	log    []string
}

func newOutlook(t *testing.T, line string) *outlook {
	o := &outlook{w: world(t, line), ready: map[life]time.Duration{}, before: map[life]bool{}}
	o.w.Table = false
	for i := range o.w.Slots {
		s := &o.w.Slots[i]
		m := s.Member
		switch {
		case m == nil:
		case m.Revision == "h3" && !s.Report.Ready: // what begins on the good one comes up
			o.ready[lifeOf(m)] = takes
		default:
			o.before[lifeOf(m)] = true
		}
	}
	return o
}

// run plans, obeys and lets time go by until all is as asked; else it says what is wrong.
func (o *outlook) run() string {
	for range 300 {
		p := Next(o.w)
		if why := o.stopsWhatServes(p); why != "" {
			return why + ": " + brief(p) + "\n" + strings.Join(o.log, "\n")
		}
		o.log = append(o.log, fmt.Sprintf("%s %s", o.now, brief(p)))
		old := o.w.Status
		o.w = apply(o.w, p)
		o.pass(p, 0)
		if o.obey() || len(p.Actions) > 0 || old.CurrentRevision != p.Status.CurrentRevision {
			continue
		}
		if o.done() {
			return ""
		}
		next := p.Wake
		for _, at := range o.ready {
			if at > o.now && (next == 0 || at-o.now < next) {
				next = at - o.now
			}
		}
		if next == 0 {
			return "it is stuck:\n" + strings.Join(o.log, "\n")
		}
		o.pass(p, next)
	}
	return "it does not come to rest:\n" + strings.Join(o.log, "\n")
}

// pass lets time go by as an engine measures it.
func (o *outlook) pass(p Plan, d time.Duration) {
	if p.Reached.Beyond(o.w.Reached) {
		o.w.Standstill = 0
	}
	o.w.Reached = p.Reached
	if p.Clock {
		o.w.Standstill += d
	}
	o.now += d
	o.w.Outages = lasting(o.w.Outages, p.Outages, d)
}

// obey has the host do one thing of every life. A new one of an old revision is the worst
// there may be: it runs and never becomes ready, and nothing says why.
func (o *outlook) obey() (any bool) {
	for i := range o.w.Slots {
		s := &o.w.Slots[i]
		m := s.Member
		if m == nil || s.Report != nil && s.Report.Phase.Over() {
			continue
		}
		r := records.Report{ID: s.ID, Token: m.Token, Node: m.Node, Session: 5, Phase: records.PhaseRunning}
		at, comes := o.ready[lifeOf(m)]
		switch {
		case m.Goal == records.GoalStop:
			r.Phase = records.PhaseStopped
		case o.before[lifeOf(m)]:
			continue
		case m.Revision == "h3" && !comes:
			o.ready[lifeOf(m)] = o.now + takes
		case m.Revision == "h3" && at <= o.now:
			r.Ready, r.ReadyFor = true, time.Hour
		}
		if old := s.Report; old == nil || old.Phase != r.Phase || old.Ready != r.Ready {
			s.Report, any = &r, true
		}
	}
	return any
}

// done: all three are available on the good revision, which is completed.
func (o *outlook) done() bool {
	for i := range 3 {
		s := slotOf(&o.w, spec.Identity{Namespace: "default", Set: "db", Ordinal: i})
		if s.Member == nil || s.Member.Revision != "h3" || s.Report == nil || !s.Report.Ready {
			return false
		}
	}
	return o.w.Status.CurrentRevision == "h3" && o.w.Status.CurrentCompleted
}

// stopsWhatServes says what a plan stops that may serve, beyond the budget: a member that
// was ready in its life and is not known to be broken. One that lapsed may go as the only
// one that is down, or after the deadline while no other is on its way.
func (o *outlook) stopsWhatServes(p Plan) string {
	if o.w.Set.Spec.UpdateStrategy.Type == spec.RecreateStrategy {
		return ""
	}
	budget, down, coming, well, lapsed := 1, 0, false, 0, 0
	if r := o.w.Set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.MaxUnavailable != nil {
		budget = int(r.MaxUnavailable.Number)
	}
	deadline := o.w.Set.Spec.ProgressDeadline()
	for i := range 3 {
		s := slotOf(&o.w, spec.Identity{Namespace: "default", Set: "db", Ordinal: i})
		switch {
		case s.Member == nil:
			down++
		case s.Member.Goal == records.GoalStop || s.Member.Revision == "h3" && !s.Report.Phase.Over() && !s.Report.Ready:
			down++
			coming = coming || o.w.Outages[Outage{s.ID, s.Member.Token, s.Member.Goal, 5}] < deadline
		case !s.Report.Ready && (s.Report.Phase.Over() || o.serves(s)):
			down++
		}
	}
	for _, a := range p.Actions {
		stop, is := a.(Stop)
		if !is {
			continue
		}
		s := slotOf(&o.w, stop.ID)
		if !o.serves(s) {
			continue
		}
		well, lapsed = well+one(s.Report.Ready), lapsed+one(!s.Report.Ready)
		late := o.w.Outages[Outage{s.ID, s.Member.Token, s.Member.Goal, 5}] >= deadline && !coming && lapsed == 1
		switch {
		case s.Report.Ready && down+well > budget:
			return fmt.Sprintf("%s is well and is stopped beyond the budget", s.ID)
		case !s.Report.Ready && down > budget && !late:
			return fmt.Sprintf("%s lapsed and is stopped beyond the budget", s.ID)
		}
	}
	return ""
}

// serves: the life was ready, and nothing says that it cannot be again.
func (o *outlook) serves(s *Slot) bool {
	return s.Report != nil && s.Report.Phase == records.PhaseRunning && s.Report.Cause == "" && s.Identity.ReadyToken == s.Member.Token
}
