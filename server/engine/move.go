package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// What is written about moves. Each decision compares the move itself, so that of two about one move one conflicts, and
// reads once more what it relies on (SAFETY S7, S12).

// compares are the keys that decisions about a move compare, each once.
type compares struct {
	*decision
	v    cache.View
	done map[string]bool
}

func (d *decision) comparing(v cache.View) *compares {
	return &compares{decision: d, v: v, done: map[string]bool{}}
}

// comparingMove compares the life and both machines of a move.
func comparingMove(d *decision, v cache.View, m *moves.Move) *compares {
	c := d.comparing(v)
	c.life(m.ID)
	c.machine(m.From.Node)
	c.machine(m.To.Node)
	return c
}

func (c *compares) once(keys ...string) {
	for _, key := range keys {
		if !c.done[key] {
			c.done[key] = true
			c.seen(c.v, key)
		}
	}
}

// machine compares all that a node is and says.
func (c *compares) machine(node spec.NodeName) {
	c.once(store.NodeKey(node), store.FactsKey(node), store.SessionKey(node))
}

// life compares that no life of the identity began or ended meanwhile.
func (c *compares) life(id spec.Identity) {
	c.once(store.MemberKey(id), store.ReportKey(id), store.IdentityKey(id))
}

// present is the stored record of a move; it fails if that is another, or in another of these phases.
func present(v cache.View, m *moves.Move, phases ...moves.MovePhase) (*moves.Move, error) {
	now := cache.MoveOf(v, m.ID)
	if now == nil || now.Move != m.Move || !slices.Contains(phases, now.Phase) {
		return nil, fmt.Errorf("move of %s: the store has not the move %s in phase %v", m.ID, m.Move, phases)
	}
	return now, nil
}

// ended fails unless the identity has no life, or its own report says that it is over: never time alone.
func ended(v cache.View, id spec.Identity) error {
	if m := v.Member(id); m != nil && !proof.Ended(m, v.Report(id)) {
		return fmt.Errorf("move of %s: nothing proves that token %s is over", id, m.Token)
	}
	return nil
}

// volumesOf fails unless the volumes of a move are where it has them: at the source, and to be kept; going: or given up later
// by a policy.
func volumesOf(v cache.View, m *moves.Move, going bool) error {
	fates := []records.VolumeFate{records.FateKeep}
	if going {
		fates = append(fates, records.FateDelete)
	}
	for _, c := range m.Claims {
		if !plan.AtSource(m, c, v.Volume(m.ID, c.Claim), fates...) {
			return fmt.Errorf("move of %s: its volume of the claim %s is not %s on node %s", m.ID, c.Claim, c.Old, m.From.Node)
		}
	}
	return nil
}

// beginMove compares the volumes, what is asked about them, and both machines.
func (d *decision) beginMove(v cache.View, a plan.BeginMove) error {
	m := &a.Move
	if v.ModRev(store.MoveKey(m.ID)) != 0 {
		return fmt.Errorf("begin a move of %s: it has one", m.ID)
	}
	if err := volumesOf(v, m, false); err != nil {
		return err
	}
	c := d.comparing(v)
	for _, claim := range m.Claims {
		c.once(store.VolumeKey(m.ID, claim.Claim), store.VolumeRequestKey(m.ID, claim.Claim))
	}
	c.machine(m.From.Node)
	c.machine(m.To.Node)
	c.once(store.MoveRequestKey(m.ID))
	d.putSeen(v, store.MoveKey(m.ID), m)
	if a.Asked {
		d.remove(store.MoveRequestKey(m.ID))
	}
	if m.Phase == moves.MoveAborting { // of which nothing but a seal was left
		c.life(m.ID)
		return d.holdStarts(v, m.ID)
	}
	return nil
}

