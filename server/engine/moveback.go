package engine

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// backMove reads once more that the target is lost for good and the source has the old volumes sealed, or was given them back
// before a restore; and compares both machines, the fence, the volumes, the life, and that no node reports one that the store
// does not know. The copies are left on the target.
func (d *decision) backMove(v cache.View, a plan.BackMove) error {
	now, err := present(v, &a.Move, moves.MoveCopying, moves.MoveStopping, moves.MoveSealing, moves.MoveFlipped, moves.MoveAborting)
	if err == nil && now.Phase == moves.MoveFlipped {
		err = ended(v, now.ID)
	}
	if err == nil && !plan.MayGoBack(now, v.Nodes(), v.Epoch()) {
		err = fmt.Errorf("move of %s back: node %s may have its volumes, or node %s has them not sealed", now.ID, now.To.Node, now.From.Node)
	}
	if err != nil {
		return err
	}
	c := comparingMove(d, v, now)
	c.once(store.FenceKey(now.To.Node))
	d.noUnknownLives(v)
	for _, volume := range a.Volumes {
		key := store.VolumeKey(volume.ID, volume.Claim)
		c.done[key] = true
		d.putSeen(v, key, volume)
	}
	for _, claim := range now.Claims {
		key := store.VolumeKey(now.ID, claim.Claim)
		if kept := v.Volume(now.ID, claim.Claim); !c.done[key] && kept != nil && string(kept.UID) == claim.New {
			return fmt.Errorf("move of %s back: its volume of the claim %s stays the copy", now.ID, claim.Claim)
		}
		c.once(key)
	}
	d.leave(v, a.Left)
	d.putSeen(v, store.MoveKey(now.ID), a.Move)
	if a.Asked {
		d.removeSeen(v, store.MoveRequestKey(now.ID))
	}
	return nil
}

// leave has volumes be given up where they are left (SAFETY S11).
func (d *decision) leave(v cache.View, left []records.VolumeReport) {
	for _, r := range left {
		d.putSeen(v, store.VolumeReportKey(r.ID, r.Claim, r.Volume), r)
	}
}

// stillNeeded fails unless the source of a move that goes back, or is aborted, says that it has the volumes, not sealed; or none is there to
// be had.
func stillNeeded(v cache.View, m *moves.Move) error {
	volume := func(c spec.ClaimName) *records.Volume { return v.Volume(m.ID, c) }
	if m.Phase == moves.MoveFlipped || plan.HasVolumes(m, v.Nodes(), v.Epoch(), volume) {
		return nil
	}
	for _, c := range m.Claims {
		if kept := v.Volume(m.ID, c.Claim); kept != nil && string(kept.UID) == c.Old {
			return fmt.Errorf("end the move of %s: node %s does not say that its volumes are in use again", m.ID, m.From.Node)
		}
	}
	return nil
}
