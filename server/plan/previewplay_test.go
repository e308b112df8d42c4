package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// TestWhatAPreviewSaysHappens: random worlds are run with nodes that act late and in any order,
// and an engine that dies between any two actions. What they do is what was foretold: whom
// they stop in which order, whom they start, how many are down at once, which volumes go,
// and what never happens.
func TestWhatAPreviewSaysHappens(t *testing.T) {
	runs := 6000
	if quick || testing.Short() {
		runs = 600
	}
	disturbed, never, waited, volumes := 0, 0, 0, 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 1))
		line := randomWorld(r)
		w := world(t, line)
		f := Preview(w)
		run := &played{w: w, r: r, crashes: seed%3 == 0, slow: seed%3 == 1, new: map[life]bool{}}
		if w.Set != nil && !w.Set.Deleting {
			run.away = run.down()
		}
		if why := run.play(); why != "" {
			t.Fatalf("seed %d, world %s: %s", seed, line, why)
		}
		if why := run.differs(f); why != "" {
			t.Fatalf("seed %d, world %s: %s\nforetold %s\nhappened %s | down=%d never=%s\n%s", seed, line, why,
				foretold(f), strings.Join(run.acts, " "), run.most, waiting(run.rest), strings.Join(run.log, "\n"))
		}
		disturbed += one(len(f.Steps) > 0)
		never += one(len(f.Never) > 0)
		for _, step := range f.Steps {
			waited += one(len(step.First) > 0)
			_, drops := step.Action.(DropVolume)
			volumes += one(drops)
		}
	}
	for what, n := range map[string]int{"sets that are disturbed": disturbed, "sets with members that wait for ever": never, "waits": waited, "volumes that go": volumes} {
		if n < runs/12 {
			t.Errorf("%d %s in %d worlds; the worlds hold too little", n, what, runs)
		}
	}
}

// randomWorld is a line of words: a set in the middle of anything.
func randomWorld(r *rand.Rand) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	replicas := r.IntN(5)
	words := []string{pick("ordered", "ordered", "parallel"), fmt.Sprint(replicas), "n1", pick("n2", "n2", "n2~", "n2!")}
	strategy := pick("", "max=2", "max=3", "max=60%", "partition=1", "partition=2", "OnDelete", "Recreate", "never")
	words = append(words, strategy)
	words = append(words, pick("", "", "", "floor=1", "floor=2", "floor=3", "floor=60%"))
	pause := "paused"
	if strategy == "Recreate" { // in the middle of one it depends on who is gone first
		pause = ""
	}
	words = append(words, pick("", "", "", "", "", pause, "deleting", "deleting", "replace=60", "rollback deadline=90", "orphaned"))
	words = append(words, pick("", "volumes", "volumes whenScaled=Delete", "volumes whenDeleted=Delete", "volumes whenScaled=Delete whenDeleted=Delete"))
	words = append(words, pick("update=h3 current=h1", "update=h3 current=h1", "update=h3 current=h2?", "update=h2 current=h2", ""))
	for n := range replicas + r.IntN(3) {
		state := pick("ready", "ready", "ready", "ready", "starting", "never", "running", "loop", "missing", "over", "failed", "stopping", "turning", "turned", "assigned", "none", "rebooted", "stray")
		if !strings.Contains(strings.Join(words, " "), "update=") {
			words = append(words, fmt.Sprintf("%d:%s@%s", n, state, pick("n1", "n1", "n2")))
			continue
		}
		words = append(words, fmt.Sprintf("%d:%s@%s/%s", n, state, pick("n1", "n1", "n2"), pick("h1", "h2", "h2?", "h3", "h3?")))
	}
	return strings.Join(words, " ")
}

// played is a world as it goes on.
type played struct {
	w       World
	r       *rand.Rand
	crashes bool          // the engine dies between any two actions
	slow    bool          // lives become ready when all else is done
	away    int           // members down at first; who is broken is not paid for from the budget
	new     map[life]bool // lives that began since
	acts    []string      // as steps writes them
	most    int           // members down at once when one was stopped for the update
	rest    []Blocked     // who waits in the end
	log     []string
}

