package plan

import "github.com/stead-project/stead/spec"

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
func (r rollout) belowPartition(t *memberState) bool { return r.proven && t.id.Ordinal < r.partition() }

// budget is how many members a rolling update may take down: a percent of the set
// is rounded down, and one may always go.
func (f *facts) budget() int {
	r := f.strategy().RollingUpdate
	if r == nil || r.MaxUnavailable == nil {
		return 1
	}
	return max(1, r.MaxUnavailable.ScaledDown(len(f.inside)))
}

// replacesBroken: rule 2 is in force.
func (f *facts) replacesBroken() bool {
	return !f.onDelete() && f.strategy().ReplaceBroken != spec.ReplaceBrokenNever
}
