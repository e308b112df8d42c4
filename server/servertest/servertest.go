// Package servertest is what tests of the server's parts share: a store in memory with its mirror,
// whose calls fail on request, and logs that can be read meanwhile.
package servertest

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// patience bounds every wait.
const patience = 3 * time.Minute

// Logs gathers what is logged. It is safe for concurrent use; the zero Logs is empty.
type Logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is all that was logged.
func (l *Logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Mirrored is a store in memory and its mirror, which runs until the test ends.
type Mirrored struct {
	Store *memstore.Store
	Cache *cache.Cache
	t     *testing.T
}

// Mirror makes one whose store has each of ops, in a transaction of its own. It returns when the
// mirror shows them.
func Mirror(t *testing.T, log *slog.Logger, ops ...store.Op) *Mirrored {
	t.Helper()
	m := &Mirrored{Store: memstore.New(memstore.WithCheckedRecords()), t: t}
	var rev store.Rev
	for _, op := range ops {
		rev = m.write(op)
	}
	m.Cache = cache.New(m.Store, log)
	var wg sync.WaitGroup
	wg.Go(func() { _ = m.Cache.Run(t.Context()) })
	t.Cleanup(wg.Wait)
	m.wait(rev)
	return m
}

// Put writes one key and waits until the mirror shows it.
func (m *Mirrored) Put(key string, value []byte) store.Rev {
	m.t.Helper()
	return m.Commit(store.Put(key, value))
}

// Record is Put of a record.
func (m *Mirrored) Record(key string, record any) store.Rev {
	m.t.Helper()
	return m.Put(key, store.Encode(record))
}

// Commit writes ops in one transaction and waits until the mirror shows it.
func (m *Mirrored) Commit(ops ...store.Op) store.Rev {
	m.t.Helper()
	rev := m.write(ops...)
	m.wait(rev)
	return rev
}

func (m *Mirrored) write(ops ...store.Op) store.Rev {
	m.t.Helper()
	rev, err := m.Store.Commit(context.WithoutCancel(m.t.Context()), store.Txn{Then: ops})
	if err != nil {
		m.t.Fatal(err)
	}
	return rev
}

func (m *Mirrored) wait(rev store.Rev) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	if err := m.Cache.Wait(ctx, rev); err != nil {
		m.t.Fatal(err)
	}
}

// Get reads one key of the store; false: it is absent.
func (m *Mirrored) Get(key string) (store.KV, bool) {
	m.t.Helper()
	_, kvs, err := m.Store.Get(m.t.Context(), key)
	if err != nil {
		m.t.Fatal(err)
	}
	kv, ok := kvs[key]
	return kv, ok
}

// FailAt has the nth Get, Snapshot, Commit or Grant from now fail with store.ErrUnavailable; 0: none.
func (m *Mirrored) FailAt(n int) {
	m.Store.Fail(func(c memstore.Call) (f memstore.Fault) {
		switch c.Method {
		case "Get", "Snapshot", "Commit", "Grant":
			n--
			if n == 0 {
				f.Err = store.ErrUnavailable
			}
		}
		return f
	})
}
