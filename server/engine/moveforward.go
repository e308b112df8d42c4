package engine

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/store"
)

// forwardMove reads once more that the source cannot have the volumes, and that the target has the copies in their place and was not told
// to give them up; and compares both machines, the fence, the volumes, the life, and that no node reports one that the store does not know.
func forwardMove(d *decision, v cache.View, a plan.ForwardMove) error {
	now, err := present(v, &a.Move, moves.MoveBack)
	if err == nil {
		err = ended(v, now.ID)
	}
	if err == nil {
		err = volumesOf(v, now, false)
	}
	if err == nil && !plan.MayGoForward(now, v.Nodes(), v.Epoch()) {
		err = fmt.Errorf("move of %s forward: node %s may have its volumes, or node %s has not the copies", now.ID, now.From.Node, now.To.Node)
	}
	if err != nil {
		return err
	}
	c := comparingMove(d, v, now)
	c.once(store.FenceKey(now.From.Node))
	d.noUnknownLives(v)
	for _, claim := range now.Claims {
		left := v.VolumeReport(now.ID, claim.Claim, records.VolumeID(claim.New))
		if left == nil || left.State != records.VolumeLeft || left.Node != now.To.Node {
			return fmt.Errorf("move of %s forward: the copy of its claim %s on node %s was given up", now.ID, claim.Claim, now.To.Node)
		}
		d.removeSeen(v, store.VolumeReportKey(now.ID, claim.Claim, left.Volume))
	}
	for _, volume := range a.Volumes {
		d.putSeen(v, store.VolumeKey(volume.ID, volume.Claim), volume)
	}
	d.leave(v, a.Left)
	d.removeSeen(v, store.MoveKey(now.ID))
	d.removeSeen(v, store.MoveRequestKey(now.ID))
	return nil
}
