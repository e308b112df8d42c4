package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/spec"
)

// revise gives the set's template its revision: the stored one of its hash, raised
// to the newest number when it is an older one (a rollback), or a new one.
func (s step) revise() {
	if s.fresh != nil {
		s.act(AddRevision{Revision: *s.fresh})
		return
	}
	newest := s.world.newestRevision()
	if old := s.storedAs(s.update); old.Number < newest {
		raised := *old
		raised.Number = newest + 1
		s.act(RaiseRevision{Revision: raised})
	}
}

// newRevision is the one of a template that no stored revision has.
func newRevision(w *World) *records.Revision {
	return &records.Revision{
		Ref: w.Set.Ref, SetUID: w.Set.UID, Hash: w.TemplateHash, HashVersion: spec.HashVersion, Number: w.newestRevision() + 1,
		Template: w.Set.Template(), Members: w.Set.Spec.Members, ChangeCause: w.Set.Annotations[records.ChangeCauseAnnotation], CreatedAt: w.Now,
	}
}

// newestRevision is the highest number of a revision; 0: there is none.
func (w *World) newestRevision() (newest int64) {
	for _, r := range w.Revisions {
		newest = max(newest, r.Number)
	}
	return newest
}

// prune removes the oldest revisions that nobody needs, beyond the limit. Needed
// are the current one, the update's, and any that a member runs.
func (s step) prune() {
	limit := defaultHistory
	if n := s.world.Set.Spec.RevisionHistoryLimit; n != nil {
		limit = int(*n)
	}
	if len(s.world.Revisions) <= limit {
		return
	}
	needed := map[spec.RevisionHash]bool{s.currentRevision(): true, s.update: true}
	for _, t := range s.members {
		if m := t.Member; m != nil { // it is due the same, or its target
			needed[m.Revision], needed[m.Runs()] = true, true
		}
	}
	if c := s.world.Folded; c != nil {
		for _, runs := range []map[spec.RevisionHash]int{c.up, c.surplus} {
			for revision := range runs {
				needed[revision] = true
			}
		}
	}
	rest := slices.DeleteFunc(slices.Clone(s.world.Revisions), func(r *records.Revision) bool { return needed[r.Hash] })
	for _, r := range rest[:max(0, len(rest)-limit)] { // ascending by number
		s.act(PruneRevision{Hash: r.Hash, Number: r.Number})
	}
}

// defaultHistory is how many revisions are kept beside the needed ones.
const defaultHistory = 10

// target is the revision on which an ordinal ends up: the update's, or the current
// one below the partition or after a rollback.
func (r rollout) target(t *memberState) spec.RevisionHash {
	if r.belowPartition(t) {
		return r.current
	}
	return r.targetRevision
}

// due is the revision on which the next life of an ordinal starts: what it ran
// last, until its turn in a rollout comes; then its target. A member that dies in
// the middle of a rollout does not jump the queue. Never derived from counts.
func (r rollout) due(t *memberState) spec.RevisionHash {
	target := r.target(t)
	switch {
	case r.held(t) && !r.ran(t):
		return r.current
	case r.held(t):
		return t.Identity.Due
	case !r.ran(t):
		return target // the first life, or one after a scale-down
	case r.onDelete() || r.recreates():
		return target // a missing member moves on
	case t.Member != nil && t.Member.StopReason == records.ReasonUpdate:
		return target // its turn came
	case r.hopeless(t):
		return target
	case r.sameFor(t.ID.Ordinal, t.Identity.Due, target):
		return target
	}
	return t.Identity.Due
}

// hopeless: a life that is over had no chance on its revision, which is not its
// target any more, or the next one has none: the vacant form of rule 2.
func (r rollout) hopeless(t *memberState) bool {
	if !r.replacesBroken() {
		return false
	}
	failed := t.Report != nil && t.Report.Phase == records.PhaseFailed
	return failed || r.abandoned(t.Identity.Due) && t.Identity.AvailableOn != t.Identity.Due || r.lacksClaim(t.Identity.Due) || r.lacksNode(t)
}

// lacksNode: none of the nodes can take a life of what the member ran, as their labels, taints and sizes are now, and one
// of them can take its target.
func (r rollout) lacksNode(t *memberState) bool {
	target := r.target(t)
	return t.Identity.Due != target && !r.placer.Possible(r.boundBy(t, t.Identity.Due)) && r.placer.Possible(r.boundBy(t, target))
}

