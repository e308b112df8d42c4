package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// blockWaiting says what a member with a life waits for, and returns it; nil: it is available.
func (e explainer) blockWaiting(t *memberState) *Blocked {
	switch reason := e.waitReason(t); {
	case t.Available:
		return nil
	case reason == causes.BlockedNodeSilent:
		return e.blockSilent(t)
	default:
		return e.block(t, reason, e.stateText(t)+e.replacementText(t))
	}
}

// replacementText says when a member that is off its target, and is not well, is replaced, and how a
// person may have it now: nothing else helps, no other template and no rollback.
func (e explainer) replacementText(t *memberState) string {
	switch {
	case !e.obsolete(t) || t.Ready || t.unseen() || e.held(t) || e.onDelete():
		return ""
	case !e.replacesBroken():
		return fmt.Sprintf("; it still runs revision %s, and replaceBroken is Never; to replace it: stead restart %s", t.member.Revision, t.id.MemberName())
	case e.broken(t) != "":
		return ""
	}
	return fmt.Sprintf("; it still runs revision %s, and is replaced when that has lasted %d s; to replace it now: stead restart %s",
		t.member.Revision, int(e.patience(t).Seconds()), t.id.MemberName())
}

// waitReason is the one word for what a member with a life waits for.
func (r rollout) waitReason(t *memberState) causes.BlockedReason {
	switch {
	case r.rebooted(t):
		return causes.BlockedNodeReboot
	case !t.Live:
		return causes.BlockedNodeSilent
	case t.stopping():
		return causes.BlockedStopping
	case t.Stale:
		return causes.BlockedReconnected
	case t.report != nil && t.report.Cause != "":
		return causes.BlockedReason(t.report.Cause)
	case t.Ready:
		return causes.BlockedNotYet
	case t.report != nil && t.report.Phase == records.PhaseRunning:
		return causes.BlockedNotReady
	}
	return causes.BlockedStarting
}

// stateText says how a member with a life stands: a sentence without its subject.
func (r rollout) stateText(t *memberState) string {
	switch reason := r.waitReason(t); reason {
	case causes.BlockedNodeReboot:
		return fmt.Sprintf("node %s rebooted and has not yet confirmed that token %s ended", t.member.Node, t.member.Token)
	case causes.BlockedNodeSilent:
		return t.Silence.Text
	case causes.BlockedStopping:
		return fmt.Sprintf("it is stopping on node %s", t.member.Node)
	case causes.BlockedReconnected:
		return fmt.Sprintf("node %s reconnected and has not reported on it yet", t.member.Node)
	case causes.BlockedNotYet:
		return fmt.Sprintf("it is ready, but not yet for %d s", r.world.Set.Spec.MinReadySeconds)
	case causes.BlockedNotReady:
		return "it is running, but not ready"
	case causes.BlockedStarting:
		return fmt.Sprintf("it is starting on node %s", t.member.Node)
	default:
		return fmt.Sprintf("it reports %s: %s", reason, t.report.Message)
	}
}

// rebooted: the node lives, but in another boot than the one the life belongs to.
func (r rollout) rebooted(t *memberState) bool {
	n := r.node(t.member.Node)
	return n != nil && n.Session != nil && n.Session.UID == t.member.NodeUID && n.Session.Boot != t.member.Boot
}

// blockSilent says what a member on a silent node waits for, and how long still.
func (e explainer) blockSilent(t *memberState) *Blocked {
	reason, text := causes.BlockedNodeSilent, e.stateText(t)
	if n := e.node(t.member.Node); n != nil && n.Fencing != "" && e.needsFence(t) {
		reason, text = causes.BlockedFence, text+"; "+n.Fencing
	}
	b := e.block(t, reason, text)
	if left := t.Silence.Left; left > 0 {
		b.Left = left
		e.wake(left)
	}
	return b
}

// FenceNeeded names the silent nodes with a life of the set that nothing but a fence ends,
// and that would begin elsewhere then: the set has nodeLoss Replace, time alone proves
// nothing about the life, and no volume of it is bound to the node. In the order of ordinals,
// each once. It does not ask how long a node has been silent, nor how many are.
func FenceNeeded(w World) (nodes []spec.NodeName) {
	if w.Set == nil || len(w.Broken) > 0 {
		return nil
	}
	if reason, _ := halted(&w); reason != "" {
		return nil
	}
	s := newStep(w)
	seen := map[spec.NodeName]bool{}
	for _, t := range s.members {
		if s.needsFence(t) && !seen[t.member.Node] {
			seen[t.member.Node] = true
			nodes = append(nodes, t.member.Node)
		}
	}
	return nodes
}

// needsFence: only a fence ends the life, and something is gained by it.
func (r rollout) needsFence(t *memberState) bool {
	if t.member == nil || t.Over || r.bound() == 0 || r.world.Set.Orphaned || t.Silence.Left > 0 {
		return false
	}
	n := r.node(t.member.Node)
	if n == nil || n.Session != nil || n.Node.UID != t.member.NodeUID {
		return false
	}
	for _, v := range t.volumes {
		if v.Node == t.member.Node && !v.Shared {
			return false
		}
	}
	return true
}
