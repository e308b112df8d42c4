package sim

import (
	"slices"
	"strconv"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/control"
	"github.com/stead-project/stead/server/fence"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// operator is a person who looks after machines and the store.
type operator struct{ *Cluster }

// declare is the operator's "stead restore": early, late, or never in a run.
func (w operator) declare() bool {
	if !w.held() && (!w.back || !w.chance(4)) {
		return false
	}
	return w.declared()
}

func (w operator) declared() bool {
	txns, err := control.Declare(w.view(), "operator", w.clock, 1+w.r.Int64N(1_000_000))
	if err != nil {
		return false
	}
	for i := range txns[0].Then {
		if op := &txns[0].Then[i]; op.Key == store.EpochKey {
			epoch := got(strconv.ParseInt(string(op.Value), 10, 64))
			if w.epochs[epoch] {
				w.fail("epochs", "epoch %d is declared a second time", epoch)
			}
			w.epoch, w.epochs[epoch] = epoch, true
		}
	}
	w.note("the operator declares a restore: epoch %d", w.epoch)
	w.count("restore declared")
	w.back, w.forgot, w.recovered, w.backups = false, false, false, nil
	for _, t := range txns {
		w.write(t)
	}
	return true
}

// excuse is the operator's true word that a machine is off, for a restore that waits for it.
func (w operator) excuse() bool {
	for _, n := range w.nodes {
		if n.power {
			continue
		}
		v := w.view()
		count := v.Count()
		missing := v.Hold() == nil && count.Open(v.Epoch()) && slices.ContainsFunc(proof.MissingNodes(v.Epoch(), count, v.Nodes()),
			func(m records.CountNode) bool { return m.UID == n.uid })
		if !missing {
			continue
		}
		t, err := control.Excuse(v, []string{string(n.name)}, "operator")
		if err != nil {
			continue
		}
		w.write(t)
		w.note("the operator says that %s is off", n.name)
		w.count("node excused")
		return true
	}
	return false
}

// operate is what an operator does for as long as faults are mended.
func (w operator) operate() {
	for _, s := range w.servers {
		if !s.up {
			s.boot()
		}
	}
	if w.held() {
		w.declared()
	}
	w.excuseRemoved()
}

// excuseRemoved has an operator say that a count is not to wait for machines whose names are
// other machines' by now: nothing was left of them when they were removed.
func (w operator) excuseRemoved() {
	for _, n := range w.nodes {
		owner := w.ownerOf(n.name)
		if owner == "" || owner == n.uid {
			continue
		}
		t, err := control.Excuse(w.view(), []string{string(n.name)}, "operator")
		if err == nil { // else nobody waits for it
			w.write(t)
		}
	}
}

// fencing is a machine to which an operator, or a program of theirs, has turned: of what is
// found then the word is taken that comes later (SAFETY S10).
type fencing struct {
	n     *node
	found *fence.Case
	boots int // of the machine then
	off   bool
}

// wasOff: at some moment since.
func (f *fencing) wasOff() bool { return f.off || !f.n.power || f.n.boots != f.boots }

// fence turns to a machine without a session; when that was done, it gives the word.
func (w operator) fence() bool {
	s := w.someServer()
	if !s.reached() {
		return false
	}
	if w.fencing != nil {
		return w.closeFence(s)
	}
	n := w.someNode()
	c, err := fence.Open(w.ctx, s.storeLink, reader{s.cache, s}, n.name)
	if s.buried() || err != nil || c.UID != n.uid {
		return false
	}
	w.fencing = &fencing{n, c, n.boots, !n.power}
	w.note("somebody turns to %s: %d lives", n.name, len(c.Lives))
	return true
}

// closeFence gives the true word that a machine was off. One that is on is switched off for
// it, or power-cycled; or it cannot be, which proves nothing.
func (w operator) closeFence(s *server) bool {
	f := w.fencing
	w.fencing = nil
	if !f.wasOff() && !w.plant.FencesWhatIsOn {
		if w.chance(3) {
			w.count("a fence proved nothing")
			return true
		}
		f.n.powerOff()
		w.note("%s is switched off", f.n.name)
		if w.chance(2) {
			f.n.powerOn()
		}
		if w.chance(2) { // the program's answer comes later
			f.off, w.fencing = true, f
			return true
		}
	}
	word, err := f.found.Close(w.ctx, s.storeLink, reader{s.cache, s}, "operator")
	s.buried()
	w.look()
	if err != nil {
		w.note("the fence of %s is void: %v", f.n.name, err)
		w.count("fence void")
		return true
	}
	w.note("%s was off, says the operator: %v are over", f.n.name, word.Lives)
	w.count("node fenced")
	return true
}

// removeNode has a silent node forgotten of which nothing is left, as far as the store knows.
func (w operator) removeNode() bool {
	s, n := w.someServer(), w.someNode()
	if !s.reached() {
		return false
	}
	owner := w.ownerOf(n.name)
	err := fence.RemoveNode(w.ctx, s.storeLink, reader{s.cache, s}, n.name)
	s.buried()
	w.look()
	if err != nil {
		return false
	}
	w.note("node %s is removed", n.name)
	n.removed = owner == n.uid
	w.count("node removed")
	return true
}

// reached: an operator gets an answer.
func (s *server) reached() bool { return s.up && !s.hung && !s.apart() && !s.stale }

// putBack moves aside what stands in the place of a volume that the store knows, and has
// that one stand there: from the trash, or after a restore from where the operator saved it.
func (n *node) putBack() {
	if n.w.ownerOf(n.name) != n.uid {
		return // it was removed, and another has its name
	}
	for _, ref := range n.w.withClaims() {
		for vol, s := range volumesOf(n.w.view().World(ref)) {
			if vol.Node == n.name && !n.holdsByMove(s, vol) && n.puts(s, vol) {
				n.endSession("the operator moved a volume")
			}
		}
	}
}

// holdsByMove: a move decides what becomes of the volume on this host. Not of one that had arrived once, and was given up since, in the time
// that a restore has undone.
func (n *node) holdsByMove(s *plan.Slot, vol *records.Volume) bool {
	if s.Move == nil || s.Move.Phase == moves.MoveAborting {
		return false
	}
	disk := n.classes[vol.Class].disk
	return s.Move.Phase != moves.MoveFlipped || disk == nil || !n.made[vol.UID] || disk.staging[s.Move.Move][vol.UID] != nil
}

// puts does it for one volume; false: there was nothing to do.
func (n *node) puts(s *plan.Slot, vol *records.Volume) bool {
	disk, key := n.classes[vol.Class].disk, volumeKey{s.ID, vol.Claim}
	if disk == nil || n.classes[vol.Class].away() {
		return false
	}
	have, there := disk.dirs[key]
	used := s.Identity != nil && s.Identity.VolumeReady[vol.Claim] >= vol.Number
	binned := n.w.trashes(disk, vol.UID)
	gone := vol.Fate == records.FateReclaiming && (binned || s.Said[vol.Claim] != nil && s.Said[vol.Claim].State.Released()) ||
		vol.Fate == records.FateRestoring && n.erased[vol.UID] // the server may have heard so, and not stored it yet
	switch {
	case there && have.id != vol.UID:
		n.w.note("the operator moves volume %s of %s on %s away", have.id, s.ID.MemberName(), n.name)
		delete(disk.dirs, key)
		return true
	case there && binned:
		n.w.note("the operator throws the copy of volume %s in the trash of %s away", vol.UID, n.name)
	case !there && (used && n.w.restores > 0 && !n.w.judge.volume(vol.UID).destroyed || binned) && !gone:
		n.w.note("the operator puts volume %s of %s on %s back", vol.UID, s.ID.MemberName(), n.name)
		disk.dirs[key] = dir{vol.UID, vol.Number, vol.Class, &tree{}}
		n.w.judge.lineage(vol.UID).putByHand()
	default:
		return false
	}
	for _, x := range n.w.nodes { // whoever gave up a shared one
		delete(x.bins(disk), vol.UID)
	}
	return true
}

// resolve is the operator's part after a restore: a life that the store does not
// know is ended by hand, and volumes are put where the store has them.
func (n *node) resolve(known func(spec.Identity, spec.Token) bool) {
	if n.w.restores > 0 || len(n.lies) > 0 {
		n.putBack()
	}
	if n.w.restores > 0 {
		n.breakOldSeals()
	}
	for _, id := range slices.Clone(n.agent.ids) {
		if token, ok := n.agent.workers[id].Pending(); ok && !known(id, token) {
			n.w.note("the operator ends %s %s on %s", id.MemberName(), token, n.name)
			n.agent.workers[id].over(token)
		}
	}
	for _, e := range n.agent.led.Entries() {
		if !e.Open.IsZero() && !known(e.ID, e.Open) {
			n.w.note("the operator ends %s %s on %s", e.ID.MemberName(), e.Open, n.name)
			n.w.judge.life(e.ID, e.Open).resolved = true
			n.worker(e.ID).over(e.Open)
		}
	}
}
