package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stead-project/stead/store"
)

var watches = []promise{
	{"a watch delivers everything after its revision, in order", func(t *testing.T, h *harness) {
		from := h.put(t, "a", "0")
		h.put(t, "a", "1")
		h.put(t, "b", "1")
		h.commit(t, store.Txn{Then: []store.Op{store.Del("a")}})
		w := h.watch(t, "", from)
		got := h.collect(t, w, 3)
		h.put(t, "a", "2")
		got = append(got, h.collect(t, w, 1)...)
		want := []string{"a=1", "b=1", "-a", "a=2"}
		if !reflect.DeepEqual(changes(got), want) {
			t.Errorf("got %v, want %v", changes(got), want)
		}
	}},
	{"an event tells revisions and lease as a read does", func(t *testing.T, h *harness) {
		from := h.put(t, "k", "1")
		lease := h.grant(t, time.Minute)
		mod := h.commit(t, store.Txn{Then: []store.Op{store.PutLeased("k", []byte("2"), lease)}})
		gone := h.commit(t, store.Txn{Then: []store.Op{store.Del("k")}})
		got := h.collect(t, h.watch(t, "", from), 2)
		want := []store.Event{
			{KV: store.KV{Key: "k", Value: []byte("2"), Create: from, Mod: mod, Lease: lease}},
			{KV: store.KV{Key: "k", Mod: gone}, Delete: true},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	}},
	{"a watch delivers only what is under its prefix", func(t *testing.T, h *harness) {
		from := h.put(t, "x", "0")
		h.commit(t, store.Txn{Then: []store.Op{
			store.Put("a/1", nil), store.Put("ab", nil), store.Put("b/1", nil), store.Del("x"),
		}})
		h.put(t, "a/2", "")
		got := changes(h.collect(t, h.watch(t, "a/", from), 2))
		if want := []string{"a/1=", "a/2="}; !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}},
	{"a revision is delivered whole, however large", func(t *testing.T, h *harness) {
		from := h.put(t, "start", "")
		w := h.watch(t, "big/", from)
		const revs, keys = 4, 10 // more bytes than one message of etcd carries
		value := bytes.Repeat([]byte("x"), store.MaxBytes/(keys+1))
		for range revs {
			var txn store.Txn
			for i := range keys {
				txn.Then = append(txn.Then, store.Put(fmt.Sprintf("big/%d", i), value))
			}
			h.commit(t, txn)
		}
		count := map[store.Rev]int{}
		for _, w := range []store.Watch{w, h.watch(t, "big/", from)} { // alive, and catching up
			for _, e := range h.collect(t, w, revs*keys) {
				if len(e.Value) != len(value) {
					t.Fatalf("%s has %d bytes, want %d", e.Key, len(e.Value), len(value))
				}
				count[e.Mod]++
			}
		}
		for rev, n := range count {
			if n != 2*keys {
				t.Errorf("revision %d came with %d events in two watches, want %d", rev, n, 2*keys)
			}
		}
	}},
	{"a watch waits for a revision that is still to come", func(t *testing.T, h *harness) {
		rev := h.put(t, "k", "0")
		w := h.watch(t, "", rev+1)
		h.put(t, "k", "1")
		h.put(t, "k", "2")
		if got := changes(h.collect(t, w, 1)); got[0] != "k=2" {
			t.Errorf("got %v, want only k=2", got)
		}
	}},
	{"next returns when its context ends, and the watch continues", func(t *testing.T, h *harness) {
		w := h.watch(t, "", h.put(t, "k", "0"))
		ctx, cancel := context.WithTimeout(h.ctx, 50*time.Millisecond)
		defer cancel()
		if _, err := w.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want %v", err, context.DeadlineExceeded)
		}
		h.put(t, "k", "1")
		h.collect(t, w, 1)
	}},
	{"a closed watch ends, also a blocked one", func(t *testing.T, h *harness) {
		w := h.watch(t, "", h.put(t, "k", "0"))
		ended := make(chan error, 1)
		go func() {
			_, err := w.Next(h.ctx)
			ended <- err
		}()
		w.Close()
		select {
		case err := <-ended:
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("got %v, want %v", err, store.ErrUnavailable)
			}
		case <-time.After(patience):
			t.Fatal("next is still blocked")
		}
		w.Close()
	}},
	{"the watch ends with the context it was made with", func(t *testing.T, h *harness) {
		ctx, cancel := context.WithCancel(h.ctx)
		w, err := h.Watch(ctx, "", h.put(t, "k", "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		cancel()
		if _, err := w.Next(h.ctx); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %v, want %v", err, store.ErrUnavailable)
		}
	}},
	{"closing the store ends its watches", func(t *testing.T, h *harness) {
		w := h.watch(t, "", h.put(t, "k", "0"))
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(h.ctx, patience)
		defer cancel()
		if _, err := w.Next(ctx); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %v, want %v", err, store.ErrUnavailable)
		}
	}},
	{"a watch from a compacted revision says so", compaction},
}

func compaction(t *testing.T, h *harness) {
	old := h.put(t, "k", "0")
	for i := range 10 {
		h.put(t, "k", fmt.Sprint(i))
	}
	last := h.put(t, "k", "last")
	if err := h.Store.(Compactor).Compact(h.ctx, last); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.ctx, patience)
	defer cancel()
	if _, err := h.watch(t, "", old).Next(ctx); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("got %v, want %v", err, store.ErrCompacted)
	}
	if kv, _ := h.get(t, "k"); string(kv.Value) != "last" {
		t.Errorf("after compaction the key is %q", kv.Value)
	}
	w := h.watch(t, "", last)
	h.put(t, "k", "next")
	h.collect(t, w, 1)
}
