package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// lastReady is the revision of the newest report.
func lastReady(v cache.View, n int) (last store.Rev) {
	for i := range n {
		last = max(last, v.ModRev(store.ReportKey(member(i))))
	}
	return last
}

func TestAMemberCostsTwoRevisionsFromWantedToReady(t *testing.T) {
	for _, n := range []int{3, 50} {
		for name, policy := range map[string]func(*records.Set){"ordered": func(*records.Set) {}, "parallel": parallel} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				inCluster(t, func(c *cluster) {
					_, stop := c.engine("a", c.store)
					defer stop()
					time.Sleep(time.Second) // leads by now
					wanted := c.set(n, policy, volumes)
					c.until("all ready", ready(n))
					c.cache.Look(func(v cache.View) {
						if got, most := float64(lastReady(v, n)-wanted), 2.1*float64(n); got > most {
							t.Errorf("%d members took %v revisions; want at most %v", n, got, most)
						}
					})
					c.until("bootstrapped", func(v cache.View) bool { return v.Bootstrapped("u1") })
					c.until("the status says so", func(v cache.View) bool {
						st := v.Status(db)
						return st != nil && st.AvailableReplicas == n && st.Bootstrapped && len(st.Members) == n
					})
				})
			})
		}
	}
}

func TestASetComesScalesAndGoes(t *testing.T) {
	for name, policy := range map[string]func(*records.Set){"ordered": func(*records.Set) {}, "parallel": parallel} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				e, stop := c.engine("a", c.store)
				defer stop()
				if _, ok := e.Explain(db); ok {
					t.Error("a set that is not there is explained")
				}
				var addresses []string
				for _, n := range []int{3, 5, 2, 0, 4} {
					c.set(n, policy)
					c.until(fmt.Sprint("scaled to ", n), ready(n))
				}
				c.cache.Look(func(v cache.View) {
					for i := range 4 {
						rec := v.Identity(member(i))
						addresses = append(addresses, rec.Address.String())
					}
				})
				c.set(4, policy, deleting)
				c.until("removed", func(v cache.View) bool { return v.Set(db) == nil && v.ModRev(store.SetKey(db)) == 0 })
				c.cache.Look(func(v cache.View) {
					w := v.World(db)
					if len(w.Revisions) > 0 || w.Status != nil || v.Bootstrapped("u1") {
						t.Errorf("left behind: %+v", w)
					}
					for _, s := range w.Slots {
						if s.Member != nil || s.Report != nil || s.Identity == nil || s.Identity.LastToken.IsZero() || s.Identity.Address.IsValid() {
							t.Errorf("left behind %+v; want the last token alone", s)
						}
					}
					for _, a := range addresses {
						if r := v.Addresses()[a]; r == nil || r.FreedAt == nil {
							t.Errorf("address %s: %+v; want it in quarantine", a, r)
						}
					}
				})
			})
		})
	}
}

func TestADeletedSetsVolumesAndAddressesWaitForItsReturn(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		c.set(2, volumes)
		c.until("ready", ready(2))
		type own struct {
			address string
			volume  records.VolumeID
		}
		look := func() (list []own) {
			c.cache.Look(func(v cache.View) {
				for _, s := range v.World(db).Slots {
					list = append(list, own{s.Identity.Address.String(), s.Volumes["data"].UID})
				}
			})
			return list
		}
		before := look()
		c.set(2, deleting)
		c.until("removed", func(v cache.View) bool { set := v.Set(db); return set == nil })
		c.set(2, volumes, func(s *records.Set) { s.UID = "u2" })
		c.until("back", ready(2))
		if got := look(); fmt.Sprint(got) != fmt.Sprint(before) {
			t.Errorf("got %v; want addresses and volumes as before: %v", got, before)
		}
		c.until("bootstrapped anew", func(v cache.View) bool { return v.Bootstrapped("u2") && !v.Bootstrapped("u1") })
	})
}

func TestALifeThatIsRefusedAgainAndAgainRests(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		c.node.behave(0, "refuse")
		c.set(2)
		begin := c.rev()
		time.Sleep(5 * time.Minute)
		if got := c.rev() - begin; got > 60 {
			t.Errorf("%d revisions in five minutes; want the tries to become rare", got)
		}
		c.cache.Look(func(v cache.View) {
			if r := v.Report(member(0)); r == nil || r.Phase != records.PhaseFailed {
				t.Errorf("report %+v; want the refusal", r)
			}
			if m := v.Member(member(1)); m != nil {
				t.Errorf("db-1 began though db-0 never was ready: %+v", m)
			}
		})
		c.node.behave(0, "")
		c.until("healed", ready(2))
	})
}

