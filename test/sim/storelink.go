package sim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/stead-project/stead/store"
)

// storeLink is the store as one server reaches it: the server may die at any of its
// commits, before or after it was applied, or not learn what became of it.
type storeLink struct {
	store.Store
	w       *Cluster
	s       *server
	dead    bool
	crashIn int // commits until the server dies; 0: it does not
	after   bool
	unknown bool // the next commit's outcome is not told
	late    bool // nor is it, and it is done late
	// memory is what a plant answers while the server is cut off, as of seen.
	memory map[string]store.KV
	seen   store.Rev
}

// away is why the store does not answer, or why its answer is not believed.
func (d *storeLink) away() error {
	switch {
	case d.dead || d.s.apart():
		return store.ErrUnavailable
	case d.s.stale:
		return store.ErrWentBack
	}
	return nil
}

// Commit implements store.Store.
func (d *storeLink) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	if err := d.away(); err != nil {
		return 0, cmp.Or(d.unsure(t), err)
	}
	t = d.w.keepReports(d.w.plant.Txn(t))
	if d.crashIn > 0 {
		d.crashIn--
		if d.crashIn == 0 {
			d.dead = true
			d.w.count("fault: server dies at a commit")
			if d.after {
				_, _ = d.write(ctx, t)
			}
			return 0, fmt.Errorf("crash: %w", store.ErrUnknown)
		}
	}
	if d.unknown {
		d.unknown = false
		d.w.count("fault: outcome unknown")
		if d.after {
			_, _ = d.write(ctx, t)
		}
		return 0, store.ErrUnknown
	}
	if d.late {
		d.late = false
		return 0, d.w.q.propose(d, t)
	}
	rev, err := d.write(ctx, t)
	d.hears()
	return rev, err
}

func (d *storeLink) write(ctx context.Context, t store.Txn) (store.Rev, error) {
	return d.writeAs(ctx, t, d.s.lead)
}

func (d *storeLink) writeAs(ctx context.Context, t store.Txn, lead store.Leadership) (store.Rev, error) {
	deposed := d.deposed(t, lead)
	rev, err := d.Store.Commit(ctx, t)
	if err != nil {
		d.w.count("conflict")
	} else if deposed && len(t.Then) > 0 {
		d.w.fail("leader", "%s writes %s, and does not lead", d.s.name, t.Then[0].Key)
	}
	d.w.look()
	return rev, err
}

// deposed: the transaction writes what only a leader writes, and another one leads.
func (d *storeLink) deposed(t store.Txn, lead store.Leadership) bool {
	for _, op := range t.Then {
		switch kind, _ := store.Kind(op.Key); kind {
		case store.KindMember, store.KindIdentity, store.KindStatus, store.KindRevision, store.KindVolume:
			_, kvs, err := d.Store.Get(d.w.ctx, store.LeaderKey)
			return err == nil && kvs[store.LeaderKey].Create != lead.Created
		}
	}
	return false
}

// Get implements store.Store.
func (d *storeLink) Get(ctx context.Context, keys ...string) (store.Rev, map[string]store.KV, error) {
	if d.s.cut && d.memory != nil {
		return d.seen, d.memory, nil
	}
	if err := d.away(); err != nil {
		return 0, nil, err
	}
	d.hears()
	return d.Store.Get(ctx, keys...)
}

// hears: an answer of the store comes when the server's own member has all that it says.
func (d *storeLink) hears() {
	if d.w.q != nil {
		d.s.data.rev = d.w.latest()
	}
}

// Grant implements store.Store.
func (d *storeLink) Grant(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	if err := d.away(); err != nil {
		return 0, err
	}
	id, err := d.Store.Grant(ctx, ttl)
	d.w.granted(id)
	return id, err
}

// Revoke implements store.Store.
func (d *storeLink) Revoke(ctx context.Context, id store.LeaseID) error {
	if err := d.away(); err != nil {
		return err
	}
	return d.Store.Revoke(ctx, id)
}

// Renew implements store.Store.
func (d *storeLink) Renew(ctx context.Context, id store.LeaseID) error {
	if d.s.cut && d.memory != nil {
		return nil
	}
	if err := d.away(); err != nil {
		return err
	}
	return d.Store.Renew(ctx, id)
}

// remembers is a plant: what the store has now is answered for as long as it is cut off.
func (s *server) remembers() {
	rev, kvs, err := s.w.mem.Snapshot(s.w.ctx, "")
	must(err)
	s.storeLink.seen, s.storeLink.memory = rev, map[string]store.KV{}
	for _, kv := range kvs {
		s.storeLink.memory[kv.Key] = kv
	}
}
