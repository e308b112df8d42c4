package sim

import (
	"slices"
	"strconv"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/control"
	"github.com/stead-project/stead/server/fence"
	"github.com/stead-project/stead/server/proof"
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
	w.back, w.forgot, w.backups = false, false, nil
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
		count, _ := v.Count()
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
			s.start()
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
func (s *server) reached() bool { return s.up && !s.hung && !s.cut && !s.stale }
