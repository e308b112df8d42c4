// Package memstore is the store in memory: for simulation, tests and scale
// benchmarks. It is deterministic: revisions, lease ids and the order of events
// depend only on the order of calls and on the clock; only its cluster id is random.
// It keeps a bounded history for watches, and lets a test inject faults (Fail), break
// watches (Break), and put the store back to an earlier state (Backup, Restore).
package memstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stead-project/stead/store"
)

// defaultHistory is how many revisions a watch may lie behind.
const defaultHistory = 10_000

// Store is a store.Store in memory. All methods are safe for concurrent use.
//
// Invariants, under mu: rev grows by one with every change; log holds one batch
// for each revision from compacted (or the first) to rev, without a hole.
type Store struct {
	mu        sync.Mutex
	now       func() time.Time
	timers    bool // leases end by themselves
	history   int
	rev       store.Rev
	compacted store.Rev // 0: nothing is gone
	log       []store.Batch
	keys      map[string]store.KV
	leases    map[store.LeaseID]*lease
	lastLease store.LeaseID
	watches   map[*watch]struct{}
	fail      func(Call) Fault
	closed    bool
	checked   bool           // see WithCheckedRecords
	records   map[string]any // by key; those that were written with their value
	origin    store.Origin   // Rev and Current are filled in with each answer
}

var _ store.Store = (*Store)(nil)

// Option changes a new Store.
type Option func(*Store)

// WithClock makes leases run on now instead of the machine's clock. Then no timer
// runs: a lease that is over ends at the next call of any method, or of Expire.
func WithClock(now func() time.Time) Option {
	return func(s *Store) { s.now, s.timers = now, false }
}

// WithHistory keeps n revisions (at least 1, default 10000) for watches; older
// ones are compacted.
func WithHistory(n int) Option {
	return func(s *Store) { s.history = max(n, 1) }
}

// WithCheckedRecords has the store panic when the record of a store.Op is not what its value is decoded to, or was
// changed by the time that something else is written at its key.
func WithCheckedRecords() Option {
	return func(s *Store) { s.checked, s.records = true, map[string]any{} }
}

// New returns an empty store at revision 1, as etcd's. Close ends its timers.
func New(options ...Option) *Store {
	s := &Store{
		now: time.Now, timers: true, history: defaultHistory, rev: 1,
		keys:    map[string]store.KV{},
		leases:  map[store.LeaseID]*lease{},
		watches: map[*watch]struct{}{},
		origin:  store.Origin{Cluster: rand.Text(), Member: "memory", Term: 1},
	}
	for _, option := range options {
		option(s)
	}
	return s
}

// Snapshot implements store.Store.
func (s *Store) Snapshot(ctx context.Context, prefix string) (store.Rev, []store.KV, error) {
	var rev store.Rev
	var kvs []store.KV
	err := s.do(ctx, Call{Method: "Snapshot"}, func() error {
		rev = s.rev
		for key, kv := range s.keys {
			if strings.HasPrefix(key, prefix) {
				kvs = append(kvs, clone(kv))
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, fmt.Errorf("snapshot %q: %w", prefix, err)
	}
	slices.SortFunc(kvs, func(a, b store.KV) int { return strings.Compare(a.Key, b.Key) })
	return rev, kvs, nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, keys ...string) (store.Rev, map[string]store.KV, error) {
	var rev store.Rev
	found := make(map[string]store.KV, len(keys))
	err := s.do(ctx, Call{Method: "Get"}, func() error {
		rev = s.rev
		for _, key := range keys {
			if kv, ok := s.keys[key]; ok {
				found[key] = clone(kv)
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, fmt.Errorf("get: %w", err)
	}
	return rev, found, nil
}

// Commit implements store.Store. A Txn that changes nothing (no operations, or
// deletions of absent keys) makes no revision and returns the present one.
func (s *Store) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	if err := t.Check(); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	var rev store.Rev
	err := s.do(ctx, Call{Method: "Commit", Txn: t}, func() error {
		if err := s.check(t); err != nil {
			return err
		}
		s.apply(t.Then)
		rev = s.rev
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	return rev, nil
}

// check looks at compares first, then at leases, as etcd does.
func (s *Store) check(t store.Txn) error {
	for _, g := range t.If {
		kv := s.keys[g.Key]
		have := kv.Mod
		if g.Create {
			have = kv.Create
		}
		if have != g.Rev {
			return fmt.Errorf("%s: %w", g.Key, store.ErrConflict)
		}
	}
	for _, op := range t.Then {
		if op.Lease != 0 && !op.Delete && s.leases[op.Lease] == nil {
			return fmt.Errorf("%s: %w", op.Key, store.ErrLeaseGone)
		}
	}
	return nil
}

// apply writes ops as one revision, or none if nothing changes.
func (s *Store) apply(ops []store.Op) {
	next := s.rev + 1
	var events []store.Event
	for _, op := range ops {
		old, exists := s.keys[op.Key]
		if op.Delete && !exists {
			continue
		}
		if s.checked {
			s.checkRecord(&old, &op)
		}
		if l := s.leases[old.Lease]; l != nil {
			delete(l.keys, op.Key)
		}
		if op.Delete {
			delete(s.keys, op.Key)
			events = append(events, store.Event{KV: store.KV{Key: op.Key, Mod: next}, Delete: true})
			continue
		}
		kv := store.KV{Key: op.Key, Value: bytes.Clone(op.Value), Create: old.Create, Mod: next, Lease: op.Lease}
		if !exists {
			kv.Create = next
		}
		s.keys[op.Key] = kv
		if l := s.leases[op.Lease]; l != nil {
			l.keys[op.Key] = true
		}
		events = append(events, store.Event{KV: kv})
	}
	if len(events) == 0 {
		return
	}
	s.rev = next
	s.log = append(s.log, store.Batch{Rev: next, Events: events})
	if len(s.log) > s.history {
		s.compact(s.log[len(s.log)-s.history].Rev)
	}
	s.notifyWatches()
}

// Compact forgets the history before rev; a watch that needs it fails with
// store.ErrCompacted.
func (s *Store) Compact(ctx context.Context, rev store.Rev) error {
	return s.do(ctx, Call{Method: "Compact"}, func() error {
		if rev > s.rev || rev <= s.compacted {
			return fmt.Errorf("compact %d: the store is at %d, compacted at %d", rev, s.rev, s.compacted)
		}
		s.compact(rev)
		s.notifyWatches()
		return nil
	})
}

func (s *Store) compact(rev store.Rev) {
	n := 0
	for n < len(s.log) && s.log[n].Rev < rev {
		n++
	}
	clear(s.log[:n])
	s.log, s.compacted = s.log[n:], rev
}

// Status implements store.Store.
func (s *Store) Status(ctx context.Context) (store.Status, error) {
	st := store.Status{Version: "memory"}
	err := s.do(ctx, Call{Method: "Status"}, func() error {
		st.Rev = s.rev
		for key, kv := range s.keys {
			st.SizeBytes += int64(len(key) + len(kv.Value))
		}
		return nil
	})
	if err != nil {
		return store.Status{}, fmt.Errorf("status: %w", err)
	}
	return st, nil
}

// Close implements store.Store: watches end, timers stop, every later call fails
// with store.ErrUnavailable. Repeated calls do nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.leases {
		l.stop()
	}
	s.breakWatches()
	return nil
}

func clone(kv store.KV) store.KV {
	kv.Value = bytes.Clone(kv.Value)
	return kv
}
