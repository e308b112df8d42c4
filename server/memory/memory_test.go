package memory

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

var quiet = slog.New(slog.DiscardHandler)

func commit(t *testing.T, s store.Store, ops ...store.Op) store.Rev {
	t.Helper()
	rev, err := s.Commit(t.Context(), store.Txn{Then: ops})
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func record(key string, r any) store.Op { return store.Put(key, store.Encode(r)) }

// read decodes the record at key; false: there is none.
func read[T any](t *testing.T, s store.Store, key string) (r T, ok bool) {
	t.Helper()
	_, kvs, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	kv, ok := kvs[key]
	if ok {
		if r, err = store.Decode[T](kv); err != nil {
			t.Fatal(err)
		}
	}
	return r, ok
}

// chain is one of n links that a leader named by who has made.
func chain(n int64, who string) store.Op {
	var c records.Chain
	for i := int64(1); i <= n; i++ {
		c.Links = append(c.Links, records.Link{Number: i, Nonce: who})
	}
	return record(store.ContinuityKey, c)
}

// cluster is a store of cluster c1 in epoch 1, with two links and a node.
func cluster(t *testing.T) *memstore.Store {
	t.Helper()
	s := memstore.New()
	t.Cleanup(func() { _ = s.Close() })
	commit(t, s, store.Put(store.ClusterKey, []byte("c1")), store.Put(store.EpochKey, []byte("1")), chain(2, "a"),
		record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "u1"}))
	return s
}

func open(t *testing.T, path string) *Memory {
	t.Helper()
	m, err := Open(path, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// serve is a server's life on s: it begins, runs until act returned and it has looked
// again, and ends; it returns what ended it.
func serve(t *testing.T, path string, s store.Store, act func()) error {
	t.Helper()
	m := open(t, path)
	judged := m.Judge(s)
	if err := m.Begin(t.Context(), judged, "s1", ""); err != nil {
		t.Fatal(err)
	}
	cached := cache.New(judged, quiet)
	ctx, cancel := context.WithCancel(t.Context())
	followed, done := make(chan error, 1), make(chan error, 1)
	go func() { followed <- cached.Run(ctx) }()
	if err := cached.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	go func() { done <- m.Run(ctx, judged, cached, "s1") }()
	time.Sleep(2 * lookEvery)
	act()
	select {
	case err := <-done:
		cancel()
		<-followed
		return err
	case <-time.After(3 * lookEvery):
	}
	cancel()
	<-followed
	return <-done
}

func nothing() {}

// restores are the ways in which an etcd goes back, after a leader has made two more links
// and a node has joined. told: what the hold says; "": it does not show.
var restores = map[string]struct {
	how  memstore.Restored
	told string
}{
	"etcdutl snapshot restore, with another token": {memstore.Restored{}, "etcd names itself"},
	"the same, bumped":                                     {memstore.Restored{Bump: 1e9}, "etcd names itself"},
	"with the same token, name and addresses":              {memstore.Restored{SameCluster: true}, "revision"},
	"with the same token and all, bumped":                  {memstore.Restored{SameCluster: true, Bump: 1e9}, "missing"},
	"a lagging member with --force-new-cluster":            {memstore.Restored{SameCluster: true, Term: 9}, "revision"},
	"a snapshot of the machine":                            {memstore.Restored{SameCluster: true, Term: 1}, "revision"},
	"a snapshot whose store wrote more since than we know": {memstore.Restored{SameCluster: true, Term: 1, Bump: 50}, "missing"},
}

func TestAServerThatStartsOnAStoreThatWentBackHoldsIt(t *testing.T) {
	for name, c := range restores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path, s := filepath.Join(t.TempDir(), "seen.json"), cluster(t)
				backup := s.Backup()
				if err := serve(t, path, s, func() {
					commit(t, s, chain(4, "a"), record(store.NodeKey("late"), records.Node{Name: "late", UID: "u9"}))
					time.Sleep(2 * lookEvery)
				}); err != nil {
					t.Fatal(err)
				}
				before, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				s.Restore(backup, c.how)
				if err := serve(t, path, s, nothing); err != nil {
					t.Fatal(err)
				}
				hold, held := read[records.Hold](t, s, store.HoldKey)
				if !held || hold.By != "server s1" || !strings.Contains(hold.Cause, c.told) {
					t.Errorf("the hold is %+v (%t); want one that says %q", hold, held, c.told)
				}
				known, ok := read[records.Known](t, s, store.KnownKey("s1"))
				if !ok || known.Link.Number != 4 || known.Nodes["late"] != "u9" || known.Nodes["n1"] != "u1" {
					t.Errorf("the server says that it knows %+v (%t)", known, ok)
				}
				// What the wrong store says is not kept, so that the right one is not taken for it.
				if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
					t.Errorf("while the store was held, what is known became\n%s\nbefore\n%s", after, before)
				}
			})
		})
	}
}