// advanceMove compares the life, and the nodes that were heard.
func (d *decision) advanceMove(v cache.View, a plan.AdvanceMove) error {
	m := &a.Move
	now, err := present(v, m, moves.MoveCopying, moves.MoveStopping, moves.MoveSealing)
	if err == nil && m.Phase == moves.MoveSealing {
		err = ended(v, m.ID)
	}
	if err == nil && m.Phase == moves.MoveStopping {
		if err = ended(v, m.ID); err == nil && now.Phase != moves.MoveCopying {
			err = fmt.Errorf("move of %s: it cannot go from %s to %s", m.ID, now.Phase, m.Phase)
		}
	}
	if err != nil {
		return err
	}
	c := d.comparing(v)
	c.life(m.ID)
	for _, node := range a.Heard {
		c.once(store.FactsKey(node))
	}
	if a.Silent != "" {
		c.once(store.SessionKey(a.Silent))
	}
	d.putSeen(v, store.MoveKey(m.ID), m)
	if a.Asked {
		d.removeSeen(v, store.MoveRequestKey(m.ID))
	}
	if m.Phase == moves.MoveStopping || m.Phase == moves.MoveAborting {
		return d.holdStarts(v, m.ID)
	}
	return nil
}

// flipMove reads once more that the target has all that the source sealed, or has had it flipped before a restore, or, if a person wants the
// copies of a move that is aborted, that its source cannot have the volumes; and compares both machines, the volumes, the life, and that no
// node reports one that the store does not know.
func (d *decision) flipMove(v cache.View, a plan.FlipMove) error {
	now, err := present(v, &a.Move, moves.MoveSealing, moves.MoveAborting)
	if err == nil {
		err = ended(v, now.ID)
	}
	if err == nil {
		err = volumesOf(v, now, now.Epoch != v.Epoch() && !a.Asked)
	}
	may := plan.MayFlip
	if a.Asked {
		may = plan.MayGoForward
	}
	if err == nil && !may(now, v.Nodes(), v.Epoch()) {
		err = fmt.Errorf("flip the move of %s: node %s does not have what node %s sealed, or node %s may have it", now.ID, now.To.Node, now.From.Node, now.From.Node)
	}
	if err != nil {
		return err
	}
	c := comparingMove(d, v, now)
	d.noUnknownLives(v)
	for _, volume := range a.Volumes {
		d.putSeen(v, store.VolumeKey(volume.ID, volume.Claim), volume)
	}
	d.putSeen(v, store.MoveKey(now.ID), a.Move)
	if a.Asked {
		c.once(store.FenceKey(now.From.Node))
		d.removeSeen(v, store.MoveRequestKey(now.ID))
	}
	return nil
}

// endMove compares the life, the volumes and both machines, and has the old copies given up: each is left on the source.
func (d *decision) endMove(v cache.View, a plan.EndMove) error {
	now, err := present(v, &a.Move, moves.MoveFlipped, moves.MoveAborting, moves.MoveBack)
	if err == nil {
		err = stillNeeded(v, now)
	}
	if err != nil {
		return err
	}
	c := comparingMove(d, v, now)
	for _, claim := range now.Claims {
		c.once(store.VolumeKey(now.ID, claim.Claim))
		if kept := v.Volume(now.ID, claim.Claim); len(a.Left) > 0 && kept != nil && string(kept.UID) == claim.Old {
			return fmt.Errorf("end the move of %s: its volume of the claim %s is the old one still", now.ID, claim.Claim)
		}
	}
	d.leave(v, a.Left)
	d.removeSeen(v, store.MoveKey(now.ID))
	return nil
}

// startWithMove compares that no life starts that a move does not allow: none is stopped for one, and what was flipped
// has arrived. Where no move is known, the identity, which each start compares, says whether one began to hold it (holdStarts).
func (d *decision) startWithMove(v cache.View, m *records.Member) error {
	move := cache.MoveOf(v, m.ID)
	if move == nil {
		return nil
	}
	if !plan.MayStart(move, m.Node, v.Nodes(), v.Epoch()) {
		return fmt.Errorf("start %s: its move is %s", m.ID, move.Phase)
	}
	d.seen(v, store.MoveKey(m.ID))
	return nil
}