// play goes on until nothing happens any more; it says what is wrong if that never is.
func (p *played) play() string {
	p.w.Table = false
	for i := range p.w.Slots {
		if m := p.w.Slots[i].Member; m != nil && p.hears(m) && proof.FindNode(p.w.Nodes, m.Node).Session.Boot != m.Boot {
			p.w.Slots[i].Report = reportOf(m, records.PhaseStopped) // its node says so as soon as it is back
		}
	}
	for range 3000 {
		next := Next(p.w)
		p.log = append(p.log, brief(next))
		batch, whole := next.Batch(), true
		if p.crashes && len(batch) > 0 && p.r.IntN(3) == 0 {
			batch, whole = batch[:p.r.IntN(len(batch))], false
		}
		updates := false
		for _, a := range batch {
			p.w = applyOne(p.w, a)
			p.acts = append(p.acts, acted(a)...)
			switch a := a.(type) {
			case Start:
				p.new[lifeOf(&a.Member)] = true
			case Stop:
				updates = updates || a.Reason == records.ReasonUpdate
			}
		}
		if updates {
			p.most = max(p.most, p.down())
		}
		old := p.w.Status
		if p.w.Set != nil && whole {
			p.w.Status = &next.Status
		}
		if next.Reached.Beyond(p.w.Reached) {
			p.w.Standstill = 0
		}
		p.w.Reached = next.Reached
		p.w.Outages = lasting(p.w.Outages, next.Outages, 0)
		changed := !whole || len(batch) > 0 || p.w.Status != nil && (old == nil || !equal(*old, *p.w.Status))
		due := p.due(changed)
		p.r.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
		if some := p.r.IntN(len(due) + 1); changed {
			due = due[:some]
		} else if len(due) > 1 {
			due = due[:1+p.r.IntN(len(due))]
		}
		for _, do := range due {
			do()
		}
		if changed || len(due) > 0 || p.heal(next) {
			continue
		}
		if next.Wake == 0 {
			p.rest = next.Blocked
			return ""
		}
		p.passes(next)
	}
	return "it does not come to rest"
}

// due is what nodes may do now: end what is to end, start what began, deal with volumes.
func (p *played) due(busy bool) (list []func()) {
	var later []func() // lives that become ready
	for i := range p.w.Slots {
		ordinal := p.w.Slots[i].ID.Ordinal
		slot := func() *Slot { return slotOf(&p.w, spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}) }
		s := slot()
		if m := s.Member; m != nil && (s.Report == nil || !s.Report.Phase.Over()) && p.hears(m) {
			switch {
			case m.Goal == records.GoalStop:
				list = append(list, func() { slot().Report = reportOf(m, records.PhaseStopped) })
			case p.new[lifeOf(m)] && s.Report == nil:
				list = append(list, func() { slot().Report = reportOf(m, records.PhaseStarting) })
			case p.new[lifeOf(m)] && !s.Report.Ready:
				later = append(later, func() { slot().Report = readyReport(m) })
			}
		}
		v := s.Volumes["data"]
		if v == nil || !v.Fate.Ordered() || !live(p.w.Nodes, v.Node) || s.Said["data"] != nil {
			continue
		}
		list = append(list, func() {
			slot().Said = map[spec.ClaimName]*records.VolumeReport{"data": {ID: v.ID, Claim: "data", Volume: v.UID, Turn: v.Turn, Node: v.Node, State: records.VolumeTrashed}}
		})
	}
	if p.slow && (busy || len(list) > 0) {
		return list
	}
	return append(list, later...)
}

func live(nodes []Node, name spec.NodeName) bool {
	n := proof.FindNode(nodes, name)
	return n != nil && n.Session != nil
}

// hears: the life's node has a session.
func (p *played) hears(m *records.Member) bool { return live(p.w.Nodes, m.Node) }

func reportOf(m *records.Member, phase records.Phase) *records.Report {
	return &records.Report{ID: m.ID, Token: m.Token, Node: m.Node, Session: 5, Phase: phase, Bound: m.Bound}
}

