package etcdembed_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/etcdembed"
)

// fill writes until the store refuses, returns how often it wrote, and fails when it
// is never refused. With one key it is history that fills the store, else live data.
// How far it goes past the quota depends on when etcd commits.
func fill(t *testing.T, s store.Store, key func(int) string) int {
	t.Helper()
	value := make([]byte, 1<<20)
	for i := range 200 {
		_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key(i), value)}})
		if errors.Is(err, store.ErrNoSpace) {
			return i
		}
		if err != nil && !errors.Is(err, store.ErrUnknown) { // as when who leads gives that up
			t.Fatal(err)
		}
	}
	t.Fatal("200 MiB were written with a quota of 8")
	return 0
}

// takesWrites waits until the store does, which may need several looks.
func takesWrites(t *testing.T, s store.Store) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("again", []byte("v"))}})
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrNoSpace) && !errors.Is(err, store.ErrUnknown) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func config(dir string, quota int64) etcdembed.Config {
	return etcdembed.Config{Dir: dir, NoFsync: true, QuotaBytes: quota, LookAfter: 20 * time.Millisecond}
}

func TestAStoreFullOfHistoryFreesItself(t *testing.T) {
	_, s := begin(t, config(t.TempDir(), 8<<20))
	for range 3 {
		fill(t, s, func(int) string { return "k" })
		takesWrites(t, s)
	}
	if st, err := s.Status(t.Context()); err != nil || st.Alarm != "" || st.SizeBytes > 4<<20 {
		t.Errorf("status %+v, error %v", st, err)
	}
	if len(get(t, s, "k")) != 1<<20 {
		t.Error("the key's last value is gone")
	}
}

func TestAStoreFullOfLiveDataTakesWritesOnceSomeIsDeleted(t *testing.T) {
	_, s := begin(t, config(t.TempDir(), 8<<20))
	key := func(i int) string { return fmt.Sprint("k", i) }
	written := fill(t, s, key)
	if st, err := s.Status(t.Context()); err != nil || st.Alarm == "" {
		t.Fatalf("no alarm: %+v, %v", st, err)
	}
	for i := range written - 2 {
		if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Del(key(i))}}); err != nil {
			t.Fatalf("a full store does not delete: %v", err)
		}
	}
	takesWrites(t, s)
}

func TestALargerQuotaTakesWritesAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	e, s := begin(t, config(dir, 8<<20))
	fill(t, s, func(i int) string { return fmt.Sprint("k", i) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, s = begin(t, config(dir, 64<<20))
	takesWrites(t, s)
	if get(t, s, "k0") == "" {
		t.Error("a key is gone")
	}
}

// TestMembersFreeSpaceOneAfterTheOther: who leads gives that up before, so that two of three answer all the time. One whose
// file has room, for it forgot the history early, need not give any of it back.
func TestMembersFreeSpaceOneAfterTheOther(t *testing.T) {
	c := newServers(t)
	c.quota = 16 << 20
	first := c.start("s1")
	all := []one{first, c.join("s2", first), c.join("s3", first)}
	fill(t, first, func(int) string { return "k" })
	deadline := time.Now().Add(time.Minute)
	for _, o := range all {
		for h := o.Health(); len(h.Alarms) > 0 || (store.Status{SizeBytes: h.Bytes, UsedBytes: h.UsedBytes, QuotaBytes: c.quota}).Tight(store.MaxBytes); h = o.Health() {
			if time.Now().After(deadline) {
				t.Fatalf("%s has %+v", o.Self(), h)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	for _, o := range all {
		takesWrites(t, o)
		if len(get(t, o, "k")) != 1<<20 {
			t.Error("the key's last value is gone")
		}
	}
}