// holdStarts has each start that was planned before a move held its member conflict: the identity is written as it is.
// (The stop of a life for a move writes the member, which does the same.) The caller compares the identity.
func (d *decision) holdStarts(v cache.View, id spec.Identity) error {
	rec := v.Identity(id)
	if rec == nil {
		return fmt.Errorf("move of %s: the store has no record of this identity", id)
	}
	d.add(store.PutRecord(store.IdentityKey(id), *rec))
	return nil
}

// stopForMove writes the move with the stop, and compares that both machines are there and what the target says.
func (d *decision) stopForMove(v cache.View, m *moves.Move) error {
	if m == nil {
		return nil
	}
	if _, err := present(v, m, moves.MoveCopying); err != nil {
		return err
	}
	c := d.comparing(v)
	c.once(store.IdentityKey(m.ID))
	c.machine(m.To.Node)
	c.once(store.SessionKey(m.From.Node))
	d.putSeen(v, store.MoveKey(m.ID), m)
	return nil
}

// moveEvents are the events of an action on a move.
func moveEvents(ref spec.SetRef, action plan.Action, now time.Time) []namedEvent {
	event := func(m *moves.Move, what, text string) []namedEvent {
		name := fmt.Sprintf("move-%d-%s-%s", m.ID.Ordinal, m.Move, what)
		return []namedEvent{newEvent(ref, name, "Normal", m.ID.MemberName(), "Move"+what, text, now)}
	}
	switch a := action.(type) {
	case plan.BeginMove:
		return event(&a.Move, "Started", a.Text)
	case plan.AdvanceMove:
		what := string(a.Move.Phase)
		if a.Move.Phase == moves.MoveSealing && a.Move.Sums != nil {
			what = "Sealed"
		}
		return event(&a.Move, what, a.Text)
	case plan.FlipMove:
		return event(&a.Move, "Flipped", a.Text)
	case plan.BackMove:
		return event(&a.Move, "Back", a.Text)
	case plan.ForwardMove:
		return event(&a.Move, "Forward", a.Text)
	case plan.EndMove:
		return event(&a.Move, "Over", a.Text)
	case plan.VoidMoveRequest:
		name := fmt.Sprintf("move-%d-void", a.ID.Ordinal)
		return []namedEvent{newEvent(ref, name, "Normal", a.ID.MemberName(), "MoveRequestVoid", fmt.Sprintf("what was asked about the move of %s was not done: %s", a.ID.MemberName(), a.Text), now)}
	}
	return nil
}

// The drain of a node begins no other move of a member for firstMoveRest after the first that was aborted, for twice as long after each
// further one, and for mostMoveRest at most. One that was aborted so long ago as moveRestForgotten does not count.
const (
	firstMoveRest     = 15 * time.Second
	mostMoveRest      = 5 * time.Minute
	moveRestForgotten = 30 * time.Minute
)

// moveRests is when moves of members were aborted last, in this term, why, and how often.
type moveRests map[spec.Identity]abortedMove

type abortedMove struct {
	at    time.Time
	why   string
	times int
}

func (r moveRests) aborted(id spec.Identity, now time.Time, why string) moveRests {
	if r == nil {
		r = moveRests{}
	}
	r[id] = abortedMove{now, why, r[id].times + 1}
	return r
}

// waits are the times that are left.
func (r moveRests) waits(now time.Time) map[spec.Identity]plan.MoveRest {
	if len(r) == 0 {
		return nil
	}
	left := map[spec.Identity]plan.MoveRest{}
	for id, aborted := range r {
		switch rest := aborted.at.Add(backoff.After(firstMoveRest, mostMoveRest, aborted.times)).Sub(now); {
		case now.Sub(aborted.at) >= moveRestForgotten:
			delete(r, id)
		case rest > 0:
			left[id] = plan.MoveRest{Left: rest, Why: aborted.why}
		}
	}
	return left
}
