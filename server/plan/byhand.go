package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
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
	return "nothing is known of " + q.ID.MemberName()
}

// refusal is the same within a step. It is asked of every request again before it is done:
// a member that is wanted again takes its volume back by that alone.
func (s volumes) refusal(t *memberState, q *records.VolumeRequest) string {
	v, name := t.volumes[q.Claim], t.id.MemberName()
	switch {
	case q.Token != t.lastToken():
		return fmt.Sprintf("a life of %s began since that was asked", name)
	case s.world.Set.Orphaned && !s.world.Set.Deleting:
		return "nothing is done for its set: " + orphanedText
	case q.Verb == records.VerbRestore:
		return s.noRestore(t, q)
	case v == nil || v.UID != q.Volume:
		return fmt.Sprintf("it is not the volume of %s any more", name)
	case q.Verb == records.VerbLost:
		return s.notLost(t, v)
	case q.Verb != records.VerbReclaim:
		return fmt.Sprintf("%q is nothing that can be done with a volume", q.Verb)
	case v.Fate == records.FateReclaiming:
		return "it is being given up already"
	case v.Fate == records.FateLost:
		return "its node looks for it, for it is said to be lost; wait until it has said whether it is there"
	case t.wanted:
		return fmt.Sprintf("the set wants %s; scale it so that %s is out of range, and give the volume up when it is gone", name, name)
	case t.member != nil:
		return s.uses(t)
	}
	return ""
}

// uses says that a life may use the volumes of a member.
func (s volumes) uses(t *memberState) string {
	return fmt.Sprintf("token %s of %s may use it still; wait until that is over ('stead explain %s' says for what it waits)",
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

// byHand does what a person asks, but for giving a volume up (see reclaim): one that is
// lost is looked for once more, and one in the trash gets its record again.
func (s volumes) byHand() {
	for i := range s.members {
		t := &s.members[i]
		if t.gone || t.volumesKept {
			continue
		}
		s.lose(t)
		for _, claim := range inOrder(t.asked) {
			if q := s.askedFor(t, claim, records.VerbRestore); q != nil && len(t.strays) == 0 {
				s.restore(t, q, t.said[claim])
			}
		}
	}
}

// tellAsked says for what a request waits that is not about a volume with a record.
func (s volumes) tellAsked(t *memberState) {
	if len(t.strays) > 0 {
		s.block(t, spec.BlockedStray, "a volume of it is to come back, but "+t.strayText())
	}
}

// void removes the requests that will not be done.
func (s volumes) void(t *memberState) {
	for _, claim := range inOrder(t.asked) {
		q := t.asked[claim]
		if why := s.refusal(t, q); why != "" {
			s.act(VoidRequest{ID: t.id, Claim: claim, Volume: q.Volume, Text: why})
		}
	}
}
