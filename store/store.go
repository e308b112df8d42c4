// Package store is the contract for what Stead keeps: snapshot, watch from a
// revision, compared multi-key writes, leases. Its bodies (etcdstore, memstore)
// pass one conformance suite (storetest). A body adds its own versioned prefix;
// keys here are relative ("members/default/db/0").
package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Rev is the store's own counter: it grows with every commit, shared by all keys
// of one commit, and is never shown to users. 0: none, absent.
type Rev int64

// The kinds of errors every body translates to; test with errors.Is.
var (
	// ErrConflict: a compare did not hold; nothing was written. News, not an error: look again.
	ErrConflict = errors.New("conflict")
	// ErrUnknown: the outcome of a write is not known (time-out, lost connection). Read again.
	ErrUnknown = errors.New("outcome unknown")
	// ErrCompacted: the watch's revision is gone; take a fresh snapshot.
	ErrCompacted = errors.New("revision compacted")
	// ErrNoSpace: the store's quota is used up; nothing was written.
	ErrNoSpace = errors.New("store is out of space")
	// ErrLeaseGone: the lease expired or was revoked.
	ErrLeaseGone = errors.New("lease is gone")
	// ErrTooLarge: more than MaxOps operations or compares, or too many bytes.
	ErrTooLarge = errors.New("transaction is too large")
	// ErrUnavailable: the store cannot be reached or has no quorum; nothing was read.
	ErrUnavailable = errors.New("store is unavailable")
)

// MaxOps bounds compares and operations of one Txn, each counted apart (etcd's
// default --max-txn-ops is 128).
const MaxOps = 120

// KV is one key at one moment. Callers own Value.
type KV struct {
	Key    string
	Value  []byte
	Create Rev // revision of its creation
	Mod    Rev // revision of its last write
	Lease  LeaseID
}

// LeaseID names a lease; 0: none.
type LeaseID int64

// Compare is one compare of a Txn. Exactly one of the constructors below makes it.
type Compare struct {
	Key    string
	Create bool // compare the create-revision instead of the mod-revision
	Rev    Rev  // 0: the key must be absent
}

// Seen compares that key is still as it was at mod-revision rev (0: absent).
func Seen(key string, rev Rev) Compare { return Compare{Key: key, Rev: rev} }

// Created compares that key is still the creation of revision rev.
func Created(key string, rev Rev) Compare { return Compare{Key: key, Rev: rev, Create: true} }

// Absent compares that key does not exist.
func Absent(key string) Compare { return Compare{Key: key} }

// Op is one write of a Txn: a put, or with Delete a deletion (of an absent key: no effect).
type Op struct {
	Key    string
	Value  []byte
	Lease  LeaseID
	Delete bool
	// Record, unless it is nil, points to what Value was encoded from, which nobody changes any more. See PutRecord.
	Record any
}

// Put writes value at key.
func Put(key string, value []byte) Op { return Op{Key: key, Value: value} }

// PutRecord writes the stored form of record at key. What record refers to must not be changed afterwards, and record must be
// what its stored form is decoded to: times without a monotonic reading, no empty map or list where none is stored.
// So a cache may take it instead of decoding it again.
func PutRecord[T any](key string, record T) Op {
	return Op{Key: key, Value: Encode(&record), Record: &record}
}

// PutLeased writes value at key until the lease ends.
func PutLeased(key string, value []byte, lease LeaseID) Op {
	return Op{Key: key, Value: value, Lease: lease}
}

// Del removes key.
func Del(key string) Op { return Op{Key: key, Delete: true} }

// Txn applies all of Then if every compare of If holds, else nothing. No key may
// stand twice in Then.
type Txn struct {
	If   []Compare
	Then []Op
}

// Event is one change of a key; Delete when it went away (Value is nil then).
type Event struct {
	KV
	Delete bool
}

// Batch is all changes of one or more revisions, whole, in order.
type Batch struct {
	Rev    Rev // the newest revision contained
	Events []Event
}

