package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec/causes"
)

// whyNotLost says why a volume cannot be said to be lost; "": it can. A life that reports it
// missing never used it, and is ended for it; whether it is there its node says in the
// end, when no life is left.
func (s volumes) whyNotLost(t *memberState, v *records.Volume) string {
	said := t.said[v.Claim]
	switch {
	case v.Fate == records.FateLost:
		return fmt.Sprintf("node %s is already looking for it", v.Node)
	case v.Fate == records.FateRestoring:
		return "it is being brought back from the trash"
	case v.Fate == records.FateReclaiming && (said == nil || said.Cause != causes.VolumeMissing):
		return fmt.Sprintf("it is being given up, and node %s does not say that it is missing", v.Node)
	case t.expired():
		return fmt.Sprintf("node %s is unreachable, and looks for it when it is back; if the node is off for good, fence it first: stead node fence %s --i-have-powered-off", v.Node, v.Node)
	case t.member == nil || t.Over:
		return ""
	case !t.wanted:
		return s.uses(t)
	case t.stopping() || missing(t.report):
		return ""
	case !t.Live:
		return fmt.Sprintf("token %s of %s may be running on node %s, which is unreachable; if the node is off for good, fence it first: stead node fence %s --i-have-powered-off",
			t.member.Token, t.id.MemberName(), v.Node, v.Node)
	}
	says := "does not report it missing, and a volume that is there is not lost"
	if t.report != nil && t.report.Cause == causes.VolumeMissing {
		says = "ran with it, so its processes may still have it"
	}
	return fmt.Sprintf("token %s of %s %s; if its disk died under that life: stead restart %s", t.member.Token, t.id.MemberName(), says, t.id.MemberName())
}

// missing: a volume of the life is not there, so that nothing of it ever ran.
func missing(r *records.Report) bool {
	return r != nil && r.Cause == causes.VolumeMissing && r.Phase.Rank() <= records.PhasePreparing.Rank()
}

// markLost ends the life that waits for a volume that is lost, and when it is over has the
// volume's node look once more.
func (s volumes) markLost(t *memberState) {
	var lost []records.Volume
	for _, claim := range inOrder(t.asked) {
		switch q := s.askedFor(t, claim, records.VerbLost); {
		case q == nil:
		case t.member != nil && !t.Over:
			if !t.stopping() {
				s.stop(t, records.ReasonReplace, fmt.Sprintf("its volume of the claim %s was reported lost", claim))
			}
		case len(t.strays) == 0:
			v := *t.volumes[claim]
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
