package plan

import "github.com/stead-project/stead/spec"

// revise stores the set's template as a revision when there is none of its hash.
func (s *step) revise() {
	if s.template(s.update) != nil {
		return
	}
	number := int64(0)
	for _, r := range s.w.Revisions {
		number = max(number, r.Number)
	}
	set := s.w.Set
	s.fresh = &spec.Revision{
		Ref: set.Ref, SetUID: set.UID, Hash: s.update, HashVersion: spec.HashVersion, Number: number + 1,
		Template: set.Spec.Template, ChangeCause: set.Annotations["kubernetes.io/change-cause"], CreatedAt: s.w.Now,
	}
	s.act(AddRevision{Revision: *s.fresh})
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

// due is the revision on which a missing member starts: what its ordinal last ran,
// until its turn in a rollout comes. Never derived from counts.
func (s *step) due(t *seat) spec.RevisionHash {
	if t.identity != nil && t.identity.Due != "" && s.template(t.identity.Due) != nil {
		return t.identity.Due
	}
	return s.update
}
