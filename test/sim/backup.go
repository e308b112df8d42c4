package sim

import (
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

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
	var had []*server
	for _, s := range w.servers {
		if s.data != nil {
			had = append(had, s)
		}
	}
	w.unpack(b, true)
	if w.q != nil {
		w.q.reset(had)
	} else {
		had = w.servers
	}
	for _, s := range had {
		if w.chance(4) {
			s.loseMemory()
		}
		s.start()
	}
	if w.chance(2) {
		operator{w}.declared()
	}
	return true
}

// unpack makes a new store of what was saved, which is held unless a plant marks it not.
func (w *Cluster) unpack(b saved, marked bool) {
	for _, s := range w.servers {
		s.stop("the store is restored")
	}
	if w.q != nil {
		w.q.leader = nil
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
	if marked {
		w.commit(store.Put(store.HoldKey, store.Encode(records.Hold{Cause: "it was unpacked", By: "the operator", At: w.clock})))
	}
}

// goBack puts an older store in the place of this one and tells nobody: its epoch is that of
// the backup, its sessions live on, and its revision may be higher than any.
func (w *Cluster) goBack() bool {
	if len(w.backups) == 0 || w.back || w.held() || w.counting() {
		return false
	}
	b := w.backups[w.r.IntN(len(w.backups))]
	before, _ := w.said()
	if b.epoch != w.epoch { // it would be noticed by its epoch
		return false
	}
	// With a revision that was raised and the name that it had the chain alone tells.
	linked := before.Link.Number > b.link
	how := memstore.Restored{SameCluster: w.chance(2)}
	if w.chance(2) && (linked || !how.SameCluster) {
		how.Bump = 1_000_000
	}
	w.note("the store goes back to revision %d (raised by %d, same name %v), and nobody says so", b.rev, how.Bump, how.SameCluster)
	w.mem.Restore(b.store, how)
	w.raft = b.raft + 1
	if !how.SameCluster {
		w.origin++
	}
	w.restores++
	for _, n := range w.nodes { // some are heard late, or are off
		if w.chance(4) {
			n.late = w.clock.Add(time.Duration(w.r.IntN(240)) * time.Second)
			n.setCut(true)
			if n.power && w.chance(2) {
				n.powerOff()
			}
		}
	}
	w.reload()
	if w.q != nil {
		w.q.goneBack()
	}
	w.back, w.forgot = true, false
	lost := w.chance(4) // and disks of servers with it
	for _, s := range w.servers {
		switch {
		case lost && !w.chance(3) && s.loseMemory():
			w.count("memory lost with the store")
		case !s.up:
		case w.gap(s.kept) != "":
			s.stale = true
		default: // it knows no more than the backup; or a plant
			s.stop("its watch broke")
			s.start()
		}
	}
	return true
}

// reload shows the judges the store that was put in the place of the one they know.
func (w *Cluster) reload() {
	w.judge.restored()
	rev, kvs, err := w.mem.Snapshot(w.ctx, "")
	must(err)
	w.observer = cache.New(w.mem, discard)
	must(w.observer.Load(1, nil))
	w.restoring = true
	batch := store.Batch{Rev: rev}
	for _, kv := range kvs {
		batch.Events = append(batch.Events, store.Event{KV: kv})
	}
	w.judge.before(batch)
	w.restoring = false
	must(w.observer.Load(rev, kvs))
	w.seen = rev
	if w.q != nil {
		w.q.rebase(rev, kvs)
	}
}
