package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Refusal says why what a person asks of a volume is not done, and what to do first; "": it is
// done as soon as nothing that may use the volume is in the way. said is what the node said of a
// volume in the trash, which World has only for those that are asked for.
func Refusal(w World, q records.VolumeRequest, said *records.VolumeReport) string {
	if w.Set == nil {
		w = withoutSet(w, q.ID.Ref())
	}
	s := newStep(w)
	for _, t := range s.members {
		if t.ID == q.ID {
			if t.Volumes[q.Claim] == nil {
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
	v, name := t.Volumes[q.Claim], t.ID.MemberName()
	switch {
	case q.Token != t.lastToken():
		return fmt.Sprintf("%s was started again after this was requested", name)
	case s.claimInUse(q) != "":
		return s.claimInUse(q)
	case s.world.Set.Orphaned && !s.world.Set.Deleting:
		return "nothing is done for its set: " + orphanedText
	case s.ofMoves().movesVolumes(t):
		return fmt.Sprintf("it is being moved from node %s to node %s; abort that first: stead move %s --abort", t.Move.From.Node, t.Move.To.Node, name)
	case t.unknown(q) != nil:
		return unknowns{s}.whyNotUnknown(t, t.unknown(q), q)
	case q.Verb == records.VerbRestore:
		return s.whyNotRestore(t, q)
	case v == nil || v.UID != q.Volume:
		return fmt.Sprintf("it is not the volume of %s any more", name)
	case q.Verb == records.VerbLost && s.ofMoves().heldCopy(t, v) != "":
		return s.ofMoves().heldCopy(t, v)
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
	case t.Member != nil:
		return s.uses(t)
	}
	return ""
}

// uses says that a life may use the volumes of a member.
func (s volumes) uses(t *memberState) string {
	return fmt.Sprintf("token %s of %s may still use it; wait until that has ended ('stead explain %s' shows what it is waiting for)",
		t.Member.Token, t.ID.MemberName(), t.ID.Set)
}

// askedFor is the request to do this with the volume that the store knows of a claim, or in a trash; nil: none that holds.
func (s volumes) askedFor(t *memberState, claim spec.ClaimName, verb records.VolumeVerb) *records.VolumeRequest {
	q := t.Asked[claim]
	if q == nil || q.Verb != verb || t.unknown(q) != nil || s.refusal(t, q) != "" {
		return nil
	}
	return q
}

// applyRequests does what a person asks, but for giving a volume up (see reclaim): one that is
// lost is looked for once more, and one in the trash gets its record again.
func (s volumes) applyRequests() {
	for _, t := range s.members {
		if t.gone || t.volumesKept {
			continue
		}
		s.markLost(t)
		for _, claim := range inOrder(t.Asked) {
			q := t.Asked[claim]
			switch u := t.unknown(q); {
			case s.refusal(t, q) != "":
			case u != nil:
				unknowns{s}.doUnknown(t, u, q)
			case q.Verb == records.VerbRestore && len(t.Strays) == 0:
				s.comesBack(t, s.restored(t, q, t.Said[claim]))
			}
		}
	}
}

// voidRequests removes the requests that will not be done.
func (s volumes) voidRequests(t *memberState) {
	for _, claim := range inOrder(t.Asked) {
		q := t.Asked[claim]
		if why := s.refusal(t, q); why != "" {
			s.act(VoidRequest{ID: t.ID, Claim: claim, Volume: q.Volume, Text: why})
		}
	}
}

// whyNotLost says why a volume cannot be said to be lost; "": it can. A life that reports it
// missing never used it, and is ended for it; whether it is there its node says in the
// end, when no life is left.
func (s volumes) whyNotLost(t *memberState, v *records.Volume) string {
	said := t.Said[v.Claim]
	switch {
	case v.Fate == records.FateLost:
		return fmt.Sprintf("node %s is already looking for it", v.Node)
	case v.Fate == records.FateRestoring:
		return "it is being brought back from the trash"
	case v.Fate == records.FateReclaiming && (said == nil || said.Cause != causes.VolumeMissing):
		return fmt.Sprintf("it is being given up, and node %s does not say that it is missing", v.Node)
	case t.expired():
		return fmt.Sprintf("node %s is unreachable, and looks for it when it is back; if the node is off for good, fence it first: stead node fence %s --i-have-powered-off", v.Node, v.Node)
	case t.Member == nil || t.Over:
		return ""
	case !t.wanted:
		return s.uses(t)
	case t.stopping() || missing(t.Report):
		return ""
	case !t.Live:
		return fmt.Sprintf("token %s of %s may be running on node %s, which is unreachable; if the node is off for good, fence it first: stead node fence %s --i-have-powered-off",
			t.Member.Token, t.ID.MemberName(), v.Node, v.Node)
	}
	says := "does not report it missing, and a volume that is there is not lost"
	if t.Report != nil && t.Report.Cause == causes.VolumeMissing {
		says = "ran with it, so its processes may still have it"
	}
	return fmt.Sprintf("token %s of %s %s; if its disk died under that life: stead restart %s", t.Member.Token, t.ID.MemberName(), says, t.ID.MemberName())
}

// missing: a volume of the life is not there, so that nothing of it ever ran.
func missing(r *records.Report) bool {
	return r != nil && r.Cause == causes.VolumeMissing && r.Phase.Rank() <= records.PhasePreparing.Rank()
}

// markLost ends the life that waits for a volume that is lost, and when it is over has the
// volume's node look once more.
func (s volumes) markLost(t *memberState) {
	var lost []records.Volume
	for _, claim := range inOrder(t.Asked) {
		switch q := s.askedFor(t, claim, records.VerbLost); {
		case q == nil:
		case t.Member != nil && !t.Over:
			if !t.stopping() {
				s.stop(t, records.ReasonReplace, fmt.Sprintf("its volume of the claim %s was reported lost", claim))
			}
		case len(t.Strays) == 0:
			v := *t.Volumes[claim]
			v.Fate = records.FateLost
			lost = append(lost, v)
			t.become(t.withAnswer(&v))
		}
	}
	t.volumesLost = len(lost) > 0
	if t.volumesLost {
		text := "it was reported lost; its node checks once more"
		if proof.LostWithHost(&lost[0], s.node(lost[0].Node)) {
			text = "it was reported lost with its host"
		}
		s.act(SetVolumes{Volumes: lost, Text: text})
	}
}

// whyNotRestore says why a volume cannot be brought back from the trash; "": it can.
func (s volumes) whyNotRestore(t *memberState, q *records.VolumeRequest) string {
	v, said := t.Volumes[q.Claim], t.Said[q.Claim]
	switch {
	case v != nil && v.UID == q.Volume && v.Fate == records.FateReclaiming:
		return "it is still being given up; restore it once it is in the trash"
	case v != nil && v.UID == q.Volume:
		return "it is not in the trash"
	case v != nil:
		return fmt.Sprintf("%s has another volume for the claim %s, %s; give that up first", t.ID.MemberName(), q.Claim, v.UID)
	case t.Member != nil:
		return s.uses(t)
	case said == nil || said.Volume != q.Volume || said.State != records.VolumeTrashed:
		return "it is not in the trash any more"
	}
	for _, claim := range inOrder(t.Volumes) {
		if other := t.Volumes[claim]; other.Node != said.Node && !other.Shared {
			return fmt.Sprintf("it is on node %s, and the volume of %s for the claim %s on node %s: give that up first, for a member has all on one node",
				said.Node, t.ID.MemberName(), claim, other.Node)
		}
	}
	return ""
}

// restored gives a volume its record again, with its id and number. It counts as used: it is
// never made anew, and no member is told that it is new.
func (s volumes) restored(t *memberState, q *records.VolumeRequest, said *records.VolumeReport) RestoreVolume {
	v := records.Volume{
		ID: t.ID, Claim: q.Claim, UID: q.Volume, Number: said.Number, Class: said.Class, Node: said.Node,
		SizeBytes: said.SizeBytes, Grown: true, // it may not have grown so far when it was given up
		Fate: records.FateRestoring, Turn: said.Turn + 1, CreatedAt: s.world.Now,
	}
	if n := s.node(said.Node); n != nil {
		v.Shared = n.Facts.SharesClass(v.Class)
	}
	if c := s.claimTemplate(q.Claim); c != nil {
		v.Labels = s.world.Set.Spec.ClaimLabels(c)
	}
	rec := records.IdentityRecord{ID: t.ID}
	if t.Identity != nil {
		rec = *t.Identity
	}
	rec.VolumeNumbers = raised(rec.VolumeNumbers, v.Claim, v.Number)
	rec.VolumeReady = raised(rec.VolumeReady, v.Claim, v.Number)
	rec.ReadyOnce = "" // under whichever set it was used, it is none of the present one's first
	return RestoreVolume{Volume: v, Identity: rec, Text: fmt.Sprintf("restore requested from the trash of node %s", v.Node)}
}

// comesBack has a volume be that of its claim.
func (s volumes) comesBack(t *memberState, a RestoreVolume) {
	s.act(a)
	t.become(t.withIdentity(&a.Identity))
	t.become(t.withAnswer(&a.Volume))
}

// raised is numbers with at least n for the claim.
func raised(numbers map[spec.ClaimName]int, claim spec.ClaimName, n int) map[spec.ClaimName]int {
	return with(numbers, claim, max(numbers[claim], n))
}

// keepFound keeps what is in its place, in a new turn.
func (s volumes) keepFound(t *memberState) {
	for _, claim := range inOrder(t.Said) {
		v := t.Volumes[claim]
		if !proof.VolumeFound(v, t.Said[claim]) {
			continue
		}
		kept := *v
		kept.Fate, kept.Turn = records.FateKeep, v.Turn+1
		s.act(SetVolumes{Volumes: []records.Volume{kept}, Text: fmt.Sprintf("node %s reports that it is in its place", v.Node)})
		t.become(t.withVolume(&kept))
	}
}
