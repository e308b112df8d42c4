package plan

import "github.com/stead-project/stead/spec"

func (s *step) strategy() *spec.UpdateStrategy { return &s.w.Set.Spec.UpdateStrategy }

func (s *step) onDelete() bool { return s.strategy().Type == spec.OnDeleteStrategy }

func (s *step) recreates() bool { return s.strategy().Type == spec.RecreateStrategy }

// partition is the ordinal below which members keep the current revision. It counts
// from the first ordinal, reserved ones included.
func (s *step) partition() int {
	if r := s.strategy().RollingUpdate; r != nil && r.Partition != nil {
		return s.reach.First + int(*r.Partition)
	}
	return s.reach.First
}

// kept: the partition keeps the member on the current revision. Before one was completed
// there is none to keep, and the first that comes up is for all.
func (s *step) kept(t *seat) bool { return s.completed && t.id.Ordinal < s.partition() }

// budget is how many members a rolling update may take down: a percent of the set
// is rounded down, and one may always go.
func (s *step) budget() int {
	r := s.strategy().RollingUpdate
	if r == nil || r.MaxUnavailable == nil {
		return 1
	}
	return max(1, r.MaxUnavailable.ScaledDown(len(s.wanted)))
}

// replacesBroken: rule 2 is in force.
func (s *step) replacesBroken() bool {
	return !s.onDelete() && s.strategy().ReplaceBroken != spec.ReplaceBrokenNever
}
