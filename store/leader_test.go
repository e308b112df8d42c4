package store_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

const ttl = 6 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// arena runs candidates in a bubble and records their terms.
type arena struct {
	t       *testing.T
	s       *memstore.Store
	mu      sync.Mutex
	leading int
	terms   []store.Leadership
	ends    []time.Time
}

func newArena(t *testing.T) *arena {
	a := &arena{t: t, s: memstore.New()}
	t.Cleanup(func() { _ = a.s.Close() })
	return a
}

// run starts a candidate that leads until its context ends; the returned function
// stops it and waits.
func (a *arena) run(s store.Store, id string) (stop func()) {
	ctx, cancel := context.WithCancel(a.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := store.NewCandidate(s, id, ttl, quiet).Run(ctx, a.lead); err != nil {
			a.t.Errorf("%s: %v", id, err)
		}
	}()
	return func() { cancel(); <-done }
}

func (a *arena) lead(ctx context.Context, l store.Leadership) error {
	a.mu.Lock()
	a.leading++
	a.terms = append(a.terms, l)
	if a.leading > 1 {
		a.t.Error("two lead at once")
	}
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.leading--
	a.ends = append(a.ends, time.Now())
	a.mu.Unlock()
	return ctx.Err()
}

func (a *arena) leaders() []string {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, l := range a.terms {
		out = append(out, l.Value)
	}
	return out
}

func (a *arena) want(leaders ...string) {
	a.t.Helper()
	got := a.leaders()
	if len(got) != len(leaders) {
		a.t.Fatalf("leaders were %v, want %v", got, leaders)
	}
	for i := range got {
		if got[i] != leaders[i] {
			a.t.Fatalf("leaders were %v, want %v", got, leaders)
		}
	}
}

func TestOneLeadsAndTheNextFollowsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArena(t)
		stopOne := a.run(a.s, "one")
		a.want("one")
		stopTwo := a.run(a.s, "two")
		defer stopTwo()
		time.Sleep(10 * ttl)
		a.want("one")
		begin := time.Now()
		stopOne()
		a.want("one", "two")
		if waited := time.Since(begin); waited > 0 {
			t.Errorf("the next leader came after %v, want at once", waited)
		}
		compare := a.terms[0].Compare()
		if _, err := a.s.Commit(t.Context(), store.Txn{If: []store.Compare{compare}}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("the compare of the first term: got %v, want %v", err, store.ErrConflict)
		}
		compare = a.terms[1].Compare()
		if _, err := a.s.Commit(t.Context(), store.Txn{If: []store.Compare{compare}}); err != nil {
			t.Errorf("the compare of the present term: %v", err)
		}
	})
}

// hung is a store over a network that is cut at some moment: renewals hang, and
// nothing else that a candidate needs works either.
type hung struct {
	store.Store
	mu   sync.Mutex
	last time.Time // when the last good renewal was asked
	cut  bool
}

func (h *hung) Renew(ctx context.Context, id store.LeaseID) error {
	h.mu.Lock()
	cut := h.cut
	if !cut {
		h.last = time.Now()
	}
	h.mu.Unlock()
	if cut {
		<-ctx.Done()
		return errors.Join(store.ErrUnavailable, ctx.Err())
	}
	time.Sleep(time.Second) // the answer is slow: what counts is when it was asked
	return h.Store.Renew(ctx, id)
}

func (h *hung) Get(ctx context.Context, keys ...string) (store.Rev, map[string]store.KV, error) {
	if h.isCut() {
		return 0, nil, store.ErrUnavailable
	}
	return h.Store.Get(ctx, keys...)
}

func (h *hung) Revoke(ctx context.Context, id store.LeaseID) error {
	if h.isCut() {
		return store.ErrUnavailable
	}
	return h.Store.Revoke(ctx, id)
}

func (h *hung) isCut() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cut
}

func TestTheTermEndsATtlAfterTheLastGoodRenewalWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArena(t)
		h := &hung{Store: a.s}
		stop := a.run(h, "one")
		time.Sleep(5 * ttl)
		h.mu.Lock()
		h.cut = true
		h.mu.Unlock()
		stopTwo := a.run(a.s, "two")
		defer stopTwo()
		time.Sleep(2 * ttl)
		a.want("one", "two")
		if got := a.ends[0].Sub(h.last); got != ttl {
			t.Errorf("the term ended %v after the last good renewal was asked, want %v", got, ttl)
		}
		stop()
	})
}

func TestATermEndsWhenItsKeyGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArena(t)
		stop := a.run(a.s, "one")
		defer stop()
		a.want("one")
		if _, err := a.s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Del(store.LeaderKey)}}); err != nil {
			t.Fatal(err)
		}
		a.want("one", "one")
		if a.terms[0].Created >= a.terms[1].Created {
			t.Errorf("terms %v do not differ", a.terms)
		}
	})
}

func TestBrokenWatchesAndAShortOutageDoNotEndATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArena(t)
		stop := a.run(a.s, "one")
		defer stop()
		time.Sleep(ttl)
		a.s.Fail(func(memstore.Call) memstore.Fault { return memstore.Fault{Err: store.ErrUnavailable} })
		a.s.Break()
		time.Sleep(ttl / 2)
		a.s.Fail(nil)
		time.Sleep(3 * ttl)
		a.want("one")
		if _, err := a.s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Del(store.LeaderKey)}}); err != nil {
			t.Fatal(err)
		}
		a.want("one", "one") // the watch was made anew
	})
}

func TestAnUnknownOutcomeOfTheCampaignIsReadAgain(t *testing.T) {
	for _, applied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			a := newArena(t)
			commits := 0
			a.s.Fail(func(c memstore.Call) memstore.Fault {
				if c.Method != "Commit" {
					return memstore.Fault{}
				}
				commits++
				if commits > 1 {
					return memstore.Fault{}
				}
				return memstore.Fault{Err: store.ErrUnknown, Applied: applied}
			})
			stop := a.run(a.s, "one")
			defer stop()
			time.Sleep(time.Second)
			a.want("one")
			if want := map[bool]int{true: 1, false: 2}[applied]; commits != want {
				t.Errorf("applied %v: %d campaigns, want %d", applied, commits, want)
			}
		})
	}
}

func TestTheErrorOfALeaderEndsRunAndTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArena(t)
		broken := errors.New("broken")
		err := store.NewCandidate(a.s, "one", ttl, quiet).Run(t.Context(),
			func(context.Context, store.Leadership) error { return broken })
		if !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
		if _, kvs, _ := a.s.Snapshot(t.Context(), ""); len(kvs) != 0 {
			t.Errorf("left behind: %v", kvs)
		}
	})
}
