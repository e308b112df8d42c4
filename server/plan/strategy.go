package plan

import "github.com/stead-project/stead/spec"

func (s *step) strategy() *spec.UpdateStrategy { return &s.w.Set.Spec.UpdateStrategy }

func (s *step) onDelete() bool { return s.strategy().Type == spec.OnDeleteStrategy }

func (s *step) recreates() bool { return s.strategy().Type == spec.RecreateStrategy }

// partition is how many of the lowest ordinals keep the current revision.
func (s *step) partition() int {
	if r := s.strategy().RollingUpdate; r != nil && r.Partition != nil {
		return int(*r.Partition)
	}
	return 0
}

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
