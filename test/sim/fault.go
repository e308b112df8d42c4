package sim

import (
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

func (s *server) crash() bool { return s.stop("it crashed") }

// crashBetween has a server die at one of its next commits, before or after it.
func (s *server) crashBetween() bool {
	if !s.up || s.storeLink.crashIn > 0 {
		return false
	}
	s.storeLink.crashIn, s.storeLink.after = 1+s.w.r.IntN(4), s.w.chance(2)
	return true
}

func (s *server) unknownOutcome() bool {
	if !s.up {
		return false
	}
	s.storeLink.unknown, s.storeLink.after = true, s.w.chance(2)
	return true
}

// restart starts a server that is down, or has one go on that hangs.
func (s *server) restart() bool {
	switch {
	case s.up && s.hung:
		s.hung = false
	case s.up || s.cut:
		return false
	default:
		return s.boot()
	}
	return true
}

// boot starts a server that is down; with a store of their own it serves when its member has found the others.
func (s *server) boot() bool {
	if s.w.q != nil {
		booted := s.data != nil && !s.waits
		s.waits = s.data != nil
		return booted
	}
	s.start()
	s.w.note("%s starts", s.name)
	return true
}

// hang stops renewals and answers; the process still believes what it believed.
func (s *server) hang() bool {
	if !s.up || s.hung {
		return false
	}
	s.hung = true
	s.w.note("%s hangs", s.name)
	return true
}

// setCut takes a server's way to the store, or gives it back: nodes reach it still, and it
// answers from what it knows.
func (s *server) setCut(cut bool) bool {
	if s.cut == cut {
		return false
	}
	s.cut = cut
	if cut && s.up && s.w.plant.PongFromMemory {
		s.remembers()
	}
	s.w.note("%s is cut off from the store: %v", s.name, cut)
	return true
}

// away is a control plane that nobody reaches for a while; members do what they do.
func (w *Cluster) away() bool {
	for _, s := range w.servers {
		s.setCut(true)
	}
	work := onNode((*node).work)
	for d := 10 + w.r.IntN(60); d > 0; d-- {
		w.advance(time.Second)
		if w.chance(4) {
			work(w)
		}
	}
	for _, s := range w.servers {
		s.setCut(false)
	}
	return true
}

// haltAgent stops the agent's process for a while, as SIGSTOP does: what it was told waits
// for it, and its members run on.
func (n *node) haltAgent() bool {
	if n.agent == nil || n.stopped {
		return false
	}
	n.stopped = true
	n.w.note("%s's agent is stopped", n.name)
	return true
}

// resumeAgent lets it go on; it may look at what came first, or at its clock.
func (n *node) resumeAgent() bool {
	if !n.stopped {
		return false
	}
	n.stopped = false
	n.w.note("%s's agent goes on", n.name)
	return true
}

func (n *node) crashAgent() bool { return n.stopAgent("it crashed") }

func (n *node) reboot() bool {
	if !n.power {
		return false
	}
	n.powerOff()
	n.powerOn()
	if len(n.w.classOf) > 0 && n.w.chance(4) { // its disks come up late
		n.unmount()
	}
	return true
}

// shutDown has a host stop its members before it goes down, which a reboot or a loss of power does later; now and then its time is
// nearly over, or no server may be asked, and it stops them by itself.
func (n *node) shutDown() bool {
	a := n.agent
	if a == nil || !a.begun || n.stopped || n.shuttingDown() {
		return false
	}
	atOnce := n.w.chance(4)
	n.w.note("%s is being shut down (at once: %v)", n.name, atOnce)
	a.conditions.Set([]records.NodeCondition{{Type: records.ShuttingDown, Status: "True", AtOnce: atOnce}})
	if n.w.chance(3) {
		n.w.count("host stops its members by itself")
		for _, id := range a.ids {
			if open := a.led.Look(id).Open; !open.IsZero() {
				n.w.judge.life(id, open).byHost = true
			}
			x := a.workers[id]
			n.downAt = n.now().Add(time.Minute)
			x.StopHere(records.ReasonNodeShutdown, n.downAt)
			x.due = true
		}
	}
	return true
}

func (n *node) shuttingDown() bool {
	return n.agent != nil && n.agent.begun && len(n.agent.conditions.Now()) > 0
}

func (n *node) goDown() bool {
	if !n.power {
		return false
	}
	n.w.note("%s goes down", n.name)
	n.powerOff()
	return true
}

// cutOff takes a node's network away; join gives it back.
func (n *node) cutOff() bool { return n.setCut(true) }

func (n *node) join() bool { return !n.w.clock.Before(n.late) && n.setCut(false) }

func (n *node) setCut(cut bool) bool {
	if n.cut == cut {
		return false
	}
	n.cut = cut
	n.w.note("%s is cut off: %v", n.name, cut)
	return true
}

func (x *stream) breaks() bool {
	x.n.endSession("the stream broke")
	return true
}

// expire has the store end a session early, whatever its lease's time: as a change
// of etcd's leader or a jump of its clock may.
func (x *stream) expire() bool {
	w := x.n.w
	if w.mem.Revoke(w.ctx, store.LeaseID(x.id)) != nil {
		return false
	}
	w.note("the store ends session %d of %s", x.id, x.n.name)
	return true
}

// killWatchdog ends the watchdog's process, if every guarded life has a logger that kills.
func (n *node) killWatchdog() bool {
	if !n.power || !n.guard.watchdog {
		return false
	}
	for _, r := range n.guard.records {
		if p := n.place(identityOf(r)); !p.alive().IsZero() && p.logger != p.alive() {
			return false
		}
	}
	n.guard.watchdog = false
	clear(n.guard.acks)
	n.w.note("%s's watchdog ends", n.name)
	return true
}

// killLogger ends the loggers of a life, if there is a watchdog.
func (n *node) killLogger() bool {
	for _, member := range n.guard.guarded() {
		id := identityOf(n.guard.records[member])
		if p := n.place(id); n.guard.watchdog && !p.logger.IsZero() && n.w.chance(2) {
			p.logger = spec.Token{}
			n.w.note("%s: the loggers of %s end", n.name, id.MemberName())
			return true
		}
	}
	return false
}

// sicken makes a running member unready, or well again, or ends its process.
func (n *node) sicken() bool {
	w := n.w
	for _, id := range sortedKeys(n.places) {
		p := n.places[id]
		running := p.running()
		if len(running) == 0 || !w.chance(2) {
			continue
		}
		b := running[0]
		if len(running) > 1 {
			b = running[w.r.IntN(len(running))]
		}
		switch {
		case b.part.liveness && w.chance(2):
			b.dead = true
			w.count("container given up")
		case w.chance(4):
			b.exits = w.clock
		default:
			b.sick = !b.sick
		}
		w.note("%s: %s %s is sick: %v, dead: %v", n.name, id.MemberName(), b.name, b.sick, b.dead)
		return true
	}
	return false
}

// lapse makes all members of a set unready at once, as when a file goes that their readiness
// probes read: they run on.
func (w *Cluster) lapse() (any bool) {
	ref := w.someRef()
	for _, n := range w.nodes {
		for _, id := range sortedKeys(n.places) {
			for _, b := range n.places[id].running() {
				if id.Ref() == ref && !b.sick {
					b.sick, any = true, true
				}
			}
		}
	}
	if any {
		w.note("the readiness of all of %s lapses", ref)
	}
	return any
}

// slowOperation has the disk of a ledger fail, or operations of a worker wait.
func (n *node) slowOperation() bool {
	w := n.w
	if n.agent == nil || len(n.agent.ids) == 0 {
		return false
	}
	if w.chance(4) {
		n.disk.failIn = 1 + w.r.IntN(3)
		return true
	}
	if w.chance(4) {
		n.runtimeDown = w.clock.Add(time.Duration(w.r.IntN(20)) * time.Second)
		return true
	}
	id := n.agent.ids[w.r.IntN(len(n.agent.ids))]
	ops := []string{"EnsureSandbox", "Attach", "KillAll", "Remove", "Detach", "RemoveSandbox", "RemoveScratch", "SaveLife", "SaveState", "Forget", "Put", "RemoveRecord", "KeepNewest", "Scratch", "EnsureImage"}
	op := ops[w.r.IntN(len(ops))]
	if op == "EnsureImage" || op == "KeepNewest" {
		id = spec.Identity{}
	}
	n.slow[slowKey{id, op}] = w.clock.Add(time.Duration(w.r.IntN(20)) * time.Second)
	return true
}
