package memory

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func TestWhatIsKnownIsOnDiskWithinMomentsAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, s := filepath.Join(t.TempDir(), "data", "seen.json"), cluster(t)
		var last store.Rev
		if err := serve(t, path, s, func() {
			rev := commit(t, s, record(store.NodeKey("n2"), records.Node{Name: "n2", UID: "u2"}), store.Del(store.NodeKey("n1")))
			time.Sleep(2 * lookEvery)
			if got := open(t, path).kept; got.At != (spec.Sequence{Epoch: 1, Rev: int64(rev)}) || len(got.Nodes) != 1 || got.Nodes["n2"] != "u2" {
				t.Errorf("while it runs %+v is on disk", got)
			}
			last = commit(t, s, store.Put("x", nil))
		}); err != nil {
			t.Fatal(err)
		}
		got := open(t, path).kept
		if got.At.Rev != int64(last) || got.Cluster != "c1" || got.Origin == "" || got.Term == 0 || got.Link.Number != 2 {
			t.Errorf("at the end %+v is on disk; the store is at %d", got, last)
		}
		if at, err := os.Stat(path); err != nil || at.Mode().Perm() != 0o600 {
			t.Errorf("the file is %v, %v", at, err)
		}
		was, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := serve(t, path, s, nothing); err != nil {
			t.Fatal(err)
		}
		if now, err := os.Stat(path); err != nil || !now.ModTime().Equal(was.ModTime()) {
			t.Error("nothing happened in the store, and the file was written")
		}
	})
}

func TestAfterARestoreAServerSaysWhatOnlyItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, s := filepath.Join(t.TempDir(), "seen.json"), cluster(t)
		backup := s.Backup()
		if err := serve(t, path, s, func() {
			commit(t, s, record(store.NodeKey("late"), records.Node{Name: "late", UID: "u9"}))
			time.Sleep(2 * lookEvery)
		}); err != nil {
			t.Fatal(err)
		}
		s.Restore(backup, memstore.Restored{})
		commit(t, s, store.Put(store.EpochKey, []byte("4711")), record(store.CountKey, records.Count{Epoch: 4711}))
		if err := serve(t, path, s, nothing); err != nil {
			t.Fatal(err)
		}
		if known, ok := read[records.Known](t, s, store.KnownKey("s1")); !ok || known.At.Epoch != 1 || known.Nodes["late"] != "u9" {
			t.Errorf("it says that it knows %+v (%t)", known, ok)
		}
		if _, kvs, err := s.Get(t.Context(), store.HellosKey); err != nil || string(kvs[store.HellosKey].Value) != "s1" {
			t.Errorf("a count that is just being ended does not notice: %v, error %v", kvs, err)
		}
		if got := open(t, path).kept; got.At.Epoch != 4711 || got.Nodes["late"] != "u9" {
			t.Errorf("while the count is open it forgets: %+v", got)
		}
		commit(t, s, record(store.CountKey, records.Count{Epoch: 4711, Done: true}))
		if err := serve(t, path, s, nothing); err != nil {
			t.Fatal(err)
		}
		if got := open(t, path).kept; len(got.Nodes) != 1 || got.Nodes["n1"] != "u1" {
			t.Errorf("when the count is done its nodes are %v; want the store's", got.Nodes)
		}
	})
}

func TestAnotherClustersStoreIsRefusedAndNotHeld(t *testing.T) {
	path, s := filepath.Join(t.TempDir(), "seen.json"), cluster(t)
	m := open(t, path)
	if err := errors.Join(m.Owns(""), m.Owns("c1")); err != nil {
		t.Errorf("a server that knows nothing: %v", err)
	}
	if err := m.Begin(t.Context(), m.Judge(s), "s1", ""); err != nil {
		t.Fatal(err)
	}
	m = open(t, path)
	if err := m.Owns("c1"); err != nil {
		t.Error(err)
	}
	for cluster, want := range map[string]string{"": "is empty", "c2": "cluster c2"} {
		if err := m.Owns(cluster); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("cluster %q: got %v", cluster, err)
		}
	}
}

func TestADamagedMemoryIsNotTakenForNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen.json")
	if err := os.WriteFile(path, []byte(`{"at":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, quiet); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

func TestOfTwoAnswersAtOnceTheOlderMayComeLast(t *testing.T) {
	m := open(t, filepath.Join(t.TempDir(), "seen.json"))
	at := func(rev store.Rev, current bool) store.Origin {
		return store.Origin{Cluster: "e1", Member: "m", Term: 3, Rev: rev, Current: current}
	}
	if err := m.judge()(at(10, true)); err != nil {
		t.Fatal(err)
	}
	first, second := m.judge(), m.judge()
	if err := second(at(12, true)); err != nil {
		t.Error(err)
	}
	if err := first(at(11, true)); err != nil {
		t.Errorf("an answer that another call has overtaken: %v", err)
	}
	if err := m.judge()(at(4, false)); err != nil {
		t.Errorf("a member that lags: %v", err)
	}
	if got := m.Known(); got.At.Rev != 12 {
		t.Errorf("known is %+v", got)
	}
	if err := m.judge()(at(11, true)); !errors.Is(err, store.ErrWentBack) {
		t.Errorf("a later call with an older answer: %v", err)
	}
	if err := m.judge()(at(13, true)); !errors.Is(err, store.ErrWentBack) {
		t.Errorf("after it went back: %v", err)
	}
}
