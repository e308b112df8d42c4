package sim

import (
	"slices"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// move judges what is written of a move (SAFETY S12), by what is on the hosts.
func (j *judge) move(v cache.View, b store.Batch, e store.Event) {
	if e.Delete {
		if old := moveOf(v, e.Key); old != nil {
			j.moveEnds(v, b, old)
		}
		return
	}
	m, ok := decoded[moves.Move](j, e)
	if !ok {
		return
	}
	for _, c := range m.Claims {
		j.lineages[records.VolumeID(c.New)] = j.lineage(records.VolumeID(c.Old))
	}
	old := cache.MoveOf(v, m.ID)
	switch {
	case j.w.restoring:
	case old == nil && m.Phase != moves.MoveCopying:
		j.w.fail("moves", "the move %s of %s begins as %s", m.Move, m.ID, m.Phase)
	case old == nil:
		j.w.count("move begun")
	case old.Move != m.Move || old.From != m.From || old.To != m.To || old.Epoch != m.Epoch || !slices.Equal(old.Claims, m.Claims) || old.Sums != nil && !slices.Equal(old.Sums, m.Sums):
		j.w.fail("moves", "the move %s of %s becomes another", old.Move, m.ID)
	case old.Phase != m.Phase:
		j.w.count("move " + string(old.Phase) + " to " + string(m.Phase))
		j.phase(v, old, &m)
	}
}

// moveOf is the move of a key; nil: there is none.
func moveOf(v cache.View, key string) *moves.Move {
	ref, _ := store.RefOfKey(key)
	for _, s := range v.World(ref).Slots {
		if store.MoveKey(s.ID) == key {
			return s.Move
		}
	}
	return nil
}

// phase judges that a move goes the way of S12, and what must be so by then.
func (j *judge) phase(v cache.View, old, now *moves.Move) {
	way := string(old.Phase) + " " + string(now.Phase)
	switch way {
	case "Copying Stopping", "Copying Aborting", "Stopping Aborting", "Sealing Aborting":
	case "Stopping Sealing":
		if m := v.Member(now.ID); m != nil && (j.alive[now.ID].token == m.Token || !j.life(now.ID, m.Token).over) {
			j.w.fail("moves", "%s seals, and nobody said that %s is over", now.ID, m.Token)
		}
	case "Sealing Flipped", "Aborting Flipped":
		if old.Phase == moves.MoveAborting && !j.arrived[records.VolumeID(now.Claims[0].New)] {
			j.fromAbort(v, old)
		}
		j.flips(old, now)
	case "Copying Back", "Stopping Back", "Sealing Back", "Aborting Back", "Flipped Back":
		j.goesBack(v, old, now)
	default:
		j.w.fail("moves", "the move of %s goes from %s to %s", now.ID, old.Phase, now.Phase)
	}
}

// flips judges that the copies at the target have all that was ever written, and that no life may be on the old ones.
func (j *judge) flips(old, m *moves.Move) {
	if user := j.user(m.ID, nil); user != "" {
		j.w.fail("moves", "the move of %s is flipped: %s", m.ID, user)
	}
	from, to := j.w.machineOf(m.From), j.w.machineOf(m.To)
	for _, c := range m.Claims {
		was, is := records.VolumeID(c.Old), records.VolumeID(c.New)
		if !j.excused(to, is) && !j.arrived[is] && !j.holdsNewest(is, to.copyOf(m, c)) {
			j.w.fail("moves", "the move of %s is flipped, and what is on %s is not all that was written to volume %s", m.ID, m.To.Node, c.Old)
		}
		if t := from.placed(m.ID, c, c.Old); t != nil && t.seal != m.Move && !j.lineage(was).byHand {
			j.w.fail("moves", "the move of %s is flipped, and volume %s on %s is not sealed", m.ID, c.Old, m.From.Node)
		}
		if j.arrived[is] {
			j.w.count("move flipped that had arrived before a restore")
		}
		j.volume(is).known, j.volume(is).used = true, j.volume(was).used
	}
	if old.Epoch != j.w.epoch {
		j.w.count("move flipped after a restore")
	}
}

// copyOf is the copy of a claim at the target of a move, in staging or in its place; nil: none.
func (n *node) copyOf(m *moves.Move, c moves.MoveClaim) *tree {
	if disk := n.classes[c.Class].disk; disk != nil {
		if t := disk.staging[m.Move][records.VolumeID(c.New)]; t != nil {
			return t
		}
	}
	return n.placed(m.ID, c, c.New)
}

// placed is the volume of this id in the place of a claim, wherever its disk is; nil: it is not there.
func (n *node) placed(id spec.Identity, c moves.MoveClaim, volume string) *tree {
	if disk := n.classes[c.Class].disk; disk != nil {
		if d := disk.dirs[volumeKey{id, c.Claim}]; string(d.id) == volume {
			return d.tree
		}
	}
	return nil
}

// flipped: the batch makes a volume the copy that its move made of it.
func (j *judge) flipped(v cache.View, b store.Batch, old, now *records.Volume) bool {
	was := cache.MoveOf(v, now.ID)
	m, err := store.Decode[moves.Move](written(b, store.MoveKey(now.ID)))
	return err == nil && m.Phase == moves.MoveFlipped && was != nil && was.Phase != moves.MoveFlipped && old.Number == now.Number && old.Class == now.Class && old.Fate == now.Fate &&
		slices.ContainsFunc(m.Claims, func(c moves.MoveClaim) bool {
			return c.Claim == now.Claim && c.Old == string(old.UID) && c.New == string(now.UID) && m.From.Node == old.Node && m.To.Node == now.Node
		})
}

// moveEnds judges the end of a move: the old copies are given up only for one that has arrived whole; and one that was aborted
// leaves nothing sealed.
func (j *judge) moveEnds(v cache.View, b store.Batch, m *moves.Move) {
	if j.w.restoring {
		return
	}
	if isForward(b, m) {
		j.goesForward(v, m)
	}
	j.w.count("move ended as " + string(m.Phase))
	from, to := j.w.machineOf(m.From), j.w.machineOf(m.To)
	for _, c := range m.Claims {
		was, is := records.VolumeID(c.Old), records.VolumeID(c.New)
		vol := v.Volume(m.ID, c.Claim)
		left, _ := store.Decode[records.VolumeReport](written(b, store.VolumeReportKey(m.ID, c.Claim, was)))
		switch {
		case left.State == records.VolumeLeft:
			j.volume(was).going, j.volume(was).behind = true, true
			if vol != nil && vol.UID == is && !j.excused(to, is) && (!j.arrived[is] || !j.holdsNewest(is, to.placed(m.ID, c, c.New))) {
				j.w.fail("moves", "volume %s of %s on %s is given up, and its copy on %s is not whole and in its place", c.Old, m.ID, m.From.Node, m.To.Node)
			}
		case vol != nil && vol.UID == was && !isForward(b, m):
			if t := from.placed(m.ID, c, c.Old); t != nil && t.seal != "" {
				j.w.fail("moves", "the move of %s is over, and volume %s on %s is sealed", m.ID, c.Old, m.From.Node)
			}
		}
	}
}

// startsBesideMove judges that no life is decided from Stopping until the volumes have arrived, nor while a move is aborted.
func (j *judge) startsBesideMove(v cache.View, m *records.Member) {
	x := cache.MoveOf(v, m.ID)
	switch {
	case x == nil || x.Phase == moves.MoveCopying:
		return
	case x.Phase != moves.MoveFlipped:
		j.w.fail("moves", "%s gets %s while its move is %s", m.ID, m.Token, x.Phase)
		return
	}
	for _, c := range x.Claims {
		vol := v.Volume(m.ID, c.Claim)
		if vol != nil && string(vol.UID) == c.New && (!j.arrived[vol.UID] || m.Node != x.To.Node) {
			j.w.fail("moves", "%s gets %s on %s, and its volume %s has not arrived on %s", m.ID, m.Token, m.Node, c.New, x.To.Node)
		}
	}
	j.w.count("life begun where its volumes arrived")
}

// sealed judges that a life finds its volume sealed only after a restore.
func (j *judge) sealed(n *node, id spec.Identity, v records.MemberVolume) {
	j.w.count("life refused a sealed volume")
	if j.w.restores == 0 {
		j.w.fail("moves", "%s is to run on %s with volume %s, which is sealed", id, n.name, v.ID)
	}
}

// arrives judges that a copy that becomes a volume is whole, and the only one from which a life may start.
func (j *judge) arrives(n *node, p runtime.MovePart, c moves.MoveClaim, t *tree) {
	id := records.VolumeID(c.New)
	if j.backs[p.Move] { // it goes to the trash
		j.w.count("copy arrived that went back")
		j.arrived[id] = true
		return
	}
	if !j.holdsNewest(id, t) && !j.excused(n, id) {
		j.w.fail("moves", "%s puts the copy of volume %s of %s in its place, which has %v; %v was written", n.name, c.Old, p.ID, t.files, j.lineage(id).newest)
	}
	for _, x := range j.w.nodes {
		if old := x.placed(p.ID, c, c.Old); old != nil && old.seal == "" && !j.lineage(id).byHand {
			j.w.fail("moves", "%s puts the copy of volume %s of %s in its place, and that one is on %s and not sealed", n.name, c.Old, p.ID, x.name)
		}
	}
	j.arrived[id] = true
}

// sums judges that nobody writes to what a source sums.
func (j *judge) sums(n *node, m moves.MoveID, t *tree) {
	part, is := n.parts[partKey{m, moves.MoveSource}]
	if !is {
		return
	}
	if b := n.writer(part.ID, t); b != nil {
		j.w.fail("moves", "%s sums a volume of %s for its move, and %s has it", n.name, part.ID, b.alive)
	}
}

// unseals judges that a seal is broken only where no copy is in its place.
func (j *judge) unseals(n *node, p runtime.MovePart, c moves.MoveClaim) {
	for _, x := range j.w.nodes {
		if x.placed(p.ID, c, c.New) != nil && !p.Back {
			j.w.fail("moves", "%s breaks the seal of volume %s of %s, and its copy %s is in its place on %s", n.name, c.Old, p.ID, c.New, x.name)
		}
	}
	j.w.count("seal broken")
}

// discards judges that what is discarded is not the last that has all that was written; of what was compared, for else nobody knows that. What is
// to go by policy is not awaited when a move is aborted (SAFETY S12).
func (j *judge) discards(n *node, p runtime.MovePart, c moves.MoveClaim, t *tree) {
	l := j.lineage(records.VolumeID(c.New))
	j.w.count("copy discarded")
	if l.writes == 0 || l.anew || !t.compared || j.has[p.Move] || t.files != l.newest {
		return
	}
	if old := j.volume(records.VolumeID(c.Old)); old.going || old.toGo {
		return
	}
	for _, x := range j.w.nodes {
		disk := x.classes[c.Class].disk
		if disk == nil {
			continue
		}
		if d := disk.dirs[volumeKey{p.ID, c.Claim}]; d.tree != nil && j.lineage(d.id) == l && d.tree.files == l.newest {
			return
		}
		for id, b := range x.bins(disk) {
			if j.lineage(id) == l && b.tree.files == l.newest {
				return
			}
		}
	}
	j.w.fail("moves", "%s discards the last whole copy of volume %s of %s", n.name, c.Old, p.ID)
}
