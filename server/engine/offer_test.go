package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Where the leader takes reports a member costs: one revision to start, two in an update (the stop
// goes with the word that the one before is ready, the next life with the end of the old), one to
// go. Status, history and marks go with them; what is left of these follows at most a few times.
func TestReportsAndWhatFollowsAreOneRevision(t *testing.T) {
	const n, few = 50, 10
	inCluster(t, func(c *cluster) {
		e, stop := c.engine("a", c.store)
		defer stop()
		time.Sleep(time.Second) // leads by now
		offer := func(f func(context.Context, []cache.JudgedReport) []store.Rev) {
			c.node.mu.Lock()
			defer c.node.mu.Unlock()
			c.node.offer = f
		}
		defer offer(nil) // before the engine ends
		offer(func(ctx context.Context, reports []cache.JudgedReport) []store.Rev {
			var seen store.Rev
			c.cache.Look(func(v cache.View) { seen = v.Rev() })
			if err := e.cfg.Cache.Wait(ctx, seen); err != nil { // as where the two have one cache
				t.Error(err)
			}
			return e.Offer(ctx, reports)
		})
		from := c.set(n)
		// spent is how many revisions a member there were since, but for those of all members together.
		spent := func(what string, most float64) {
			t.Helper()
			c.cache.Look(func(v cache.View) {
				if got := float64(v.Rev()-from-few) / n; got > most {
					t.Errorf("%s: %.2f revisions a member; want at most %.2f", what, got, most)
				}
				from = v.Rev()
			})
		}
		c.until("all ready", ready(n))
		spent("start", 1)
		from = c.set(n, func(s *records.Set) { s.Spec.Template.Spec.Containers = []spec.Container{{Name: "c", Image: "j"}} })
		c.until("all new", func(v cache.View) bool {
			w := v.World(db)
			for _, s := range w.Slots {
				if s.Member == nil || s.Member.Revision != w.TemplateHash {
					return false
				}
			}
			return ready(n)(v)
		})
		spent("update", 2)
		from = c.set(0)
		c.until("all gone", ready(0))
		spent("to zero", 1)
	})
}

// Whoever does not lead, or leads no more, takes nothing and says so at once; whoever is busy, after
// a moment.
func TestAnOfferIsAnsweredWhoeverLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newManualTerm(t)
		report := []cache.JudgedReport{{Report: &records.Report{ID: member(0)}}}
		offered := func(want time.Duration) {
			t.Helper()
			began := time.Now()
			if got := d.l.Offer(t.Context(), report); got != nil || time.Since(began) != want {
				t.Errorf("answered %v after %s; want nil after %s", got, time.Since(began), want)
			}
		}
		offered(0)
		end := d.l.takeOffers()
		offered(offerTime)
		go func() { time.Sleep(offerTime / 2); end() }()
		offered(offerTime / 2)
		offered(0)
		end = d.l.takeOffers()
		defer end()
		done := make(chan []store.Rev)
		go func() { done <- d.l.Offer(t.Context(), report) }()
		synctest.Wait()
		d.l.joinOffered(t.Context())
		if got := <-done; len(got) != 1 || got[0] != 0 {
			t.Errorf("of a set that is not there: %v", got)
		}
		if got := d.l.Offer(t.Context(), make([]cache.JudgedReport, mostOffered+1)); got != nil {
			t.Errorf("of too many: %v", got)
		}
	})
}

// A report of which only marks can follow does not wait for the leader's loop.
func TestWhatOnlyMarksFollowFromIsNotOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := started(t, 3)
		defer d.l.takeOffers()()
		report := []cache.JudgedReport{d.says(0, records.PhaseRunning)}
		for _, policy := range []spec.ManagementPolicy{spec.OrderedReady, spec.Parallel} {
			n := int32(3)
			d.write(store.Put(store.SetKey(db), store.Encode(records.Set{
				Ref: db, UID: "uid-db", Generation: 2, InitialReplicas: 3, Spec: spec.SetSpec{Replicas: &n, PodManagementPolicy: policy},
			})))
			began, want := time.Now(), time.Duration(0)
			if policy == spec.OrderedReady {
				want = offerTime
			}
			if got := d.l.Offer(t.Context(), report); got != nil || time.Since(began) != want {
				t.Errorf("%s: answered %v after %s; want %s", policy, got, time.Since(began), want)
			}
		}
	})
}
