package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Refusal says why what a person asks of a volume is not done, and what to do first;
// "": it is done as soon as nothing that may use the volume is in the way. said is what the
// node said of a volume in the trash, which World tells only of those that are asked for.
func Refusal(w World, q records.VolumeRequest, said *records.VolumeReport) string {
	if w.Set == nil {
		w.Set = &records.Set{Ref: q.ID.Ref(), Deleting: true}
	}
	s := newStep(w)
	for i := range s.members {
		if t := &s.members[i]; t.id == q.ID {
			if t.volumes[q.Claim] == nil {
				t.become(t.withWord(q.Claim, said))
			}
			return s.refusal(t, &q)
		}
	}
	return "there is no record of " + q.ID.MemberName()
}

// refusal is the same within a step. It is asked of every request again before it is done:
// a member that is wanted again takes its volume back by that alone.
func (s volumes) refusal(t *memberState, q *records.VolumeRequest) string {
	v, name := t.volumes[q.Claim], t.id.MemberName()
	switch {
	case q.Token != t.lastToken():
		return fmt.Sprintf("%s was started again after this was requested", name)
	case s.world.Set.Orphaned && !s.world.Set.Deleting:
		return "nothing is done for its set: " + orphanedText
	case q.Verb == records.VerbRestore:
		return s.whyNotRestore(t, q)
	case v == nil || v.UID != q.Volume:
		return fmt.Sprintf("it is no longer the volume of %s", name)
	case q.Verb == records.VerbLost:
		return s.whyNotLost(t, v)
	case q.Verb != records.VerbReclaim:
		return fmt.Sprintf("unknown request %q for a volume", q.Verb)
	case v.Fate == records.FateReclaiming:
		return "it is being given up already"
	case v.Fate == records.FateLost:
		return "it was reported lost, and its node is looking for it; wait for the result"
	case t.wanted:
		return fmt.Sprintf("%s is a member of the set; scale the set so that %s leaves, then give up the volume", name, name)
	case t.member != nil:
		return s.uses(t)
	}
	return ""
}

// uses says that a life may use the volumes of a member.
func (s volumes) uses(t *memberState) string {
	return fmt.Sprintf("token %s of %s may still use it; wait until that has ended ('stead explain %s' shows what it is waiting for)",
		t.member.Token, t.id.MemberName(), t.id.Set)
}

// askedFor is the request to do this with the volume of a claim; nil: none that holds.
func (s volumes) askedFor(t *memberState, claim spec.ClaimName, verb records.VolumeVerb) *records.VolumeRequest {
	q := t.asked[claim]
	if q == nil || q.Verb != verb || s.refusal(t, q) != "" {
		return nil
	}
	return q
}

// applyRequests does what a person asks, but for giving a volume up (see reclaim): one that is
// lost is looked for once more, and one in the trash gets its record again.
func (s volumes) applyRequests() {
	for i := range s.members {
		t := &s.members[i]
		if t.gone || t.volumesKept {
			continue
		}
		s.markLost(t)
		for _, claim := range inOrder(t.asked) {
			if q := s.askedFor(t, claim, records.VerbRestore); q != nil && len(t.strays) == 0 {
				s.restore(t, q, t.said[claim])
			}
		}
	}
}

// blockRequested says for what a request waits that is not about a volume with a record.
func (s volumes) blockRequested(t *memberState) {
	if len(t.strays) > 0 {
		s.block(t, causes.BlockedStray, "one of its volumes is to be restored, but "+t.strayText())
	}
}

// voidRequests removes the requests that will not be done.
func (s volumes) voidRequests(t *memberState) {
	for _, claim := range inOrder(t.asked) {
		q := t.asked[claim]
		if why := s.refusal(t, q); why != "" {
			s.act(VoidRequest{ID: t.id, Claim: claim, Volume: q.Volume, Text: why})
		}
	}
}
