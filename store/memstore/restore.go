package memstore

import (
	"crypto/rand"
	"time"

	"github.com/stead-project/stead/store"
)

// Backup is all that a store held at one revision.
type Backup struct {
	rev    store.Rev
	term   uint64
	keys   map[string]store.KV
	leases map[store.LeaseID]time.Duration
}

// Backup takes one.
func (s *Store) Backup() Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := Backup{rev: s.rev, term: s.origin.Term, keys: map[string]store.KV{}, leases: map[store.LeaseID]time.Duration{}}
	for key, kv := range s.keys {
		b.keys[key] = clone(kv)
	}
	for id, l := range s.leases {
		b.leases[id] = l.ttl
	}
	return b
}

// Restored says how a store was put back.
type Restored struct {
	// Bump is added to the backup's revision; keys keep theirs (etcd's --bump-revision).
	Bump store.Rev
	// SameCluster: the store names itself as before, as etcd does when it is restored with
	// the token, the names and the addresses that it had.
	SameCluster bool
	// Term is the new raft term; 0: the one after the backup's.
	Term uint64
}

// Restore puts the store back to b under whoever uses it: watches break, all history is
// gone, and leases start again with their full length. Lease ids are never used again.
func (s *Store) Restore(b Backup, how Restored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		l.stop()
	}
	clear(s.leases)
	s.rev, s.log = b.rev+how.Bump, nil
	s.compacted = s.rev + 1
	s.keys = make(map[string]store.KV, len(b.keys))
	clear(s.records)
	for key, kv := range b.keys {
		s.keys[key] = clone(kv)
	}
	for id, ttl := range b.leases {
		s.lease(id, ttl)
	}
	for key, kv := range s.keys {
		if l := s.leases[kv.Lease]; l != nil {
			l.keys[key] = true
		}
	}
	s.origin.Term = b.term + 1
	if how.Term != 0 {
		s.origin.Term = how.Term
	}
	if !how.SameCluster {
		s.origin.Cluster = rand.Text()
	}
	s.breakWatches()
}
