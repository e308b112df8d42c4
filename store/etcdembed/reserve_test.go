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
					err := insist(t, func() error {
						_, err := r.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key(last), value)}})
						return err
					})
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
				node := fmt.Sprint("n", n%10)
				err := insist(t, func() error {
					lease, err := r.Grant(t.Context(), time.Hour)
					if err != nil {
						return err
					}
					_, err = r.Commit(t.Context(), store.Txn{Then: []store.Op{
						store.PutLeased("sessions/"+node, value[:200], lease), store.Put("nodefacts/"+node, value[:2000]),
					}})
					if err == nil {
						_, err = r.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("reports/default/db/0", value[:1000])}})
					}
					return err
				})
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
				err := insist(t, func() error {
					_, err := r.Commit(t.Context(), store.Txn{Then: []store.Op{store.Del(key(i))}})
					return err
				})
				if err != nil {
					t.Fatalf("a full store does not delete: %v", err)
				}
			}
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				_, err := r.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("sets/default/db", value)}})
				if err == nil {
					break
				}
				if !errors.Is(err, store.ErrNoSpace) && !isSlow(err) || time.Now().After(deadline) {
					t.Fatal(err)
				}
			}
		})
	}
}

// insist does what may be done twice until the store answers, which a starved machine delays.
func insist(t *testing.T, do func() error) (err error) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		if err = do(); !isSlow(err) {
			return err
		}
	}
	return err
}

// isSlow: the store did not answer in time.
func isSlow(err error) bool {
	return errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrUnavailable)
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
