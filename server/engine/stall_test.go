package engine

import (
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

func TestAStandstillIsCountedWhileThePlannerSaysSo(t *testing.T) {
	at := time.Unix(1000, 0)
	later := func(seconds int) time.Time { return at.Add(time.Duration(seconds) * time.Second) }
	plain := func(arrived int, clock bool) plan.Plan {
		return plan.Plan{Reached: plan.Progress{Aim: "h2", Arrived: arrived}, Clock: clock}
	}
	var s stallTimer
	for _, step := range []struct {
		name string
		at   int
		want int // seconds counted before the note
		note plan.Plan
	}{
		{"nothing at first", 0, 0, plain(0, true)},
		{"it counts", 10, 10, plain(0, true)},
		{"on and on", 15, 15, plain(0, false)},
		{"it stands while it is told to", 100, 15, plain(0, true)},
		{"it goes on where it stood", 105, 20, plain(1, true)},
		{"progress begins anew", 106, 1, plain(1, true)},
	} {
		if got := s.measure(later(step.at)); got != time.Duration(step.want)*time.Second {
			t.Errorf("%s: counted %s; want %d s", step.name, got, step.want)
		}
		s.observe(step.note, later(step.at))
	}
}

// condition is the status of a condition of the set; "": none.
func condition(v cache.View, kind string) string {
	st := v.Status(db)
	if st == nil {
		return ""
	}
	for _, c := range st.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

func events(v cache.View) map[string]string {
	list := map[string]string{}
	for _, e := range cache.OfSet(v, db).Events() {
		list[e.Reason] = e.Message
	}
	return list
}

// A rollout that stands still is stalled after its deadline, and goes back when the
// manifest says so; both are told once. A template that is good then completes.
func TestAStalledRolloutGoesBackOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		deadline := int32(120)
		c.set(2, func(s *records.Set) {
			s.Spec.ProgressDeadlineSeconds = &deadline
			s.Spec.UpdateStrategy.RollingUpdate = &spec.RollingUpdate{OnFailure: spec.OnFailureRollback}
		})
		c.until("all ready", ready(2))
		first := spec.RevisionHash("")
		c.until("the first revision is complete", func(v cache.View) bool {
			st := v.Status(db)
			first = st.CurrentRevision
			return st.CurrentCompleted
		})
		c.set(2, image("bad"), func(s *records.Set) {
			c.node.mu.Lock()
			c.node.bad = spec.HashTemplate(s.Template())
			c.node.mu.Unlock()
		})
		began := time.Now()
		c.until("given up", func(v cache.View) bool {
			st := v.Status(db)
			return st.RolledBackFrom != ""
		})
		if waited := time.Since(began); waited < 2*time.Minute {
			t.Errorf("given up after %s; the deadline is two minutes", waited)
		}
		c.until("back on the first revision", func(v cache.View) bool {
			m := v.Member(member(1))
			return m.Revision == first && ready(2)(v)
		})
		time.Sleep(time.Hour)
		c.until("not stalled any more", func(v cache.View) bool { return condition(v, plan.ConditionStalled) == "False" })
		c.cache.Look(func(v cache.View) {
			told := events(v)
			if told["ProgressDeadlineExceeded"] == "" || told["RolledBack"] == "" {
				t.Errorf("told %q; want that it stalled and went back", told)
			}
			if m := v.Member(member(1)); m.Revision != first {
				t.Errorf("the given up revision was tried again")
			}
		})
		c.set(2, image("good"))
		c.until("another template completes", func(v cache.View) bool {
			st := v.Status(db)
			return st.CurrentRevision != first && st.RolledBackFrom == ""
		})
		stop()
	})
}
