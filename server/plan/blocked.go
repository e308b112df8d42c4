package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// tell says what a member with a life waits for, unless it is available.
func (s *step) tell(t *seat) {
	switch reason := s.waiting(t); {
	case t.available:
	case reason == spec.BlockedNodeSilent:
		s.tellSilent(t)
	default:
		s.block(t, reason, s.standing(t)+s.wayOut(t))
	}
}

// wayOut says when a member that is off its target, and is not well, is replaced, and how a
// person may have it now: nothing else helps, no other template and no rollback.
func (s *step) wayOut(t *seat) string {
	switch {
	case !s.obsolete(t) || t.ready || t.unseen() || s.held(t) || s.onDelete():
		return ""
	case !s.replacesBroken():
		return fmt.Sprintf("; it still runs revision %s, and replaceBroken is Never; to replace it: stead restart %s", t.member.Revision, t.id.MemberName())
	case s.broken(t) != "":
		return ""
	}
	return fmt.Sprintf("; it still runs revision %s, and is replaced when that has lasted %d s; to replace it now: stead restart %s",
		t.member.Revision, int(s.patience(t).Seconds()), t.id.MemberName())
}

// waiting is the one word for what a member with a life waits for.
func (s *step) waiting(t *seat) spec.BlockedReason {
	switch {
	case s.rebooted(t):
		return spec.BlockedNodeReboot
	case !t.live:
		return spec.BlockedNodeSilent
	case t.stopping():
		return spec.BlockedStopping
	case t.stale:
		return spec.BlockedReconnected
	case t.report != nil && t.report.Cause != "":
		return spec.BlockedReason(t.report.Cause)
	case t.ready:
		return spec.BlockedNotYet
	case t.report != nil && t.report.Phase == records.PhaseRunning:
		return spec.BlockedNotReady
	}
	return spec.BlockedStarting
}

// standing says how a member with a life stands: a sentence without its subject.
func (s *step) standing(t *seat) string {
	switch reason := s.waiting(t); reason {
	case spec.BlockedNodeReboot:
		return fmt.Sprintf("its node %s booted anew and has not said yet that token %s is over", t.member.Node, t.member.Token)
	case spec.BlockedNodeSilent:
		return t.silence.Text
	case spec.BlockedStopping:
		return fmt.Sprintf("it is stopping on node %s", t.member.Node)
	case spec.BlockedReconnected:
		return fmt.Sprintf("its node %s connected anew and has not reported on it since", t.member.Node)
	case spec.BlockedNotYet:
		return fmt.Sprintf("it is ready, but not yet for %d s", s.w.Set.Spec.MinReadySeconds)
	case spec.BlockedNotReady:
		return "it runs, but is not ready"
	case spec.BlockedStarting:
		return fmt.Sprintf("it is starting on node %s", t.member.Node)
	default:
		return fmt.Sprintf("it reports %s: %s", reason, t.report.Message)
	}
}

// rebooted: the node lives, but in another boot than the one the life belongs to.
func (s *step) rebooted(t *seat) bool {
	n := s.node(t.member.Node)
	return n != nil && n.Session != nil && n.Session.UID == t.member.NodeUID && n.Session.Boot != t.member.Boot
}

// cause is why a life that is over ended, from its last report.
func (s *step) cause(t *seat) string {
	switch {
	case t.expired():
		return t.silence.Text
	case t.report.Message != "":
		return string(t.report.Cause) + ": " + t.report.Message
	case t.report.Cause != "":
		return string(t.report.Cause)
	}
	return string(t.report.Phase)
}

// tellSilent says what a member on a silent node waits for, and how long still.
func (s *step) tellSilent(t *seat) {
	reason, text := spec.BlockedNodeSilent, s.standing(t)
	if n := s.node(t.member.Node); n != nil && n.Fencing != "" && s.needsFence(t) {
		reason, text = spec.BlockedFence, text+"; "+n.Fencing
	}
	b := s.block(t, reason, text)
	if left := t.silence.Left; left > 0 {
		b.Left = left
		s.wake(left)
	}
}

// lostTo names the node of a life that is over by its deadline, which must have no
// session still when what follows from it is written; "": there is another proof, or
// no life.
func (t *seat) lostTo() spec.NodeName {
	if !t.expired() {
		return ""
	}
	return t.member.Node
}

// expired: the life is over by its deadline, and nobody said so.
func (t *seat) expired() bool { return t.silence.Over }
