package plan

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// revise gives the set's template its revision: the stored one of its hash, raised
// to the newest number when it is an older one (a rollback), or a new one.
func (s *step) revise() {
	newest, old := int64(0), (*records.Revision)(nil)
	for _, r := range s.w.Revisions {
		newest = max(newest, r.Number)
		if r.Hash == s.update {
			old = r
		}
	}
	set := s.w.Set
	switch {
	case old == nil:
		s.fresh = &records.Revision{
			Ref: set.Ref, SetUID: set.UID, Hash: s.update, HashVersion: spec.HashVersion, Number: newest + 1,
			Template: set.Template(), ChangeCause: set.Annotations[records.ChangeCauseAnnotation], CreatedAt: s.w.Now,
		}
		s.act(AddRevision{Revision: *s.fresh})
	case old.Number < newest:
		raised := *old
		raised.Number = newest + 1
		s.act(RaiseRevision{Revision: raised})
	}
}

// prune removes the oldest revisions that nobody needs, beyond the limit. Needed
// are the current one, the update's, and any that a member runs.
func (s *step) prune() {
	if len(s.w.Revisions) <= s.historyLimit() {
		return
	}
	needed := map[spec.RevisionHash]bool{s.current: true, s.update: true}
	for i := range s.seats {
		if m := s.seats[i].member; m != nil { // it is due the same, or its target
			needed[m.Revision] = true
		}
	}
	rest := slices.DeleteFunc(slices.Clone(s.w.Revisions), func(r *records.Revision) bool { return needed[r.Hash] })
	for _, r := range rest[:max(0, len(rest)-s.historyLimit())] { // ascending by number
		s.act(PruneRevision{Hash: r.Hash, Number: r.Number})
	}
}

// defaultHistory is how many revisions are kept beside the needed ones.
const defaultHistory = 10

func (s *step) historyLimit() int {
	if n := s.w.Set.Spec.RevisionHistoryLimit; n != nil {
		return int(*n)
	}
	return defaultHistory
}

// template is that of a revision that is stored or being added; nil: unknown.
func (s *step) template(h spec.RevisionHash) *spec.Template {
	if s.fresh != nil && s.fresh.Hash == h {
		return &s.fresh.Template
	}
	for _, r := range s.w.Revisions {
		if r.Hash == h {
			return &r.Template
		}
	}
	return nil
}

// target is the revision on which an ordinal ends up: the update's, or the current
// one below the partition or after a rollback.
func (s *step) target(t *seat) spec.RevisionHash {
	if s.kept(t) {
		return s.current
	}
	return s.aim
}

// due is the revision on which the next life of an ordinal starts: what it ran
// last, until its turn in a rollout comes; then its target. A member that dies in
// the middle of a rollout does not jump the queue. Never derived from counts.
func (s *step) due(t *seat) spec.RevisionHash {
	target := s.target(t)
	switch {
	case s.held(t):
		return s.heldOn(t)
	case !s.ran(t):
		return target // the first life, or one after a scale-down
	case s.onDelete() || s.recreates():
		return target // a missing member moves on
	case t.member != nil && t.member.StopReason == records.ReasonUpdate:
		return target // its turn came
	case s.hopeless(t):
		return target
	}
	return t.identity.Due
}

// hopeless: a life that is over had no chance on its revision, which is not its
// target any more: the vacant form of rule 2.
func (s *step) hopeless(t *seat) bool {
	if !s.replacesBroken() {
		return false
	}
	failed := t.report != nil && t.report.Phase == records.PhaseFailed
	return failed || s.abandoned(t.identity.Due) && t.identity.AvailableOn != t.identity.Due
}

// abandoned: the revision never was completed, and is not what the set goes to.
func (s *step) abandoned(h spec.RevisionHash) bool {
	return h != s.aim && (h != s.current || !s.completed)
}
