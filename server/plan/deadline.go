package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Progress is how far a rollout has come. The engine keeps it beside its clock, which
// starts again with all that is beyond it.
type Progress struct {
	// Aim is the revision to which the members go.
	Aim spec.RevisionHash
	// Arrived counts the members that were available on Aim; Newest is the newest life
	// of a member that was available. One that only becomes available again is none.
	Arrived int
	Newest  spec.Token
}

// Beyond reports whether p is progress over old.
func (p Progress) Beyond(old Progress) bool {
	return p.Aim != old.Aim || p.Arrived > old.Arrived || p.Newest.Compare(old.Newest) > 0
}

// deadline is rule 9: when no member became available for too long during a rollout, the set is
// stalled, and says at which member and why. The time is the engine's, which counts it while
// Plan.Clock: not while the rollout is paused, waits for no member but one that is busy, or a member waits for a node that is drained, or for its move. A set that is to roll
// back then goes back to the revision completed last, once: see rolledBack.
func (s step) deadline() {
	s.plan.Reached = s.reached()
	still := s.world.Standstill
	if s.plan.Reached.Beyond(s.world.Reached) {
		still = 0
	}
	b := s.awaited()
	if b == nil || b.Reason == causes.BlockedBusy || s.paused() || !s.rolling() || slices.ContainsFunc(s.inside, s.away) {
		return
	}
	s.plan.Clock = true
	if !s.past(still, s.world.Set.Spec.ProgressDeadline()+s.allowance(s.targetRevision)) {
		return
	}
	s.stalled = fmt.Sprintf("no member became available for %d s; %s: %s",
		int(s.world.Set.Spec.ProgressDeadline().Seconds()), b.ID.MemberName(), b.Text)
	s.giveUp = s.mayGoBack()
}

// away: the member is down for something that is planned, and how long that takes is not the rollout's.
func (f *facts) away(t *memberState) bool {
	return f.awaitsNode(t) || f.ofMoves().heldByMove(t.memberFacts) && !t.Available
}

// reached is how far the rollout came; a life that was the newest once stays it.
func (r rollout) reached() Progress {
	p := Progress{Aim: r.targetRevision, Newest: r.world.Reached.Newest}
	for _, t := range r.inside {
		if t.Available && t.Member.Token.Compare(p.Newest) > 0 {
			p.Newest = t.Member.Token
		}
		p.Arrived += one(t.Available && t.heads() == r.targetRevision || t.Identity != nil && t.Identity.AvailableOn == r.targetRevision)
	}
	if c := r.world.Folded; c != nil {
		p.Arrived += c.up[r.targetRevision] + c.vacant[r.targetRevision]
		if c.newest.Compare(p.Newest) > 0 {
			p.Newest = c.newest
		}
	}
	return p
}

// awaited is the member for whom the rollout waits: one whose turn came, else one that
// waits for something else than other members, else any; nil: nobody waits.
func (r rollout) awaited() (first *Blocked) {
	for i := range r.plan.Blocked {
		b := &r.plan.Blocked[i]
		t := r.memberOf(b.ID.Ordinal)
		switch {
		case !t.wanted:
		case t.Available && !t.stopping() && t.Request == nil && (r.onDelete() || !r.queued(t)): // it is only to be moved
		case !forOthers(b.Reason) && r.turned(t):
			return b
		case first == nil || forOthers(first.Reason) && !forOthers(b.Reason):
			first = b
		}
	}
	return first
}

// forOthers: the reason is that other members come first.
func forOthers(reason causes.BlockedReason) bool {
	return reason == causes.BlockedTurn || reason == causes.BlockedPredecessor
}

// allowance is the time that startup probes give a member of a revision on top of the
// deadline: those of sidecars come one after the other, those of the containers together.
func (f *facts) allowance(h spec.RevisionHash) (most time.Duration) {
	tpl := f.template(h)
	if tpl == nil {
		return 0
	}
	var before time.Duration
	for c, role := range tpl.Spec.All() {
		p := c.StartupProbe
		if p == nil {
			continue
		}
		seconds := int64(p.InitialDelaySeconds) + int64(p.PeriodSeconds)*int64(p.FailureThreshold)
		if role == spec.RoleSidecar {
			before += time.Duration(seconds) * time.Second
			continue
		}
		most = max(most, time.Duration(seconds)*time.Second)
	}
	return before + most
}

// mayGoBack: the set asks for it, and there is a completed revision to go back to. What
// went back already stays so.
func (f *facts) mayGoBack() bool {
	r := f.strategy().RollingUpdate
	return r != nil && r.OnFailure == spec.OnFailureRollback && f.proven
}

// rolledBack: the template was given up. The members go to the current revision until
// there is another template. It is believed only from the stored status: what is decided
// is written before anybody acts on it, so that every leader acts alike.
func (f *facts) rolledBack() bool { return f.targetRevision != f.update }
