package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// The reasons for which a member waits; beside them any cause of a report (spec.Cause). Those
// made from a cause are one word to people, in whichever of the two ways it is said.
const (
	BlockedPredecessor = "WaitingForPredecessor" // OrderedReady: one before it is not available
	BlockedSuccessor   = "WaitingForSuccessor"   // it stops after the one above it is gone
	BlockedSurvivors   = "WaitingForSurvivors"   // surplus stays until the survivors are available
	BlockedTurn        = "WaitingForTurn"        // it is well, and updated after others
	BlockedPaused      = "Paused"                // it is well, and updated after the rollout is resumed
	BlockedFloor       = "DisruptionFloor"       // it is well, and fewer than the floor would be left
	BlockedNodeSilent  = "NodeSilent"            // its node has no live session; silence proves nothing
	BlockedFence       = "FenceFailed"           // its node is silent, and the fence command did not prove it off
	BlockedNodeReboot  = "NodeRebooted"          // its node booted since, and has not said what became of it
	BlockedReconnected = "NodeReconnected"       // its node has a new session, and has not told in it how it is
	BlockedNoNode      = "NoNode"
	BlockedNoRoom      = "NoRoom"                        // the nodes that might take it have too little left of what it asks for
	BlockedHostPort    = string(spec.CauseHostPortTaken) // the nodes that might take it have one of its host ports taken
	BlockedNoClass     = "NoStorageClass"                // no node that could take it has the storage class
	BlockedNoGuard     = "NoGuard"                       // its lives are to be guarded, and no node that could take it does that
	BlockedCordoned    = "Cordoned"
	BlockedAddress     = "NoAddress"
	BlockedStray       = string(spec.CauseStray)
	BlockedHeld        = "Held"                     // the store went back, and nobody has declared its restore
	BlockedAwaiting    = "WaitingForNodes"          // the server has just started, and a node may know what the store does not
	BlockedRestored    = string(spec.CauseRestored) // a node has not said what it runs since the store was restored
	BlockedVolume      = "VolumeMismatch"
	BlockedReclaiming  = "VolumeReclaiming" // its volume is being given up, or is lost; a new one follows
	BlockedRestoring   = "VolumeRestoring"  // its volume is being brought back from the trash
	BlockedBackOff     = "BackOff"
	BlockedUnreadable  = "Unreadable"
	BlockedOrphaned    = "Orphaned" // nobody owns the set: see abandon
	BlockedStarting    = "Starting"
	BlockedNotReady    = string(spec.CauseNotReady)
	BlockedNotYet      = "NotAvailableYet" // ready, but for less than minReadySeconds
	BlockedStopping    = "Stopping"
)

// tell says what a member with a life waits for, unless it is available.
func (s *step) tell(t *seat) {
	switch reason := s.waiting(t); {
	case t.available:
	case reason == BlockedNodeSilent:
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
func (s *step) waiting(t *seat) string {
	switch {
	case s.rebooted(t):
		return BlockedNodeReboot
	case !t.live:
		return BlockedNodeSilent
	case t.stopping():
		return BlockedStopping
	case t.stale:
		return BlockedReconnected
	case t.report != nil && t.report.Cause != "":
		return string(t.report.Cause)
	case t.ready:
		return BlockedNotYet
	case t.report != nil && t.report.Phase == records.PhaseRunning:
		return BlockedNotReady
	}
	return BlockedStarting
}

// standing says how a member with a life stands: a sentence without its subject.
func (s *step) standing(t *seat) string {
	switch reason := s.waiting(t); reason {
	case BlockedNodeReboot:
		return fmt.Sprintf("its node %s booted anew and has not said yet that token %s is over", t.member.Node, t.member.Token)
	case BlockedNodeSilent:
		return t.silence.Text
	case BlockedStopping:
		return fmt.Sprintf("it is stopping on node %s", t.member.Node)
	case BlockedReconnected:
		return fmt.Sprintf("its node %s connected anew and has not reported on it since", t.member.Node)
	case BlockedNotYet:
		return fmt.Sprintf("it is ready, but not yet for %d s", s.w.Set.Spec.MinReadySeconds)
	case BlockedNotReady:
		return "it runs, but is not ready"
	case BlockedStarting:
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
