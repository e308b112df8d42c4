package sim

import (
	"context"
	"slices"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// proposal is a write that is still under way, and whose server was told that its outcome is unknown: it is done late, or never.
type proposal struct {
	link    *storeLink
	txn     store.Txn
	lead    store.Leadership     // as whom it was written
	offered []cache.JudgedReport // of whose ends it may be the word
}

// propose has a write be under way.
func (q *raftStore) propose(d *storeLink, t store.Txn) error {
	q.late = append(q.late, &proposal{d, t, d.s.lead, q.w.judge.offered})
	q.w.count("fault: write is late")
	return store.ErrUnknown
}

// confirm does a write that was under way, if what it compares is so still.
func (q *raftStore) confirm(p *proposal) {
	w := q.w
	before := w.judge.offered
	w.judge.offered = p.offered
	if _, err := p.link.writeAs(context.Background(), p.txn, p.lead); err == nil {
		w.count("late write done")
	} else {
		w.count("late write void")
	}
	w.judge.offered = before
}

// fates has what was under way under the leader before be done, be lost, or be under way still.
func (q *raftStore) fates() {
	late := q.late
	q.late = nil
	for _, p := range late {
		switch q.w.r.IntN(3) {
		case 0:
			q.confirm(p)
		case 1:
			q.late = append(q.late, p)
		default:
			q.w.count("late write lost")
		}
	}
}

// arrives has one of the writes that are under way be done.
func (w *Cluster) arrives() bool {
	if w.q == nil || !w.q.ready() || len(w.q.late) == 0 {
		return false
	}
	i := w.r.IntN(len(w.q.late))
	p := w.q.late[i]
	w.q.late = slices.Delete(w.q.late, i, i+1)
	w.q.confirm(p)
	return true
}

// delay has a server's next write be under way for long.
func (s *server) delay() bool {
	if s.w.q == nil || !s.up || s.storeLink.late {
		return false
	}
	s.storeLink.late = true
	return true
}

// granted notes a lease, for the store's next leader.
func (w *Cluster) granted(id store.LeaseID) {
	if w.q != nil && id != 0 {
		w.q.leases = append(w.q.leases, id)
	}
}

// unsure is what a server is told of a write that reaches no quorum: that nothing was done, or that nobody knows.
func (d *storeLink) unsure(t store.Txn) error {
	if d.w.q == nil || d.dead || d.s.stale || !d.s.apart() || !d.w.chance(2) {
		return nil
	}
	d.w.count("fault: write without a quorum")
	return d.w.q.propose(d, d.w.keepReports(d.w.plant.Txn(t)))
}
