package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/store"
)

var reads = []promise{
	{"an empty store has no keys and a revision", func(t *testing.T, h *harness) {
		rev, kvs, err := h.Snapshot(h.ctx, "")
		if err != nil || len(kvs) != 0 || rev < 1 {
			t.Fatalf("got revision %d, keys %v, error %v", rev, kvs, err)
		}
	}},
	{"a snapshot holds what is under the prefix, sorted, at one revision", func(t *testing.T, h *harness) {
		first := h.put(t, "a/2", "two")
		h.put(t, "b", "other")
		h.put(t, "a/1", "one")
		last := h.put(t, "a/1", "uno")
		rev, kvs, err := h.Snapshot(h.ctx, "a/")
		if err != nil {
			t.Fatal(err)
		}
		if rev < last {
			t.Errorf("revision %d is older than the last write %d", rev, last)
		}
		got := texts(kvs)
		want := []string{
			fmt.Sprintf("a/1=uno(%d,%d,0)", last-1, last),
			fmt.Sprintf("a/2=two(%d,%d,0)", first, first),
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}},
	{"a snapshot holds more keys than one page", func(t *testing.T, h *harness) {
		const n = 2500
		var want []string
		for i := 0; i < n; i += 100 {
			var txn store.Txn
			for j := i; j < i+100; j++ {
				key := fmt.Sprintf("many/%05d", j)
				want = append(want, key)
				txn.Then = append(txn.Then, store.Put(key, []byte(key)))
			}
			h.commit(t, txn)
		}
		_, kvs, err := h.Snapshot(h.ctx, "many/")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, kv := range kvs {
			got = append(got, string(kv.Value))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %d keys, want %d in order", len(got), len(want))
		}
	}},
	{"get leaves out absent keys and tells the revision", func(t *testing.T, h *harness) {
		h.put(t, "a", "1")
		last := h.put(t, "b", "2")
		rev, kvs, err := h.Get(h.ctx, "a", "b", "c", "a")
		if err != nil {
			t.Fatal(err)
		}
		if rev < last {
			t.Errorf("revision %d is older than the last write %d", rev, last)
		}
		if len(kvs) != 2 || string(kvs["a"].Value) != "1" || kvs["a"].Key != "a" || string(kvs["b"].Value) != "2" {
			t.Errorf("got %v", kvs)
		}
	}},
	{"get takes more keys than a transaction", func(t *testing.T, h *harness) {
		var keys []string
		for i := range 3 * store.MaxOps {
			keys = append(keys, fmt.Sprintf("k/%04d", i))
		}
		h.put(t, keys[0], "first")
		h.put(t, keys[len(keys)-1], "last")
		_, kvs, err := h.Get(h.ctx, keys...)
		if err != nil || len(kvs) != 2 || string(kvs[keys[len(keys)-1]].Value) != "last" {
			t.Fatalf("got %v, error %v", kvs, err)
		}
	}},
	{"a write is in every read that begins after it", func(t *testing.T, h *harness) {
		for i := range 20 {
			want := fmt.Sprint(i)
			rev := h.put(t, "k", want)
			kv, _ := h.get(t, "k")
			if string(kv.Value) != want || kv.Mod != rev {
				t.Fatalf("read %s at %d after writing %s at %d", kv.Value, kv.Mod, want, rev)
			}
		}
	}},
	{"what is returned is the caller's own", func(t *testing.T, h *harness) {
		value := []byte("good")
		h.commit(t, store.Txn{Then: []store.Op{store.Put("k", value)}})
		w := h.watch(t, "k", h.firstRev(t)-1)
		value[0] = 'X'
		spoil(t, h)
		h.collect(t, w, 1)[0].Value[0] = 'X'
		again := h.watch(t, "k", h.firstRev(t)-1)
		if e := h.collect(t, again, 1)[0]; string(e.Value) != "good" {
			t.Errorf("a watch delivers %q", e.Value)
		}
		if kv, _ := h.get(t, "k"); string(kv.Value) != "good" {
			t.Errorf("a read returns %q", kv.Value)
		}
	}},
	{"an ended context ends a read and a write", func(t *testing.T, h *harness) {
		ctx, cancel := context.WithCancel(h.ctx)
		cancel()
		if _, _, err := h.Snapshot(ctx, ""); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("snapshot: got %v, want %v", err, store.ErrUnavailable)
		}
		if _, _, err := h.Get(ctx, "k"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("get: got %v, want %v", err, store.ErrUnavailable)
		}
		_, err := h.Commit(ctx, store.Txn{Then: []store.Op{store.Put("k", nil)}})
		if !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("commit: got %v, want %v or %v", err, store.ErrUnknown, store.ErrUnavailable)
		}
	}},
	{"status tells the revision, size and version", func(t *testing.T, h *harness) {
		rev := h.put(t, "k", "value")
		st, err := h.Status(h.ctx)
		if err != nil || st.Rev < rev || st.SizeBytes < 1 || st.Version == "" || st.Alarm != "" {
			t.Fatalf("got %+v, error %v", st, err)
		}
	}},
}

// spoil changes values that reads returned.
func spoil(t *testing.T, h *harness) {
	t.Helper()
	kv, _ := h.get(t, "k")
	kv.Value[0] = 'X'
	_, kvs, err := h.Snapshot(h.ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	kvs[0].Value[0] = 'X'
}

// firstRev is the mod-revision of the only key.
func (h *harness) firstRev(t *testing.T) store.Rev {
	t.Helper()
	_, kvs, err := h.Snapshot(h.ctx, "")
	if err != nil || len(kvs) != 1 {
		t.Fatalf("want one key, got %v, error %v", kvs, err)
	}
	return kvs[0].Mod
}

// eventually waits until ok, for at most patience.
func eventually(t *testing.T, h *harness, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", patience, what)
		case <-h.ctx.Done():
			t.Fatal(h.ctx.Err())
		}
	}
}