// boundBy is what a life of a revision asks of its node that does not change with what else runs.
func (r rollout) boundBy(t *memberState, h spec.RevisionHash) *place.Request {
	out := &place.Request{ID: t.ID, Template: r.runs(h, t.ID.Ordinal), Claims: r.world.Set.Spec.VolumeClaimTemplates, Volumes: t.Volumes}
	for _, name := range out.Template.ClaimNames() {
		if c := r.world.Claims[name]; c != nil && c.Record != nil {
			out.Objects = append(out.Objects, c.object(name))
		}
	}
	return out
}

// lacksClaim: members of a revision mount a claim that is not there any more, or is being deleted: none can
// start on it.
func (f *facts) lacksClaim(h spec.RevisionHash) bool {
	t := f.template(h)
	return t != nil && slices.ContainsFunc(t.Spec.ClaimNames(), func(name string) bool {
		c := f.world.Claims[name]
		return c == nil || !c.Unread && (c.Record == nil || c.Record.Deleting)
	})
}

// abandoned: the revision never was completed, and is not what the set goes to.
func (r rollout) abandoned(h spec.RevisionHash) bool {
	return h != r.targetRevision && (h != r.current || !r.proven)
}

func (f *facts) strategy() *spec.UpdateStrategy { return &f.world.Set.Spec.UpdateStrategy }

func (f *facts) onDelete() bool { return f.strategy().Type == spec.OnDeleteStrategy }

func (f *facts) recreates() bool { return f.strategy().Type == spec.RecreateStrategy }

// leaderLast: the member that leads goes down after the others.
func (f *facts) leaderLast() bool {
	r := f.strategy().RollingUpdate
	return r != nil && r.Order == spec.OrderLeaderLast
}

// partition is the ordinal below which members keep the current revision. It counts
// from the first ordinal, reserved ones included.
func (f *facts) partition() int {
	if r := f.strategy().RollingUpdate; r != nil && r.Partition != nil {
		return f.reach.First + int(*r.Partition)
	}
	return f.reach.First
}

// belowPartition: the partition keeps the member on the current revision. Before one was completed
// there is none to keep, and the first that comes up is for all.
func (r rollout) belowPartition(t *memberState) bool { return r.proven && t.ID.Ordinal < r.partition() }

// budget is how many members a rolling update may take down: a percent of the set
// is rounded down, and one may always go.
func (f *facts) budget() int { return f.budgetOf(f.size) }

// budgetOf is that of so many members.
func (f *facts) budgetOf(size int) int {
	r := f.strategy().RollingUpdate
	if r == nil || r.MaxUnavailable == nil {
		return 1
	}
	return max(1, r.MaxUnavailable.ScaledDown(size))
}

// replacesBroken: rule 2 is in force.
func (f *facts) replacesBroken() bool {
	return !f.onDelete() && f.strategy().ReplaceBroken != spec.ReplaceBrokenNever
}

// floor is how many members must stay available through updates and restarts, by the set's own
// field or the budget that asks for most; whose names that.
func (f *facts) floor() (n int, whose string) {
	if d := f.world.Set.Spec.Disruption; d != nil {
		n = d.Floor(f.size)
	}
	for _, b := range f.world.Budgets {
		if most := b.Floor(f.size); most > n {
			n, whose = most, " (PodDisruptionBudget "+b.Name+")"
		}
	}
	return n, whose
}

func (f *facts) floorText() string {
	n, whose := f.floor()
	return fmt.Sprintf("the disruption floor%s keeps %d of %d members available", whose, n, f.size)
}

// paused is rule 6: no member moves to the update revision, whatever becomes of its life; rule 2
// acts only back to the current revision; the update neither completes nor runs out of time.
// Scaling, healing and restarts continue, each member on what it runs.
func (f *facts) paused() bool { return f.world.Set.Paused }

// held: the pause keeps the member from its target, which is not the current revision;
// or Recreate does.
func (r rollout) held(t *memberState) bool {
	if r.recreates() {
		return r.apart
	}
	return r.paused() && r.target(t) != r.current
}

// ran: it is known what the ordinal ran last, and how to run it.
func (r rollout) ran(t *memberState) bool {
	return t.Identity != nil && r.template(t.Identity.Due) != nil
}