func (c *cluster) rev() (rev store.Rev) {
	c.cache.Look(func(v cache.View) { rev = v.Rev() })
	return rev
}

func TestAnIdleClusterWritesNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		c.set(3)
		c.until("ready", ready(3))
		time.Sleep(10 * time.Second)
		before := c.rev()
		time.Sleep(time.Hour)
		if got := c.rev(); got != before {
			t.Errorf("revision went from %d to %d while nothing happened", before, got)
		}
	})
}

func TestEventsAreWrittenOncePerCauseAndAreBounded(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		c.set(1)
		c.until("ready", ready(1))
		for i := range 60 {
			c.set(i % 2)
			c.until("scaled", ready(i%2))
		}
		c.cache.Look(func(v cache.View) {
			if n := cache.OfSet(v, db).EventCount(); n == 0 || n > maxEvents {
				t.Errorf("%d events; want some, at most %d", n, maxEvents)
			}
		})
		stop()
		c.commit(store.Del(store.SessionKey("n1")))
		c.set(2)
		for _, id := range []string{"b", "c"} { // a new leader tells no cause anew
			_, stop := c.engine(id, c.store)
			time.Sleep(10 * time.Second)
			stop()
		}
		told := 0
		c.cache.Look(func(v cache.View) {
			for _, ev := range cache.OfSet(v, db).Events() {
				if ev.Type == "Warning" && ev.Member == "db-0" && ev.Reason == "NodeSilent" {
					told++
				}
			}
		})
		if told != 1 {
			t.Errorf("the silent node was told %d times; want once", told)
		}
	})
}

func TestACauseThatComesBackIsCountedNotWrittenAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		refused := func(v cache.View) (events, count int) {
			for _, ev := range cache.OfSet(v, db).Events() {
				if ev.Reason == "BackOff" && ev.Member == "db-0" {
					events, count = events+1, ev.Count
				}
			}
			return events, count
		}
		counts := func(least int) func(cache.View) bool {
			return func(v cache.View) bool { _, n := refused(v); return n >= least }
		}
		c.node.behave(0, "refuse")
		c.set(1)
		c.until("refused four times", counts(4)) // in four lives
		stop()
		var before int
		c.cache.Look(func(v cache.View) { _, before = refused(v) })
		c.node.behave(0, "hold")
		time.Sleep(time.Hour)
		_, stop = c.engine("b", c.store)
		defer stop()
		time.Sleep(time.Hour)
		c.cache.Look(func(v cache.View) {
			if _, n := refused(v); n > before+1 { // the life that was refused last may be found so by the new leader
				t.Errorf("the count went from %d to %d while nothing came back", before, n)
			}
		})
		c.node.behave(0, "refuse")
		c.until("refused again", counts(before+2))
		c.cache.Look(func(v cache.View) {
			if n, _ := refused(v); n != 1 {
				t.Errorf("%d events of one cause", n)
			}
		})
	})
}

func TestAnEngineDecidesNothingInAStoreWithoutEpoch(t *testing.T) {
	inStore(t, func(store.Store) error { return nil }, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		c.set(1)
		time.Sleep(time.Minute)
		c.cache.Look(func(v cache.View) {
			if m := v.Member(member(0)); m != nil {
				t.Errorf("member %+v; want none", m)
			}
		})
		c.commit(store.Put(store.EpochKey, epochAt(1)))
		c.set(1)
		c.until("ready", ready(1))
	})
}

func TestExplainTellsWhatTheLeaderWouldDo(t *testing.T) {
	inCluster(t, func(c *cluster) {
		e, stop := c.engine("a", c.store)
		defer stop()
		c.node.behave(1, "hold")
		c.set(3)
		c.until("db-1 begun", func(v cache.View) bool { m := v.Member(member(1)); return m != nil })
		time.Sleep(time.Second)
		p, ok := e.Explain(db)
		if !ok || len(p.Actions) != 0 || len(p.Blocked) != 2 || len(p.Status.Members) != 3 {
			t.Errorf("got %+v; want nothing to do, db-1 and db-2 waiting, three rows", p)
		}
	})
}
