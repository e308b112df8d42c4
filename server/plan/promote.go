package plan

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Promote has a life count as one of another revision, by which the member runs the same (SEMANTICS Part 3, Differences): it
// goes on as it is.
type Promote struct {
	ID       spec.Identity
	Token    spec.Token
	Revision spec.RevisionHash
	Identity records.IdentityRecord // as it is to be
}

func (Promote) action() {}

// Record is what it makes of the member's record. What the member reads of its revision stays.
func (a *Promote) Record(m records.Member) records.Member {
	if m.Began == "" {
		m.Began = m.Revision
	}
	m.Revision = a.Revision
	if m.Began == m.Revision {
		m.Began = ""
	}
	return m
}

// reachTargets has the members reach their target that run the same by it, before anything else is done: it disturbs nobody, and
// all rules then see who is left; it is written alone (Batch). The partition and a pause hold them like others.
func reachTargets(r rollout) {
	for _, t := range r.inside {
		if t.vacant() || t.stopping() || t.Identity == nil || r.paused() && r.target(t) != r.current || !r.sameFor(t.ID.Ordinal, t.Member.Revision, r.target(t)) {
			continue
		}
		a := Promote{ID: t.ID, Token: t.Member.Token, Revision: r.target(t), Identity: *t.Identity}
		a.Identity.Due = a.Revision
		if a.Identity.AvailableOn == t.Member.Revision {
			a.Identity.AvailableOn = a.Revision
		}
		r.act(a)
		t.become(t.afterPromotion(&a))
	}
}
