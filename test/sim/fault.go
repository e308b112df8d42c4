package sim

import (
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func (w *Cluster) crashServer() bool {
	s := w.someServer()
	if !s.up {
		return false
	}
	s.stop("it crashed")
	return true
}

// crashBetween has a server die at one of its next commits, before or after it.
func (w *Cluster) crashBetween() bool {
	s := w.someServer()
	if !s.up || s.storeLink.crashIn > 0 {
		return false
	}
	s.storeLink.crashIn, s.storeLink.after = 1+w.r.IntN(4), w.chance(2)
	return true
}

func (w *Cluster) unknownOutcome() bool {
	s := w.someServer()
	if !s.up {
		return false
	}
	s.storeLink.unknown, s.storeLink.after = true, w.chance(2)
	return true
}

func (w *Cluster) startServer() bool {
	s := w.someServer()
	if s.up && s.hung {
		s.hung = false
		return true
	}
	if s.up || s.cut {
		return false
	}
	s.start()
	w.note("%s starts", s.name)
	return true
}

// hangServer stops renewals and answers; the process still believes what it believed.
func (w *Cluster) hangServer() bool {
	s := w.someServer()
	if !s.up || s.hung {
		return false
	}
	s.hung = true
	w.note("%s hangs", s.name)
	return true
}

func (w *Cluster) crashAgent() bool {
	n := w.someNode()
	if n.agent == nil {
		return false
	}
	n.stopAgent("it crashed")
	return true
}

func (w *Cluster) reboot() bool {
	n := w.someNode()
	if !n.power {
		return false
	}
	n.powerOff()
	n.powerOn()
	if len(w.classOf) > 0 && w.chance(4) { // its disks come up late
		n.unmount()
	}
	return true
}

func (w *Cluster) powerOff() bool {
	n := w.someNode()
	if !n.power {
		return false
	}
	w.note("%s goes down", n.name)
	n.powerOff()
	return true
}

// cutNode takes a node's network away; joinNode gives it back.
func (w *Cluster) cutNode() bool { return w.someNode().setCut(true) }

func (w *Cluster) joinNode() bool {
	n := w.someNode()
	return !w.clock.Before(n.late) && n.setCut(false)
}

func (n *node) setCut(cut bool) bool {
	if n.cut == cut {
		return false
	}
	n.cut = cut
	n.w.note("%s is cut off: %v", n.name, cut)
	return true
}

func (w *Cluster) breakSession() bool {
	x := w.some(anySession)
	if x == nil {
		return false
	}
	x.n.endSession("the stream broke")
	return true
}

// sicken makes a running member unready, or well again, or ends its process.
func (w *Cluster) sicken() bool {
	n := w.someNode()
	for _, id := range sortedKeys(n.places) {
		p := n.places[id]
		if p.alive.IsZero() || !w.chance(2) {
			continue
		}
		if w.chance(4) {
			p.exits = w.clock
		} else {
			p.sick = !p.sick
		}
		w.note("%s: %s is sick: %v", n.name, id.MemberName(), p.sick)
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
			if p := n.places[id]; id.Ref() == ref && !p.alive.IsZero() && !p.sick {
				p.sick, any = true, true
			}
		}
	}
	if any {
		w.note("the readiness of all of %s lapses", ref)
	}
	return any
}

// slowOperation has the disk of a ledger fail, or operations of a worker wait.
func (w *Cluster) slowOperation() bool {
	n := w.someNode()
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

// saved is a backup: all that does not hang on a lease.
type saved struct {
	rev   store.Rev
	kvs   []store.KV
	store memstore.Backup // with what hangs on leases
	epoch int64
	raft  uint64
	link  int64
}

func (w *Cluster) backup() bool {
	rev, kvs, err := w.mem.Snapshot(w.ctx, "")
	must(err)
	kvs = slices.DeleteFunc(kvs, func(kv store.KV) bool { return kv.Lease != 0 })
	said, _ := w.said()
	w.backups = append(w.backups, saved{rev, kvs, w.mem.Backup(), w.epoch, w.raft, said.Link.Number})
	return true
}

// restore puts an older store in the place of this one as "stead backup unpack" does: it has
// no sessions, and is held until somebody declares what it is, which may be at once.
func (w *Cluster) restore() bool {
	if len(w.backups) == 0 {
		return false
	}
	b := w.backups[w.r.IntN(len(w.backups))]
	for _, s := range w.servers {
		s.stop("the store is restored")
	}
	_ = w.mem.Close()
	w.judge.restored()
	w.epoch, w.back, w.forgot = b.epoch, true, false
	w.raft = b.raft + 1
	w.origin++
	w.note("the store of revision %d is unpacked", b.rev)
	w.freshStore()
	w.restores++
	w.restoring = true
	for part := range slices.Chunk(b.kvs, 100) {
		var ops []store.Op
		for _, kv := range part {
			ops = append(ops, store.Put(kv.Key, kv.Value))
		}
		w.commit(ops...)
	}
	w.restoring = false
	w.commit(store.Put(store.HoldKey, store.Encode(records.Hold{Cause: "it was unpacked", By: "the operator", At: w.clock})))
	for _, s := range w.servers {
		if w.chance(4) {
			s.loseMemory()
		}
		s.start()
	}
	if w.chance(2) {
		w.declared()
	}
	return true
}

// resolve is the operator's part after a restore: a life that the store does not
// know is ended by hand, and volumes are put where the store has them.
func (n *node) resolve(known func(spec.Identity, spec.Token) bool) {
	if n.w.restores > 0 || len(n.lies) > 0 {
		n.putBack()
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
			n.w.judge.resolved[life{e.ID, e.Open}] = true
			n.worker(e.ID).over(e.Open)
		}
	}
}
