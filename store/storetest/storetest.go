// Package storetest is the conformance suite of the contract in package store:
// every body runs it.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stead-project/stead/store"
)

// patience bounds every wait of the suite; a test that waits so long has failed.
const patience = time.Minute

// Compactor is what a body needs beside the contract to be tested: forget the
// history before rev. Both bodies have it.
type Compactor interface {
	Compact(ctx context.Context, rev store.Rev) error
}

// Run checks every promise of store.Store. open returns an empty store (of its
// own prefix, where several share one server) that also is a Compactor; Run
// closes it. The promises on leases take some seconds of real time, in parallel.
func Run(t *testing.T, open func(*testing.T) store.Store) {
	for _, group := range [][]promise{reads, writes, watches, races, origins} {
		for _, p := range group {
			t.Run(p.name, func(t *testing.T) { p.check(t, start(t, open)) })
		}
	}
	// Last and together: they wait for real time, and compaction, which is the
	// server's and not a prefix's, must not meet them.
	t.Run("leases", func(t *testing.T) {
		for _, p := range leases {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				p.check(t, start(t, open))
			})
		}
	})
}

// promise is one sentence of the contract and how it is checked.
type promise struct {
	name  string
	check func(*testing.T, *harness)
}

// harness is a store under test with shorthands that fail the test.
type harness struct {
	store.Store
	ctx  context.Context
	last store.Rev // that commit wrote
}

func start(t *testing.T, open func(*testing.T) store.Store) *harness {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	s := open(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &harness{Store: s, ctx: ctx}
}

func (h *harness) commit(t *testing.T, txn store.Txn) store.Rev {
	t.Helper()
	for {
		rev, err := h.Commit(h.ctx, txn)
		if errors.Is(err, store.ErrUnknown) && len(txn.Then) > 0 { // on a starved machine
			rev, err = h.writtenSince(h.last, txn.Then[0])
		}
		switch {
		case errors.Is(err, errNotWritten):
		case err != nil:
			t.Fatalf("commit of %d operations: %v", len(txn.Then), err)
		default:
			h.last = max(h.last, rev)
			return rev
		}
	}
}

var errNotWritten = errors.New("not written")

// writtenSince is the revision after before of the transaction that began with op.
func (h *harness) writtenSince(before store.Rev, op store.Op) (store.Rev, error) {
	rev, kvs, err := h.Get(h.ctx, op.Key)
	if err != nil {
		return 0, err
	}
	kv, there := kvs[op.Key]
	switch {
	case op.Delete && !there && rev > before: // nobody else writes
		return rev, nil
	case !op.Delete && there && kv.Mod > before:
		return kv.Mod, nil
	}
	return 0, errNotWritten
}

func (h *harness) put(t *testing.T, key, value string) store.Rev {
	t.Helper()
	return h.commit(t, store.Txn{Then: []store.Op{store.Put(key, []byte(value))}})
}

// refused commits and wants an error of the given kind, and nothing written.
func (h *harness) refused(t *testing.T, txn store.Txn, kind error) {
	t.Helper()
	before := h.picture(t, "")
	_, err := h.Commit(h.ctx, txn)
	if !errors.Is(err, kind) {
		t.Fatalf("commit of %d operations: got error %v, want %v", len(txn.Then), err, kind)
	}
	if after := h.picture(t, ""); after != before {
		t.Fatalf("a refused transaction wrote:\nbefore %s\nafter  %s", before, after)
	}
}

// picture is all keys under prefix with values and revisions, as text.
func (h *harness) picture(t *testing.T, prefix string) string {
	t.Helper()
	_, kvs, err := h.Snapshot(h.ctx, prefix)
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	return fmt.Sprint(texts(kvs))
}

func texts(kvs []store.KV) []string {
	out := []string{}
	for _, kv := range kvs {
		out = append(out, fmt.Sprintf("%s=%s(%d,%d,%d)", kv.Key, kv.Value, kv.Create, kv.Mod, kv.Lease))
	}
	return out
}

func (h *harness) get(t *testing.T, key string) (store.KV, bool) {
	t.Helper()
	_, kvs, err := h.Get(h.ctx, key)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	kv, ok := kvs[key]
	return kv, ok
}

func (h *harness) watch(t *testing.T, prefix string, from store.Rev) store.Watch {
	t.Helper()
	w, err := h.Watch(h.ctx, prefix, from)
	if err != nil {
		t.Fatalf("watch %q from %d: %v", prefix, from, err)
	}
	t.Cleanup(w.Close)
	return w
}

// collect reads batches until n events have come. It fails the test if a batch is
// out of order, not whole, or names another revision than its newest.
func (h *harness) collect(t *testing.T, w store.Watch, n int) []store.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, patience)
	defer cancel()
	var events []store.Event
	var last store.Rev
	for len(events) < n {
		b, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("next, after %d of %d events: %v", len(events), n, err)
		}
		if len(b.Events) == 0 {
			t.Fatal("an empty batch was delivered")
		}
		if b.Events[0].Mod <= last {
			t.Fatalf("batch starts at revision %d, which belongs to the batch before (up to %d)", b.Events[0].Mod, last)
		}
		for _, e := range b.Events {
			if e.Mod < last {
				t.Fatalf("event of revision %d came after revision %d", e.Mod, last)
			}
			last = e.Mod
		}
		if b.Rev != last {
			t.Fatalf("batch says revision %d, its newest event has %d", b.Rev, last)
		}
		events = append(events, b.Events...)
	}
	if len(events) > n {
		t.Fatalf("got %d events, want %d: %v", len(events), n, changes(events))
	}
	return events
}

func changes(events []store.Event) []string {
	out := []string{}
	for _, e := range events {
		if e.Delete {
			out = append(out, "-"+e.Key)
		} else {
			out = append(out, e.Key+"="+string(e.Value))
		}
	}
	return out
}
