package sim

import (
	"slices"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// place is what stands on a host of one identity: the truth, whatever an agent or
// containerd believes.
type place struct {
	n       *node
	id      spec.Identity
	boxes   []*box // in the order in which they were first made
	logger  spec.Token
	sandbox spec.Token // of the namespaces; zero: none
	link    bool
	scratch bool
	ending  ending
}

// ending is the truth about the stop of a life.
type ending struct {
	token spec.Token
	since time.Time // on the node's clock: its member was shown that it is to end
}

// visible: an agent that begins finds something of the identity.
func (p *place) visible() bool { return len(p.standing()) > 0 || !p.sandbox.IsZero() || p.link }

// standing are the names of the containers that there are.
func (p *place) standing() (names []string) {
	for _, b := range p.boxes {
		if b.state != "" {
			names = append(names, b.name)
		}
	}
	return names
}

// box is the container of a name; it may be one that is not made.
func (p *place) box(name string) *box {
	for _, b := range p.boxes {
		if b.name == name {
			return b
		}
	}
	b := &box{p: p, name: name}
	p.boxes = append(p.boxes, b)
	return b
}

// running are the containers that have a process.
func (p *place) running() (list []*box) {
	for _, b := range p.boxes {
		if !b.alive.IsZero() {
			list = append(list, b)
		}
	}
	return list
}

// alive is the life of the processes; zero: there are none.
func (p *place) alive() spec.Token {
	for _, b := range p.boxes {
		if !b.alive.IsZero() {
			return b.alive
		}
	}
	return spec.Token{}
}

// pass lets happen what is due.
func (p *place) pass() {
	for _, b := range p.boxes {
		if !b.alive.IsZero() && !b.exits.IsZero() && !p.n.w.clock.Before(b.exits) {
			b.end()
		}
	}
}

// end is the end of all processes.
func (p *place) end() {
	for _, b := range p.running() {
		b.code = killedCode
		b.end()
	}
}

// reset is what a power cut leaves: nothing, but starts under way land nowhere.
func (p *place) reset() {
	fresh := place{n: p.n, id: p.id}
	for _, b := range p.boxes {
		fresh.boxes = append(fresh.boxes, &box{p: p, name: b.name, serial: b.serial + 1, runs: b.runs + 1})
	}
	*p = fresh
}

// lateStart is a start that was given up on and is still under way.
type lateStart struct {
	serial int
	token  spec.Token
}

// land has a start take effect that nobody waits for any more.
func (w *Cluster) land() bool {
	for _, n := range w.nodes {
		for _, id := range sortedKeys(n.places) {
			if slices.ContainsFunc(n.places[id].boxes, (*box).lands) {
				return true
			}
		}
	}
	return false
}

// lands is that of one container; false: none was under way, or it has no effect.
func (b *box) lands() bool {
	l, n, id := b.lateness, b.p.n, b.p.id
	if l == nil {
		return false
	}
	b.lateness = nil
	if (b.state != runtime.Created || b.serial != l.serial) && !n.w.plant.LateStartLands {
		return false // its container is gone: containerd starts nothing
	}
	if r, guarded := n.guard.of(id, l.token); guarded && n.passed(r) && !n.w.plant.KillsOnce {
		n.w.count("late start refused by its logger")
		return false
	}
	n.w.note("%s: a start of %s %s lands late", n.name, id.MemberName(), l.token)
	b.late = true
	b.begin(l.token)
	return true
}