func readyReport(m *records.Member) *records.Report {
	r := reportOf(m, records.PhaseRunning)
	r.Ready, r.ReadyFor = true, time.Hour
	return r
}

// heal has every member that waits, and lived from the beginning, become ready.
func (p *played) heal(next Plan) (any bool) {
	for _, b := range next.Blocked {
		s := slotOf(&p.w, b.ID)
		if m := s.Member; m != nil && m.Goal == records.GoalRun && !p.new[lifeOf(m)] && p.hears(m) && (s.Report == nil || !s.Report.Phase.Over() && !s.Report.Ready) {
			s.Report, any = readyReport(m), true
		}
	}
	return any
}

// passes lets the time pass after which the plan wants to be asked again.
func (p *played) passes(next Plan) {
	if next.Clock {
		p.w.Standstill += next.Wake
	}
	p.w.Outages = lasting(p.w.Outages, next.Outages, next.Wake)
	p.w.Nodes = slices.Clone(p.w.Nodes)
	for i := range p.w.Nodes {
		if n := &p.w.Nodes[i]; n.Session == nil {
			n.Gone += next.Wake
		}
	}
}

// down counts the wanted members that are not available.
func (p *played) down() int {
	n := p.w.Set.Replicas()
	for _, s := range p.w.Slots {
		m := s.Member
		n -= one(m != nil && p.w.Set.Range().Has(s.ID.Ordinal) && m.Goal == records.GoalRun && p.hears(m) && proof.FindNode(p.w.Nodes, m.Node).Session.Boot == m.Boot && s.Report != nil && s.Report.Ready)
	}
	return n
}

// differs says where what happened is not what was foretold.
func (p *played) differs(f Forecast) string {
	told := steps(f.Steps)
	told = slices.DeleteFunc(told, func(word string) bool { return word[0] == '[' })
	of := func(words []string, prefix string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.HasPrefix(word, prefix) }), " ")
	}
	sorted := func(words []string, prefix string) string {
		return strings.Join(slices.Sorted(slices.Values(strings.Fields(of(words, prefix)))), " ")
	}
	most := mostDown(f)
	bound := max(most, f.Budget) + p.away
	if p.crashes && len(p.rest) > 0 { // half of a batch, and what it waits for never comes
		if p.most > bound || !within(of(p.acts, "-"), of(told, "-")) || !within(sorted(p.acts, "+"), sorted(told, "+")) {
			return "something else is done"
		}
		return ""
	}
	ordered := !p.crashes && p.w.Set != nil && !p.w.Set.Paused && p.w.Set.Spec.PodManagementPolicy == spec.OrderedReady
	switch {
	case of(told, "-") != of(p.acts, "-"):
		return "others are stopped, or in another order"
	case ordered && of(told, "+") != of(p.acts, "+"), sorted(told, "+") != sorted(p.acts, "+"):
		return "others are started, or in another order"
	case sorted(told, "drop") != sorted(p.acts, "drop"), of(told, "inherits") != of(p.acts, "inherits"), of(told, "remove") != of(p.acts, "remove"):
		return "other volumes go, or the set stays or goes"
	case p.most > bound, p.away == 0 && !p.crashes && p.most != most:
		return "more or fewer are down at once"
	case !slices.Equal(waiting(f.Never), waiting(p.rest)):
		return "others wait for ever"
	}
	for i := range f.After.Slots {
		a, b := &f.After.Slots[i], slotOf(&p.w, f.After.Slots[i].ID)
		for claim, v := range a.Volumes {
			if b.Volumes[claim] == nil || b.Volumes[claim].Fate != v.Fate {
				return fmt.Sprintf("another fate of %s", records.VolumeName(v.ID, claim))
			}
		}
	}
	return ""
}

// within reports whether some are words of all, in the same order.
func within(some, all string) bool {
	rest := strings.Fields(all)
	for _, word := range strings.Fields(some) {
		i := slices.Index(rest, word)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}
