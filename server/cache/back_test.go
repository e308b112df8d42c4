package cache

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func TestAStoreThatWentBackIsNoticedThoughItsRevisionIsHigher(t *testing.T) {
	kept, gone, late := store.SetKey(db), store.BootstrappedKey("u1"), store.BootstrappedKey("u2")
	for name, c := range map[string]struct {
		since func(*memstore.Store) // the backup
		back  bool
	}{
		"nothing was written since": {func(*memstore.Store) {}, false},
		"a key was written since, which the backup does not have": {func(s *memstore.Store) {
			commit(t, s, put(late, records.Bootstrapped{SetUID: "u2"}))
		}, false}, // the chain and the memory on disk show this one
		"a key was changed since": {func(s *memstore.Store) { commit(t, s, put(kept, records.Set{Ref: db, UID: "again"})) }, true},
		"a key was deleted since": {func(s *memstore.Store) { commit(t, s, store.Del(gone)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			defer s.Close()
			commit(t, s, store.Put(store.ClusterKey, []byte("c1")), store.Put(store.EpochKey, []byte("1")))
			commit(t, s, put(kept, records.Set{Ref: db, UID: "u"}), put(gone, records.Bootstrapped{SetUID: "u1"}))
			backup := s.Backup()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cache := New(s, slog.New(slog.DiscardHandler))
			c.since(s)
			if loaded, err := cache.follow(expired(t, cache)); !loaded {
				t.Fatal(err)
			}
			s.Restore(backup, memstore.Restored{Bump: 1000, SameCluster: true})
			rev := commit(t, s, put(store.SetKey(db), records.Set{Ref: db, UID: "of another leader"}))
			if !c.back {
				running, stop := context.WithCancel(ctx)
				done := make(chan error, 1)
				go func() { done <- cache.Run(running) }()
				wait(t, cache, rev)
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
				return
			}
			s.Restore(backup, memstore.Restored{Bump: 1000, SameCluster: true}) // nobody wrote yet
			if err := cache.Run(ctx); !errors.Is(err, store.ErrWentBack) {
				t.Errorf("Run: %v; want ErrWentBack", err)
			}
		})
	}
}
