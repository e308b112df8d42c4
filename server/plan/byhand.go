package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stead-project/stead/spec"
)

// Refusal says why what a person asks of a volume is not done, and what to do first;
// "": it is done as soon as nothing that may use the volume is in the way.
func Refusal(w World, q spec.VolumeRequest) string {
	if w.Set == nil {
		w.Set = &spec.Set{Ref: q.ID.Ref(), Deleting: true}
	}
	s := newStep(w)
	for i := range s.seats {
		if t := &s.seats[i]; t.id == q.ID {
			return s.refusal(t, &q)
		}
	}
	return "nothing is known of " + q.ID.MemberName()
}

// TrashOf is how long a volume that is given up now lies in the trash.
func TrashOf(w World, v *spec.Volume) spec.Duration {
	if w.Set == nil {
		w.Set = &spec.Set{Deleting: true}
	}
	now, _ := newStep(w).decided(v, spec.FateReclaiming)
	return spec.Duration{Duration: now.Trash()}
}

// refusal is the same for a seat. It is asked of every request again before it is done:
// a member that is wanted again takes its volume back by that alone.
func (s *step) refusal(t *seat, q *spec.VolumeRequest) string {
	v, name := t.volumes[q.Claim], t.id.MemberName()
	switch {
	case q.Token != t.lastToken():
		return fmt.Sprintf("a life of %s began since that was asked", name)
	case v == nil || v.UID != q.Volume:
		return fmt.Sprintf("it is not the volume of %s any more", name)
	case q.Verb != spec.VerbReclaim:
		return fmt.Sprintf("%q is nothing that can be done with a volume", q.Verb)
	case s.w.Set.Orphaned && !s.w.Set.Deleting:
		return "nothing is done for its set: " + orphanedText
	case v.Fate == spec.FateReclaiming:
		return "it is being given up already"
	case s.inRange(t):
		return fmt.Sprintf("the set wants %s; scale it so that %s is out of range, and give the volume up when it is gone", name, name)
	case t.member != nil:
		return fmt.Sprintf("token %s of %s may use it still; wait until that is over ('stead explain %s' says for what it waits)",
			t.member.Token, name, t.id.Set)
	}
	return ""
}

// askedFor is the request to do this with the volume of a claim; nil: none that holds.
func (s *step) askedFor(t *seat, claim spec.ClaimName, verb spec.VolumeVerb) *spec.VolumeRequest {
	q := t.asked[claim]
	if q == nil || q.Verb != verb || s.refusal(t, q) != "" {
		return nil
	}
	return q
}

// void removes the requests that will not be done.
func (s *step) void(t *seat) {
	for _, claim := range slices.Sorted(maps.Keys(t.asked)) {
		q := t.asked[claim]
		if why := s.refusal(t, q); why != "" {
			s.act(VoidRequest{ID: t.id, Claim: claim, Volume: q.Volume, Text: why})
		}
	}
}
