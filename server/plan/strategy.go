package plan

import (
	"fmt"

	"github.com/stead-project/stead/spec"
)

func (f *facts) strategy() *spec.UpdateStrategy { return &f.world.Set.Spec.UpdateStrategy }

func (f *facts) onDelete() bool { return f.strategy().Type == spec.OnDeleteStrategy }

func (f *facts) recreates() bool { return f.strategy().Type == spec.RecreateStrategy }

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
func (f *facts) budget() int {
	r := f.strategy().RollingUpdate
	if r == nil || r.MaxUnavailable == nil {
		return 1
	}
	return max(1, r.MaxUnavailable.ScaledDown(f.size))
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
