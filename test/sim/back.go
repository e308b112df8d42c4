package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/control"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// mostNodes bounds the nodes that join later.
const mostNodes = 6

// addNode has a machine join that no backup of before knows.
func (w *Cluster) addNode() bool {
	if len(w.nodes) >= mostNodes {
		return false
	}
	name := fmt.Sprint("n", len(w.nodes))
	w.join(spec.NodeName(name), "uid-"+name)
	return true
}

// link has a leader continue the chain of the store.
func (w *Cluster) link() bool {
	for _, s := range w.servers {
		if s.up && !s.cut && !s.hung && s.term != nil {
			before := w.seen
			s.term.Link(w.ctx)
			s.buried()
			return w.seen > before
		}
	}
	return false
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
			if n.setCut(true); n.power && w.chance(2) {
				n.powerOff()
			}
		}
	}
	w.reload()
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
}

// declare is the operator's "stead restore": early, late, or never in a run.
func (w *Cluster) declare() bool {
	if !w.held() && (!w.back || !w.chance(4)) {
		return false
	}
	return w.declared()
}

func (w *Cluster) declared() bool {
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
func (w *Cluster) excuse() bool {
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
func (w *Cluster) operate() {
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
func (w *Cluster) excuseRemoved() {
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

// ownerOf is the machine that has joined under a name; "": none.
func (w *Cluster) ownerOf(name spec.NodeName) spec.UID {
	for _, n := range w.view().Nodes() {
		if n.Node.Name == name {
			return n.Node.UID
		}
	}
	return ""
}
