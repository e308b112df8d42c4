package plan

import "github.com/stead-project/stead/records"

// remove is rule 1: the set is being deleted. Members stop highest first, each
// after the one above is gone (Parallel: all at once); volumes go by whenDeleted, and
// those that are kept keep the identities. When no life remains, and it is recorded
// which volumes go, the set's own record goes, last.
func (s step) remove() {
	lives := false
	for i := range s.members {
		lives = lives || s.members[i].member != nil
	}
	s.mark() // before the first stop: what was ready on a volume is not seen afterwards
	s.applyRequests()
	given := s.reclaimVolumes()
	if !lives {
		if !given {
			s.act(RemoveSet{})
		}
		return
	}
	s.forgetSurplus()
	s.shrink(records.ReasonDelete)
}
