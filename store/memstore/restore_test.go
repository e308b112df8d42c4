package memstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// originOf is that of a linearizable read.
func originOf(t *testing.T, s store.Store) (at store.Origin) {
	t.Helper()
	judged := store.Judged(s, func() store.Judge {
		return func(o store.Origin) error { at = o; return nil }
	})
	if _, _, err := judged.Get(t.Context(), "none"); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestARestoredStoreIsAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		how  memstore.Restored
		rev  store.Rev
		same bool
		term uint64
	}{
		"plain":              {memstore.Restored{}, 3, false, 2},
		"in the same place":  {memstore.Restored{SameCluster: true}, 3, true, 2},
		"bumped":             {memstore.Restored{Bump: 1000, SameCluster: true, Term: 9}, 1003, true, 9},
		"bumped, in another": {memstore.Restored{Bump: 1000}, 1003, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			defer s.Close()
			lease, err := s.Grant(t.Context(), time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			put(t, s, "old", 0)
			mod := put(t, s, "leased", lease)
			backup, was := s.Backup(), originOf(t, s)
			late := put(t, s, "new", 0)
			if err := s.Revoke(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
			open, err := s.Watch(t.Context(), "", late)
			if err != nil {
				t.Fatal(err)
			}
			s.Restore(backup, c.how)

			rev, kvs, err := s.Get(t.Context(), "old", "leased", "new")
			if err != nil || rev != c.rev || len(kvs) != 2 || kvs["leased"].Mod != mod || kvs["leased"].Lease != lease {
				t.Errorf("got revision %d, %v, error %v", rev, kvs, err)
			}
			now := originOf(t, s)
			if (now.Cluster == was.Cluster) != c.same || now.Term != c.term || now.Rev != c.rev {
				t.Errorf("origin %+v became %+v", was, now)
			}
			for range 2 { // the batch that was waiting, then the break
				_, err = open.Next(t.Context())
			}
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a watch of before: %v", err)
			}
			if err := s.Renew(t.Context(), lease); err != nil {
				t.Errorf("a lease of the backup: %v", err)
			}
			if again, err := s.Grant(t.Context(), time.Hour); err != nil || again == lease {
				t.Errorf("lease %d was given again: %d, %v", lease, again, err)
			}
		})
	}
}

func TestAWatchOfTheFutureHearsNothing(t *testing.T) {
	s := memstore.New()
	defer s.Close()
	backup := s.Backup()
	ahead := put(t, s, "a", 0)
	s.Restore(backup, memstore.Restored{})
	w, err := s.Watch(t.Context(), "", ahead)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	put(t, s, "b", 0) // at the same revision as a had
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if b, err := w.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v", b, err)
	}
}
