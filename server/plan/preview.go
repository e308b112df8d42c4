package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// Forecast is what will happen to a set if nobody interferes and nothing more fails.
type Forecast struct {
	// Steps are what is done, in its order. What is only noted in the store is left out.
	Steps []ForecastStep
	// Never are the members that wait when nothing follows any more, and why: without a
	// person, or another event from outside, this stays so.
	Never []Blocked
	// Ending are the members whose lives were to stop before, and stop now.
	Ending []spec.Identity
	// Kept are the members that end up on another revision than the template's, highest first.
	Kept []spec.Identity
	// Budget is how many members an update may take down at once. Floor is how many must stay
	// available, FloorText says whose rule that is; 0 and "": none.
	Budget, Floor int
	FloorText     string
	// Before and After are the set's world at both ends.
	Before, After World
	// Cut: the set is too large to be followed to the end, and more steps follow.
	Cut bool
}

// ForecastStep is one action.
type ForecastStep struct {
	Action Action
	// Down is how many of the members that are wanted are not available once it is done.
	Down int
	// First are the members on which the step waits because they are not well, and why. They
	// are assumed to become available, or, if After is given, to stay so for that long.
	First []Blocked
	After time.Duration
}

// A preview of more than fewRounds looks at mostWork members, summed over its rounds, and no more.
const (
	mostWork  = 40_000
	fewRounds = 12
)

// Preview follows Next to the end. It does to a copy of w what Next decides, and lets every node do
// its part: lives that start become available, those that are to stop do, and volumes are dealt
// with. When nothing more follows, it first assumes that members that were not well before
// become available, then that nobody is busy, and then that time goes by. It is pure as Next is.
func Preview(w World) Forecast {
	p := newPreview(w)
	work := 0
	for round := 0; ; round++ {
		next := Next(p.w)
		if work > mostWork && round > fewRounds {
			p.f.Cut, p.f.Never = true, next.Blocked
			break
		}
		work += p.looks()
		moved := p.act(next)
		moved = p.nodesAct() || moved
		if moved || p.start() || p.recover(next) || p.rest(next) || p.pass(next) {
			continue
		}
		p.f.Never = next.Blocked
		break
	}
	p.f.Before, p.f.After, p.f.Kept = w, p.w, p.kept()
	return p.f
}

// looks is how many members a round looks at, also those without any record.
func (p *previewRun) looks() int {
	if p.w.Set == nil {
		return 1 + len(p.w.Slots)
	}
	return 1 + max(len(p.w.Slots), p.w.Set.Replicas())
}

// previewRun is a run of Preview.
type previewRun struct {
	w     World
	f     Forecast
	begun map[spec.Identity]spec.Token // lives that began in it
	// ordered are the changes in place that were ordered in it.
	ordered map[spec.Identity]spec.Sequence
	first   []Blocked // what the next step waits for
	after   time.Duration
}

func newPreview(w World) *previewRun {
	p := &previewRun{w: w, begun: map[spec.Identity]spec.Token{}, ordered: map[spec.Identity]spec.Sequence{}}
	p.w.Slots, p.w.Nodes, p.w.Claims = slices.Clone(w.Slots), slices.Clone(w.Nodes), cloneClaims(w.Claims)
	p.w.Rest, p.w.Table, p.w.Now = maps.Clone(w.Rest), false, time.Time{}
	p.w.VolumeID, p.w.prepared = countIDs("new-"), true
	if w.Set != nil {
		s := newStep(w)
		p.f.Budget = s.budget()
		p.f.Floor, _ = s.floor()
		if p.f.Floor > 0 {
			p.f.FloorText = s.floorText()
		}
	}
	for i := range w.Slots {
		if m := w.Slots[i].Member; m != nil && m.Goal == records.GoalStop && !reportedOver(&w.Slots[i]) {
			p.f.Ending = append(p.f.Ending, m.ID)
		}
		p.endBooted(&p.w.Slots[i]) // a node that booted says of its lives that they are over
	}
	slices.Reverse(p.f.Ending)
	return p
}

// countIDs makes ids of volumes that are counted from 1.
func countIDs(prefix string) func() records.VolumeID {
	made := 0
	return func() records.VolumeID {
		made++
		return records.VolumeID(fmt.Sprint(prefix, made))
	}
}