func TestAServerThatRunsEndsWhenItsStoreGoesBack(t *testing.T) {
	for name, c := range restores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path, s := filepath.Join(t.TempDir(), "seen.json"), cluster(t)
				backup := s.Backup()
				err := serve(t, path, s, func() {
					commit(t, s, chain(4, "a"))
					time.Sleep(2 * lookEvery)
					s.Restore(backup, c.how)
				})
				if !errors.Is(err, store.ErrWentBack) || !strings.Contains(err.Error(), c.told) {
					t.Fatalf("it ended with %v; want ErrWentBack that says %q", err, c.told)
				}
				if _, held := read[records.Hold](t, s, store.HoldKey); held {
					t.Error("a process that knows too much has written")
				}
				if err := serve(t, path, s, nothing); err != nil {
					t.Fatal(err)
				}
				if hold, held := read[records.Hold](t, s, store.HoldKey); !held || !strings.Contains(hold.Cause, c.told) {
					t.Errorf("started again, it holds it as %+v (%t)", hold, held)
				}
			})
		})
	}
}

func TestAStoreThatGoesOnIsNotHeld(t *testing.T) {
	for name, act := range map[string]func(*memstore.Store) error{
		"nothing happened":  func(*memstore.Store) error { return nil },
		"it was written to": func(s *memstore.Store) error { return write(s, store.Put("x", nil)) },
		"etcd was started again, and lost nothing": func(s *memstore.Store) error {
			s.Restore(s.Backup(), memstore.Restored{SameCluster: true})
			return nil
		},
		"others led meanwhile, for long": func(s *memstore.Store) error {
			var c records.Chain
			for i := int64(300); i < 428; i++ {
				c.Links = append(c.Links, records.Link{Number: i, Nonce: "b"})
			}
			return write(s, record(store.ContinuityKey, c))
		},
		"a restore was declared": func(s *memstore.Store) error {
			s.Restore(s.Backup(), memstore.Restored{})
			return write(s, store.Put(store.EpochKey, []byte("7")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path, s := filepath.Join(t.TempDir(), "seen.json"), cluster(t)
				for range 2 {
					if err := serve(t, path, s, nothing); err != nil {
						t.Fatal(err)
					}
					if hold, held := read[records.Hold](t, s, store.HoldKey); held {
						t.Fatalf("held: %+v", hold)
					}
					if err := act(s); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

func write(s store.Store, ops ...store.Op) error {
	_, err := s.Commit(context.Background(), store.Txn{Then: ops})
	return err
}

func TestAPersonHoldsTheStoreByHand(t *testing.T) {
	s := cluster(t)
	m := open(t, filepath.Join(t.TempDir(), "seen.json"))
	if err := m.Begin(t.Context(), m.Judge(s), "s1", "an operator has restored the store"); err != nil {
		t.Fatal(err)
	}
	if hold, held := read[records.Hold](t, s, store.HoldKey); !held || hold.Cause != "an operator has restored the store" || hold.By != "server s1, started with --hold" {
		t.Errorf("got %+v (%t)", hold, held)
	}
}

func TestAHoldStandsAsItWasWritten(t *testing.T) {
	s := cluster(t)
	commit(t, s, record(store.HoldKey, records.Hold{Cause: "first", By: "node n1"}))
	m := open(t, filepath.Join(t.TempDir(), "seen.json"))
	if err := m.Begin(t.Context(), m.Judge(s), "s1", "by hand"); err != nil {
		t.Fatal(err)
	}
	if hold, _ := read[records.Hold](t, s, store.HoldKey); hold.Cause != "first" {
		t.Errorf("got %+v", hold)
	}
}

func TestWhatTheCacheFoundHoldsTheStoreAtTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, s := filepath.Join(t.TempDir(), "seen.json"), cluster(t)
		if err := serve(t, path, s, nothing); err != nil {
			t.Fatal(err)
		}
		if err := open(t, path).Note(errors.New("the key x is of another revision")); err != nil {
			t.Fatal(err)
		}
		if err := serve(t, path, s, nothing); err != nil {
			t.Fatal(err)
		}
		if hold, held := read[records.Hold](t, s, store.HoldKey); !held || !strings.Contains(hold.Cause, "the key x") {
			t.Errorf("got %+v (%t)", hold, held)
		}
		commit(t, s, store.Del(store.HoldKey), store.Put(store.EpochKey, []byte("9")))
		for range 2 { // declared, and forgotten
			if err := serve(t, path, s, nothing); err != nil {
				t.Fatal(err)
			}
			if _, held := read[records.Hold](t, s, store.HoldKey); held {
				t.Error("held again")
			}
		}
	})
}