// Watch delivers batches in order until it fails or its context ends. Next blocks.
// After any error take a fresh snapshot and a new watch (SAFETY S18).
type Watch interface {
	// Next returns the next batch. Errors: ErrCompacted, ErrUnavailable, ctx's.
	Next(ctx context.Context) (Batch, error)
	// Close releases the watch; a blocked Next returns.
	Close()
}

// Store is the contract. All methods are safe for concurrent use, block until
// done or ctx ends, and return copies that are the caller's own. Each answer is judged
// before it is returned (Judged): besides its own errors every method has ErrWentBack.
type Store interface {
	// Snapshot reads all keys under prefix ("" for all) at one revision,
	// linearizably. Keys are sorted.
	Snapshot(ctx context.Context, prefix string) (Rev, []KV, error)
	// Get reads single keys at one revision, linearizably; absent ones are left
	// out of the map. The revision is the store's at that moment.
	Get(ctx context.Context, keys ...string) (Rev, map[string]KV, error)
	// Watch delivers every change under prefix after revision from.
	Watch(ctx context.Context, prefix string, from Rev) (Watch, error)
	// Commit applies t and returns its revision. Errors: ErrConflict, ErrUnknown,
	// ErrNoSpace, ErrLeaseGone, ErrTooLarge, ErrUnavailable.
	Commit(ctx context.Context, t Txn) (Rev, error)
	// Grant makes a lease of the given length (whole seconds, at least 1s).
	Grant(ctx context.Context, ttl time.Duration) (LeaseID, error)
	// Renew starts the lease's time again. A granted renewal is not evidence of
	// anything else (SAFETY S5). Errors: ErrLeaseGone, ErrUnavailable.
	Renew(ctx context.Context, id LeaseID) error
	// Revoke ends the lease and deletes its keys; unknown leases are no error.
	Revoke(ctx context.Context, id LeaseID) error
	// Status tells size and health, for metrics.
	Status(ctx context.Context) (Status, error)
	// Close releases connections. Watches end.
	Close() error
}

// Status is what a store says of itself.
type Status struct {
	Rev        Rev
	SizeBytes  int64
	UsedBytes  int64 // of SizeBytes: without what was freed and not given back
	QuotaBytes int64 // 0: unknown
	// Alarm is what the store complains of, in its own words; empty: nothing. While it
	// holds NoSpaceAlarm every write fails with ErrNoSpace, but reads, deletions and
	// renewals of leases continue.
	Alarm   string
	Version string
}

// NoSpaceAlarm is in Status.Alarm while the quota is used up.
const NoSpaceAlarm = "NOSPACE"

// MaxBytes bounds the keys and values of one Txn; it leaves room below etcd's
// default --max-request-bytes of 1.5 MiB.
const MaxBytes = 1_300_000

// Check tells what is wrong with t before any store sees it: ErrTooLarge, or an
// error of no kind for a Txn that no store may accept (an empty key, a key that
// is twice in Then). Every body calls it first in Commit.
func (t Txn) Check() error {
	if len(t.If) > MaxOps || len(t.Then) > MaxOps {
		return fmt.Errorf("check %d compares and %d operations of at most %d each: %w",
			len(t.If), len(t.Then), MaxOps, ErrTooLarge)
	}
	if n := t.bytes(); n > MaxBytes {
		return fmt.Errorf("check %d bytes of at most %d: %w", n, MaxBytes, ErrTooLarge)
	}
	for _, g := range t.If {
		if g.Key == "" {
			return fmt.Errorf("check compares: empty key")
		}
	}
	seen := make(map[string]bool, len(t.Then))
	for _, op := range t.Then {
		if op.Key == "" {
			return fmt.Errorf("check operations: empty key")
		}
		if seen[op.Key] {
			return fmt.Errorf("check operations: key %s appears twice", op.Key)
		}
		seen[op.Key] = true
	}
	return nil
}

func (t Txn) bytes() int {
	n := 0
	for _, g := range t.If {
		n += len(g.Key)
	}
	for _, op := range t.Then {
		n += len(op.Key) + len(op.Value)
	}
	return n
}