// act does what is decided; it reports whether anything was.
func (p *previewRun) act(next Plan) bool {
	batch := next.Batch()
	down := p.down(next, batch)
	for _, a := range batch {
		p.load(a, -1)
		p.w.apply(a)
		p.load(a, 1)
		switch a := a.(type) {
		case Start:
			p.begun[a.Member.ID] = a.Member.Token
		case ChangeInPlace:
			p.ordered[a.ID] = a.Change.ID
		case Promote, Forget, OrderHook, Forgotten, PutJobs, OrderJob, MarkReady, AddRevision, RaiseRevision, PruneRevision, ForgetBootstrapped, VoidMoveRequest:
			continue
		case MarkBootstrapped:
			if !a.Inherited {
				continue
			}
		}
		p.f.Steps = append(p.f.Steps, ForecastStep{Action: a, Down: down, First: p.first, After: p.after})
		p.first, p.after = nil, 0
	}
	old := p.w.Status
	if p.w.Set != nil {
		p.w.Status = &next.Status
	}
	if next.Reached.Beyond(p.w.Reached) {
		p.w.Standstill = 0
	}
	p.w.Reached = next.Reached
	p.lasted(next.Outages, 0)
	return len(batch) > 0 || p.w.Status != nil && changed(old, p.w.Status)
}

// changed reports whether the planner may decide otherwise by the new status.
func changed(old, now *records.SetStatus) bool {
	return old == nil || old.CurrentRevision != now.CurrentRevision || old.CurrentCompleted != now.CurrentCompleted ||
		old.RolledBackFrom != now.RolledBackFrom || old.ServiceName != now.ServiceName
}

// down counts the wanted members that are not available once a batch is done.
func (p *previewRun) down(next Plan, batch []Action) (n int) {
	if p.w.Set == nil || p.w.Set.Deleting {
		return 0
	}
	away := map[spec.Identity]bool{}
	for _, o := range next.Outages {
		away[o.ID] = true
	}
	for _, a := range batch {
		switch a := a.(type) {
		case Stop:
			away[a.ID] = true
		case ChangeInPlace:
			away[a.ID] = true
		}
	}
	wanted := p.w.Set.Range()
	n = p.w.Set.Replicas()
	for i := range p.w.Slots {
		slot := &p.w.Slots[i]
		n -= one(slot.Member != nil && wanted.Has(slot.ID.Ordinal) && !away[slot.ID])
	}
	return n
}

// load counts what a life takes of its node: before and after its record is replaced.
func (p *previewRun) load(a Action, sign int) {
	var id spec.Identity
	switch a := a.(type) {
	case Start:
		id = a.Member.ID
	case Forget:
		id = a.ID
	case Promote:
		id = a.ID
	case Stop:
		id = a.ID
	case ChangeInPlace:
		id = a.ID
	default:
		return
	}
	m := p.w.slotOf(id).Member
	if m == nil {
		return
	}
	n := proof.FindNode(p.w.Nodes, m.Node)
	of := func(h spec.RevisionHash) *spec.MemberSpec {
		i := slices.IndexFunc(p.w.Revisions, func(r *records.Revision) bool { return r.Hash == h })
		if i < 0 {
			return nil
		}
		return &p.w.Revisions[i].TemplateOf(id.Ordinal).Spec
	}
	t := of(m.Revision)
	if n == nil || t == nil {
		return
	}
	cpu, memory := m.Requests(of)
	n.Lives += sign
	n.CPUMillis += int64(sign) * cpu
	n.MemoryBytes += int64(sign) * memory
	n.HugePages = n.HugePages.Plus(t.HugePages(), int64(sign))
	if n.Residents == nil {
		return
	}
	n.Residents = slices.DeleteFunc(slices.Clone(n.Residents), func(r Resident) bool { return r.ID == id })
	if labels := p.w.Set.Spec.Template.Metadata.Labels; sign > 0 {
		n.Residents = append(n.Residents, Resident{ID: id, Labels: labels, Revision: m.Revision}.Running(t))
	}
}

// kept are the members that are wanted and run another revision than the template's.
func (p *previewRun) kept() (ids []spec.Identity) {
	if p.w.Set == nil || p.w.Set.Deleting {
		return nil
	}
	wanted := p.w.Set.Range()
	for i := len(p.w.Slots) - 1; i >= 0; i-- {
		if m := p.w.Slots[i].Member; m != nil && wanted.Has(m.ID.Ordinal) && m.Revision != p.w.TemplateHash {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
