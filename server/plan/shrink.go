package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// forgetSurplus removes the records of lives out of range that are proven over, and of those that have left, though they are wanted
// again. With it is recorded what the others are to be told. Of one that ended
// before it was to stop, what becomes of its volumes is recorded first, and the record goes
// with the next step.
func (s step) forgetSurplus() {
	l := leaver(s)
	for _, t := range s.members {
		if !t.Over || t.wanted && !l.hasLeft(t) {
			continue
		}
		a := Forget{
			ID: t.ID, Token: t.Member.Token, FreeAddress: len(t.Volumes) == 0 && len(t.Strays) == 0 && !t.wanted,
			Lost: t.lostTo(), Text: fmt.Sprintf("%s is gone: %s", t.ID.MemberName(), t.proofText()), Gone: l.goneRecord(t),
		}
		if fates := s.fatesToRecord(t); len(fates) > 0 {
			s.setVolumes(fates, "the fate of the volumes of "+t.ID.MemberName()+", which has ended and is not wanted")
		} else {
			s.act(a)
		}
		t.become(t.afterForget(&a))
	}
}

// scaleDown is why members that are out of range stop: a set without members keeps what
// they have, so that nobody has to take leave of the others.
func scaleDown(set *records.Set) records.Reason {
	if set.Replicas() == 0 {
		return records.ReasonScaleToZero
	}
	return records.ReasonScaleDown
}

// shrink stops members out of range (rules 1 and 5): highest first, each after the
// one above is gone; Parallel: all at once. They need not be healthy. What becomes of
// the volumes of all of them is recorded before the first stops. Where they leave the others it is one
// after the other under either policy, when it has taken leave. It reports whether there is nobody left.
func (s step) shrink(reason records.Reason) bool {
	var above *memberState // the highest that is not gone yet
	var after string       // what those below it wait for, in words
	inTurn := s.ordered() || s.takesLeave()
	if no := s.owedWait(); no != nil {
		after = "it leaves when the others have forgotten the one before it: " + no.Text
	}
	var fates []records.Volume // for the first stop
	if s.ordered() {
		fates = s.fates()
	}
	held := len(fates) > maxFates
	for _, t := range slices.Backward(s.members) {
		if t.wanted || t.Member == nil {
			continue
		}
		switch {
		case t.stopping():
			s.blockWaiting(t)
		case held:
			s.block(t, causes.BlockedTurn, "waiting until the fate of the volumes of all members that leave is recorded")
		case inTurn && (above != nil || after != ""):
			if after == "" {
				after = fmt.Sprintf("it stops after %s: %s", above.ID.MemberName(), s.goingText(above))
			}
			s.block(t, causes.BlockedSuccessor, after)
		case reason != records.ReasonDelete && s.busy(t) && (t.Request == nil || !t.Request.Now):
			after = fmt.Sprintf("it stops after %s, which is %s", t.ID.MemberName(), s.busyText(t))
			s.blockBusy(t, t)
		case s.takesLeave() && !leaver(s).takeLeave(t):
		default:
			s.stop(t, reason, string(reason), fates...)
			s.blockWaiting(t)
			fates = nil
		}
		if above == nil {
			above = t
		}
	}
	s.setVolumes(append(fates, s.fates()...), "the fate of the volumes of members that leave")
	return above == nil
}

// stop ends a life; why tells the reason in words. With it goes the record of what
// becomes of its volumes, if it is not wanted any more, and of others.
func (s volumes) stop(t *memberState, reason records.Reason, why string, fates ...records.Volume) {
	fates = append(fates, s.fatesToRecord(t)...)
	a := Stop{
		ID: t.ID, Token: t.Member.Token, Reason: reason, Volumes: fates,
		Text: fmt.Sprintf("%s stops on node %s: %s", t.ID.MemberName(), t.Member.Node, why),
	}
	s.act(a)
	t.become(t.afterStop(&a))
}

// holdSurplus says that surplus members stay until the survivors are well.
func (s step) holdSurplus(text string) {
	for _, t := range s.members {
		if t.wanted || t.Member == nil {
			continue
		}
		if t.stopping() {
			s.blockWaiting(t)
		} else {
			s.block(t, causes.BlockedSurvivors, "scheduled for scale-down; "+text)
		}
	}
}
