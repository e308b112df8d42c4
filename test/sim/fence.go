package sim

import (
	"fmt"

	"github.com/stead-project/stead/server/fence"
	"github.com/stead-project/stead/spec"
)

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
func (w *Cluster) fence() bool {
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
func (w *Cluster) closeFence(s *server) bool {
	f := w.fencing
	w.fencing = nil
	if !f.wasOff() && !w.plant.FencesWhatIsOn {
		if w.chance(3) {
			w.count("a fence proved nothing")
			return true
		}
		f.n.powerOff()
		if w.note("%s is switched off", f.n.name); w.chance(2) {
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
func (w *Cluster) removeNode() bool {
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

// takeName has a new machine join under the name of one that was removed.
func (w *Cluster) takeName() bool {
	old := w.someNode()
	if w.ownerOf(old.name) != "" || old.session() != nil || len(w.nodes) >= mostNodes {
		return false
	}
	w.join(old.name, fmt.Sprintf("uid-%s-%d", old.name, len(w.nodes)))
	w.backups = nil // no name in them is another machine's
	return true
}

// join has a machine begin its agent for the first time.
func (w *Cluster) join(name spec.NodeName, uid string) {
	n := newNode(w, name)
	n.uid, n.pace = spec.UID(uid), somePace(w.r)
	w.nodes = append(w.nodes, n)
	n.startAgent()
	w.note("%s (%s) is new", n.name, n.uid)
}

// reached: an operator gets an answer.
func (s *server) reached() bool { return s.up && !s.hung && !s.cut && !s.stale }
