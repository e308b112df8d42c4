package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stead-project/stead/store"
)

// brief is the life of a lease that ends in a test: long enough to write with it on a starved machine.
const brief = 3 * time.Second

var leases = []promise{
	{"keys of a lease that ends go together, with one event each", func(t *testing.T, h *harness) {
		from := h.put(t, "stays", "")
		lease := h.grant(t, brief)
		rev := h.commit(t, store.Txn{Then: []store.Op{
			store.PutLeased("a", []byte("1"), lease), store.PutLeased("b", []byte("2"), lease),
		}})
		if kv, _ := h.get(t, "a"); kv.Lease != lease || kv.Mod != rev {
			t.Errorf("got %+v, want lease %d", kv, lease)
		}
		got := h.collect(t, h.watch(t, "", from), 4)
		if want := []string{"a=1", "b=2", "-a", "-b"}; !reflect.DeepEqual(changes(got), want) {
			t.Errorf("got %v, want %v", changes(got), want)
		}
		if got[2].Mod != got[3].Mod || got[2].Mod <= rev {
			t.Errorf("the keys went at %d and %d, want one revision after %d", got[2].Mod, got[3].Mod, rev)
		}
		if _, ok := h.get(t, "stays"); !ok {
			t.Error("a key without lease went too")
		}
		if err := h.Renew(h.ctx, lease); !errors.Is(err, store.ErrLeaseGone) {
			t.Errorf("renew: got %v, want %v", err, store.ErrLeaseGone)
		}
		h.refused(t, store.Txn{Then: []store.Op{store.PutLeased("c", nil, lease)}}, store.ErrLeaseGone)
	}},
	{"a lease does not end before its time", func(t *testing.T, h *harness) {
		begin := time.Now()
		lease := h.grant(t, brief)
		rev := h.commit(t, store.Txn{Then: []store.Op{store.PutLeased("k", nil, lease)}})
		h.collect(t, h.watch(t, "", rev), 1)
		if lived := time.Since(begin); lived < brief {
			t.Errorf("it lived %v, want %v", lived, brief)
		}
	}},
	{"a renewed lease lives on, and then ends", func(t *testing.T, h *harness) {
		lease := h.grant(t, brief)
		rev := h.commit(t, store.Txn{Then: []store.Op{store.PutLeased("k", nil, lease)}})
		var last time.Time
		for begin := time.Now(); time.Since(begin) < brief+time.Second; time.Sleep(300 * time.Millisecond) {
			last = time.Now()
			if err := h.Renew(h.ctx, lease); err != nil {
				t.Fatal(err)
			}
		}
		if _, ok := h.get(t, "k"); !ok {
			t.Fatal("the key went although its lease was renewed")
		}
		h.collect(t, h.watch(t, "", rev), 1)
		if lived := time.Since(last); lived < brief {
			t.Errorf("it lived %v after the last renewal, want %v", lived, brief)
		}
	}},
	{"a revoked lease takes its keys at once", func(t *testing.T, h *harness) {
		lease := h.grant(t, time.Hour)
		rev := h.commit(t, store.Txn{Then: []store.Op{store.PutLeased("k", nil, lease)}})
		if err := h.Revoke(h.ctx, lease); err != nil {
			t.Fatal(err)
		}
		if _, ok := h.get(t, "k"); ok {
			t.Error("the key is still there")
		}
		if got := changes(h.collect(t, h.watch(t, "", rev), 1)); got[0] != "-k" {
			t.Errorf("got %v, want -k", got)
		}
		if err := h.Renew(h.ctx, lease); !errors.Is(err, store.ErrLeaseGone) {
			t.Errorf("renew: got %v, want %v", err, store.ErrLeaseGone)
		}
		if err := h.Revoke(h.ctx, lease); err != nil {
			t.Errorf("revoke again: %v", err)
		}
	}},
	{"a key written again without lease outlives the old one", func(t *testing.T, h *harness) {
		one, two := h.grant(t, time.Hour), h.grant(t, time.Hour)
		h.commit(t, store.Txn{Then: []store.Op{
			store.PutLeased("freed", nil, one), store.PutLeased("moved", nil, one), store.PutLeased("gone", nil, one),
		}})
		h.commit(t, store.Txn{Then: []store.Op{
			store.Put("freed", nil), store.PutLeased("moved", nil, two), store.Del("gone"),
		}})
		h.put(t, "gone", "")
		if err := h.Revoke(h.ctx, one); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"freed", "moved", "gone"} {
			if _, ok := h.get(t, key); !ok {
				t.Errorf("%s went with a lease that it no longer had", key)
			}
		}
	}},
	{"leases are different from each other", func(t *testing.T, h *harness) {
		seen := map[store.LeaseID]bool{0: true}
		for range 20 {
			lease := h.grant(t, time.Hour)
			if seen[lease] {
				t.Fatalf("lease %d was granted twice, or is none", lease)
			}
			seen[lease] = true
		}
	}},
	{"leases that were never granted are gone, and a compare comes before the lease", func(t *testing.T, h *harness) {
		const never = store.LeaseID(4711)
		if err := h.Renew(h.ctx, never); !errors.Is(err, store.ErrLeaseGone) {
			t.Errorf("renew: got %v, want %v", err, store.ErrLeaseGone)
		}
		if err := h.Revoke(h.ctx, never); err != nil {
			t.Errorf("revoke: %v", err)
		}
		rev := h.put(t, "k", "")
		put := []store.Op{store.Put("other", nil), store.PutLeased("k", nil, never)}
		h.refused(t, store.Txn{If: []store.Compare{store.Absent("k")}, Then: put}, store.ErrConflict)
		h.refused(t, store.Txn{If: []store.Compare{store.Seen("k", rev)}, Then: put}, store.ErrLeaseGone)
	}},
	{"many leases end, each with its key", func(t *testing.T, h *harness) {
		for i := range 30 {
			lease := h.grant(t, brief)
			h.commit(t, store.Txn{Then: []store.Op{store.PutLeased(fmt.Sprintf("l/%d", i), nil, lease)}})
		}
		eventually(t, h, "all leased keys are gone", func() bool { return h.picture(t, "l/") == "[]" })
	}},
}

func (h *harness) grant(t *testing.T, ttl time.Duration) store.LeaseID {
	t.Helper()
	lease, err := h.Grant(h.ctx, ttl)
	if err != nil {
		t.Fatalf("grant: %v", err)
	}
	return lease
}
