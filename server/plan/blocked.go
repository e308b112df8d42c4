package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// blockWaiting says what a member with a life waits for, and returns it; nil: it is available.
func (e explainer) blockWaiting(t *memberState) *Blocked {
	if t.Available {
		return nil
	}
	reason, text := e.state(t)
	if reason == causes.BlockedNodeSilent {
		return e.blockSilent(t, text)
	}
	return e.block(t, reason, text+e.replacementText(t)+e.leavingText(t)+e.busyRestartText(t))
}

// replacementText says when a member that is off its target, and is not well, is replaced, and how a
// person may have it now: nothing else helps, no other template and no rollback.
func (e explainer) replacementText(t *memberState) string {
	switch {
	case !e.obsolete(t) || t.Ready || t.unseen() || e.held(t) || e.onDelete():
		return ""
	case !e.replacesBroken():
		return fmt.Sprintf("; it still runs revision %s, and replaceBroken is Never; to replace it: stead restart %s", t.Member.Revision, t.ID.MemberName())
	case e.broken(t) != "":
		return ""
	}
	return fmt.Sprintf("; it still runs revision %s, and is replaced when that has lasted %d s; to replace it now: stead restart %s",
		t.Member.Revision, int(e.patience(t).Seconds()), t.ID.MemberName())
}

// state is what a member with a life waits for: one word, and a sentence without its subject.
func (r rollout) state(t *memberState) (reason causes.BlockedReason, text string) {
	switch last := t.Report; {
	case r.rebooted(t):
		return causes.BlockedNodeReboot, fmt.Sprintf("node %s rebooted and has not yet confirmed that token %s ended", t.Member.Node, t.Member.Token)
	case !t.Live:
		return causes.BlockedNodeSilent, t.Silence.Text
	case t.stopping():
		return causes.BlockedStopping, fmt.Sprintf("it is stopping on node %s", t.Member.Node)
	case t.Stale:
		return causes.BlockedReconnected, fmt.Sprintf("node %s reconnected and has not reported on it yet", t.Member.Node)
	case t.changing:
		return changingState(t)
	case last != nil && last.Cause != "" && last.Cause != causes.NotReady:
		return causes.BlockedReason(last.Cause), fmt.Sprintf("it reports %s: %s", last.Cause, last.Message)
	case t.Ready && last.Cause == "":
		return causes.BlockedNotYet, fmt.Sprintf("it is ready, but not yet for %d s", r.world.Set.Spec.MinReadySeconds)
	case last != nil && (last.Cause != "" || last.Phase == records.PhaseRunning):
		return causes.BlockedNotReady, "it is running, but not ready"
	}
	return causes.BlockedStarting, fmt.Sprintf("it is starting on node %s", t.Member.Node)
}

// stateText is the sentence of state.
func (r rollout) stateText(t *memberState) string {
	_, text := r.state(t)
	return text
}

// rebooted: the node lives, but in another boot than the one the life belongs to.
func (r rollout) rebooted(t *memberState) bool {
	n := r.node(t.Member.Node)
	return n != nil && n.Session != nil && n.Session.UID == t.Member.NodeUID && n.Session.Boot != t.Member.Boot
}

// blockSilent says what a member on a silent node waits for, and how long still.
func (e explainer) blockSilent(t *memberState, text string) *Blocked {
	reason := causes.BlockedNodeSilent
	if n := e.node(t.Member.Node); n != nil && n.Fencing != "" && e.needsFence(t) {
		reason, text = causes.BlockedFence, text+"; "+n.Fencing
	}
	b := e.block(t, reason, text)
	if left := t.Silence.Left; left > 0 {
		b.Left = left
		e.wake(left)
	}
	return b
}

// FenceNeeded names the silent nodes with a life of the set that nothing but a fence ends, and that
// would start elsewhere then: the set has nodeLoss Replace, time alone proves nothing about the
// life, and no volume of it is bound to the node. In the order of ordinals, each once. It does
// not ask how long a node has been silent, nor how many are.
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
		if s.needsFence(t) && !seen[t.Member.Node] {
			seen[t.Member.Node] = true
			nodes = append(nodes, t.Member.Node)
		}
	}
	return nodes
}

// needsFence: only a fence ends the life, and something is gained by it.
func (r rollout) needsFence(t *memberState) bool {
	if t.Member == nil || t.Over || r.bound() == 0 || r.world.Set.Orphaned || t.Silence.Left > 0 {
		return false
	}
	n := r.node(t.Member.Node)
	if n == nil || n.Session != nil || n.Node.UID != t.Member.NodeUID {
		return false
	}
	for _, v := range t.Volumes {
		if v.Node == t.Member.Node && !v.Shared {
			return false
		}
	}
	return true
}
