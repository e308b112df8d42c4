package plan

import (
	"iter"
	"slices"
	"time"

	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// draft is what a step has decided so far: actions, who waits, and how the set is after these
// actions. Each of its fields has one writer, which is named with it.
type draft struct {
	*facts
	plan Plan // act, block, wake; deadline and Next complete it
	// members are as they are after the actions, so that the status of a step is that of the
	// next, and may share its transaction.
	members      []*memberState
	inside       []*memberState        // those that are wanted
	placer       *place.Placer         // start
	freeUsed     int                   // how many of World.Free were given in this step: start
	claimed      map[string]bool       // claims whose record a start of this step writes: claim
	moved        map[spec.NodeName]int // moves that begin in this step, by their nodes: begin
	bootstrapped bool                  // markBootstrapped
	firstBusy    *memberState          // newStep
	// recreateWaits is why not all members go down now, though they should: recreate.
	recreateWaits string
	// forgetWaits is for what the member waits that has left and is to be forgotten by the others: tellGone.
	forgetWaits *place.Refusal
	finished    bool   // rule 8: the update is complete with this step: complete
	stalled     string // rule 9: why and where the rollout stands still: deadline
	giveUp      bool   // rule 9: from the next step on the set goes back: deadline
}

// memberState is one member as it is after what the step has decided.
type memberState struct {
	*memberFacts // become

	volumesKept    bool // its volumes are kept after all, which is recorded in this very step: keep
	volumesLost    bool // that volumes of it are lost is recorded in this very step: lose
	fatesRecorded  bool // the fate of its volumes is as it is to be, or recorded in this very step: undecided
	restartDelayed bool // a person asked for its restart, which waits: restart
	drainDelayed   bool // it is well, and its stop for the drain of its node waits: drain
	moveDelayed    bool // it is well, and its stop for its move waits: stopForMoves
	moveWritten    bool // its move goes on or ends in this very step: writeMove, flip, endMove
	// moveWaits is why a move of it that is wanted does not begin yet: beginMove.
	moveWaits *place.Refusal
}

// become gives the member the facts that follow from an action.
func (t *memberState) become(m *memberFacts) { t.memberFacts = m }

func newDraft(f *facts) *draft {
	d := &draft{
		facts: f, bootstrapped: f.world.Bootstrapped, claimed: map[string]bool{}, moved: map[spec.NodeName]int{},
		members: make([]*memberState, len(f.asSeen)), inside: make([]*memberState, 0, min(f.size, len(f.asSeen))),
	}
	var folded map[spec.NodeName]int
	var counted []int
	if f.world.Folded != nil {
		folded, counted = f.world.Folded.byNode, f.world.Folded.counted
	}
	states, byNode := make([]memberState, len(f.asSeen)), map[spec.NodeName]int{}
	for i := range states {
		t := &states[i]
		t.memberFacts, d.members[i] = &f.asSeen[i], t
		if t.wanted {
			d.inside = append(d.inside, t)
		}
		if _, known := slices.BinarySearch(counted, t.ID.Ordinal); t.Member != nil && !known {
			byNode[t.Member.Node]++
		}
	}
	d.placer = place.New(f.world.Nodes, folded, byNode)
	return d
}

// act adds an action.
func (d *draft) act(a Action) { d.plan.Actions = append(d.plan.Actions, a) }

// block says why nothing is done for a member, and returns what it said.
func (d *draft) block(t *memberState, reason causes.BlockedReason, text string) *Blocked {
	d.plan.Blocked = append(d.plan.Blocked, Blocked{ID: t.ID, Reason: reason, Text: text})
	return &d.plan.Blocked[len(d.plan.Blocked)-1]
}

// wake asks for the next step after this time at the latest.
func (d *draft) wake(after time.Duration) {
	if d.plan.Wake == 0 || after < d.plan.Wake {
		d.plan.Wake = after
	}
}

// past reports whether a time has come to its limit; if not, the step is repeated when it has.
func (d *draft) past(time, limit time.Duration) bool {
	if time >= limit {
		return true
	}
	d.wake(limit - time)
	return false
}

// memberOf finds a member by its ordinal.
func (d *draft) memberOf(ordinal int) *memberState {
	i, _ := slices.BinarySearchFunc(d.members, ordinal, func(t *memberState, o int) int { return t.ID.Ordinal - o })
	return d.members[i]
}

// markBootstrapped records that the set is bootstrapped.
func (d *draft) markBootstrapped(inherited bool) {
	d.act(MarkBootstrapped{Inherited: inherited})
	d.bootstrapped = true
}

// turns are the members that are wanted in the order in which updates, restarts, drains and moves take them down: highest
// first, and, if the set says so, the leader last.
func (d *draft) turns() iter.Seq[*memberState] {
	return func(yield func(*memberState) bool) {
		var leader *memberState
		for _, t := range slices.Backward(d.inside) {
			if t.ID.Ordinal == d.leader {
				leader = t
			} else if !yield(t) {
				return
			}
		}
		if leader != nil {
			yield(leader)
		}
	}
}

// unavailable counts the wanted members that are not available.
func (d *draft) unavailable() int {
	n := d.foldedVacant()
	for _, t := range d.inside {
		n += one(!t.Available)
	}
	return n
}

// spare is how many of the available members may be disturbed: those above the set's disruption
// floor; negative when there are fewer than that already.
func (d *draft) spare() int {
	floor, _ := d.floor()
	return d.size - d.unavailable() - floor
}

// floored: nothing but the disruption floor holds the update back.
func (d *draft) floored() bool { return d.unavailable() == 0 && d.spare() <= 0 }

// currentRevision is that of the status after this step.
func (d *draft) currentRevision() spec.RevisionHash {
	if d.finished {
		return d.update
	}
	return d.current
}

// currentProven: every member ran that revision and was available, once. A set without members
// goes to its update revision at once, which proves nothing of it.
func (d *draft) currentProven() bool {
	return d.proven && (!d.finished || d.current == d.update) || d.finished && d.size > 0
}

// rolling: the update is not complete.
func (d *draft) rolling() bool { return !d.finished && (d.current != d.update || !d.proven) }

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// others are the lives of other revisions than the one where members go.
func (d *draft) others() (old []*memberState) {
	for _, t := range d.members {
		if !t.vacant() && t.heads() != d.targetRevision {
			old = append(old, t)
		}
	}
	return old
}
