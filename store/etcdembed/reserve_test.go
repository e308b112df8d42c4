package etcdembed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stead-project/stead/store"
)

// A store that is full still takes what keeps sessions: a lease, the session's key, facts and
// reports, again and again, also through a restart of the server; and it heals as before.
func TestAFullStoreKeepsRoomForSessions(t *testing.T) {
	for name, key := range map[string]func(int) string{
		"of live data": func(i int) string { return fmt.Sprint("configs/default/c", i) },
		"of history":   func(int) string { return "configs/default/c" },
	} {
		t.Run(name, func(t *testing.T) {
			const quota = 16 << 20
			dir := t.TempDir()
			e, s := begin(t, config(dir, quota))
			r, end := watched(t, s)
			value, last := make([]byte, 64<<10), 0
			full := func() {
				t.Helper()
				for ; ; last++ {
					_, err := r.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key(last), value)}})
					if errors.Is(err, store.ErrNoSpace) {
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					if last > 10*quota/len(value) {
						if name == "of history" {
							return // it is forgotten as fast as it comes
						}
						t.Fatal("it is never full")
					}
				}
			}
			full()
			session := func(n int) {
				t.Helper()
				lease, err := r.Grant(t.Context(), time.Minute)
				if err != nil {
					t.Fatalf("session %d: %v", n, err)
				}
				node := fmt.Sprint("n", n%10)
				_, err = r.Commit(t.Context(), store.Txn{Then: []store.Op{
					store.PutLeased("sessions/"+node, value[:200], lease), store.Put("nodefacts/"+node, value[:2000]),
				}})
				if err == nil {
					_, err = r.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("reports/default/db/0", value[:1000])}})
				}
				if err != nil {
					t.Fatalf("session %d: %v", n, err)
				}
			}
			for n := range 500 { // more than the reserve, if nothing of it were forgotten
				session(n)
				if n == 250 {
					full() // somebody goes on trying
				}
			}
			if name == "of history" {
				return
			}
			// Sessions leave history, whose room comes back meanwhile.
			for deadline := time.Now().Add(time.Minute); ; {
				full()
				st, err := r.Status(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_, err = r.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("sets/default/db", value[:10]), store.Put("sessions/n1", value[:10])}})
				if st.Alarm == store.NoSpaceAlarm && errors.Is(err, store.ErrNoSpace) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("status %+v, a set beside a session: %v; want both to say that the store is full", st, err)
				}
			}
			end()
			_ = s.Close()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			_, s = begin(t, config(dir, quota))
			r, _ = watched(t, s)
			session(1)
			for i := range last {
				if _, err := r.Commit(t.Context(), store.Txn{Then: []store.Op{store.Del(key(i))}}); err != nil {
					t.Fatalf("a full store does not delete: %v", err)
				}
			}
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				_, err := r.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("sets/default/db", value)}})
				if err == nil {
					break
				}
				if !errors.Is(err, store.ErrNoSpace) || time.Now().After(deadline) {
					t.Fatal(err)
				}
			}
		})
	}
}

// watched is the reserve of s, which looks more often than a server does, and not more often
// than etcd counts, which is ten times a second.
func watched(t *testing.T, s store.Store) (r *store.Reserve, end func()) {
	t.Helper()
	r = store.NewReserve(s)
	r.Look(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			r.Look(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
	}()
	end = func() { cancel(); <-done } // before the store is closed
	t.Cleanup(end)
	return r, end
}
