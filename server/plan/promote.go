package plan

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Promote has a life count as one of another revision: by which the member runs the same (SEMANTICS Part 3, Differences), or to which it
// was changed in place, as its node says. It goes on as it is.
type Promote struct {
	ID       spec.Identity
	Token    spec.Token
	Revision spec.RevisionHash
	Identity records.IdentityRecord // as it is to be
	// Changed is the change in place that is done; zero: it runs the same.
	Changed spec.Sequence
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
	if a.Changed != (spec.Sequence{}) {
		m.Change, m.Changed = nil, a.Changed
	}
	return m
}

// reachTargets has lives count as of the revisions that they run, before anything else is done: it disturbs nobody, and
// all rules then see who is left; it is written alone (Batch). What was changed in place is a fact. Members that run the same by their
// target reach it; the partition and a pause hold them like others.
func reachTargets(r rollout) {
	for _, t := range r.members {
		switch {
		case t.vacant() || t.stopping() || t.Identity == nil:
		case t.done != nil:
			countAs(r, t, t.done.Revision, t.done.ID)
		case !t.wanted || t.Member.Change != nil || t.lost || r.paused() && r.target(t) != r.current || !r.sameFor(t.ID.Ordinal, t.Member.Revision, r.target(t)):
		default:
			countAs(r, t, r.target(t), spec.Sequence{})
		}
	}
}

// countAs has a life count as one of another revision: it was changed to that, or, with no change, it runs the same, and was available on it.
func countAs(r rollout, t *memberState, to spec.RevisionHash, changed spec.Sequence) {
	a := Promote{ID: t.ID, Token: t.Member.Token, Revision: to, Identity: *t.Identity, Changed: changed}
	a.Identity.Due = to
	if changed == (spec.Sequence{}) && a.Identity.AvailableOn == t.Member.Revision {
		a.Identity.AvailableOn = to
	}
	r.act(a)
	t.become(t.afterPromotion(&a))
}
