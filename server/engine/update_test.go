package engine

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// image makes the set's template another one.
func image(name string) func(*records.Set) {
	return func(s *records.Set) { s.Spec.Template.Spec.Containers = []spec.Container{{Name: "main", Image: name}} }
}

func keeping(limit int32) func(*records.Set) {
	return func(s *records.Set) { s.Spec.RevisionHistoryLimit = &limit }
}

// on: that many members are ready and run the image, which is the current revision's.
func on(name string, n int) func(cache.View) bool {
	set := records.Set{}
	image(name)(&set)
	hash := spec.HashTemplate(set.Template())
	return func(v cache.View) bool {
		st := v.Status(db)
		for i := range n {
			if m := v.Member(member(i)); m == nil || m.Revision != hash || m.Goal != records.GoalRun {
				return false
			}
		}
		return ready(n)(v) && st != nil && st.CurrentRevision == hash && st.CurrentCompleted
	}
}

// numbers are the stored revisions' numbers by image.
func numbers(c *cluster) map[string]int64 {
	list := map[string]int64{}
	c.cache.Look(func(v cache.View) {
		for _, r := range v.World(db).Revisions {
			list[r.Template.Spec.Containers[0].Image] = r.Number
		}
	})
	return list
}

func TestAnUpdateRollsAndItsHistoryIsBounded(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		c.set(2, image("a"), keeping(1))
		c.until("a", on("a", 2))
		for _, name := range []string{"b", "c"} {
			c.set(2, image(name), keeping(1))
			c.until(name, on(name, 2))
		}
		c.until("a is forgotten", func(v cache.View) bool { return len(v.World(db).Revisions) == 2 })
		if got := numbers(c); got["b"] != 2 || got["c"] != 3 {
			t.Errorf("revisions %v; want b as number 2 and c as 3", got)
		}
		c.set(2, image("b"), keeping(1))
		c.until("back on b", on("b", 2))
		if got := numbers(c); got["b"] != 4 || got["c"] != 3 || len(got) != 2 {
			t.Errorf("revisions %v; want b raised to number 4, beside c", got)
		}
	})
}

func TestAMemberThatWasRemovedForgetsWhatItRan(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		c.set(2, image("a"), volumes)
		c.until("a", on("a", 2))
		c.set(1, image("a"), volumes)
		c.until("one", func(v cache.View) bool { m := v.Member(member(1)); return m == nil })
		c.cache.Look(func(v cache.View) {
			if id := v.Identity(member(1)); id == nil || id.Due != "" || !id.Address.IsValid() {
				t.Errorf("identity %+v; want its address and no revision", id)
			}
		})
		c.set(2, image("b"), volumes)
		c.until("b", on("b", 2))
	})
}

func TestARequestIsAnsweredOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		c.set(2, image("a"))
		c.until("a", on("a", 2))
		var old spec.Token
		c.cache.Look(func(v cache.View) { m := v.Member(member(1)); old = m.Token })
		c.commit(store.Put(store.RequestKey(member(1)), store.Encode(records.Request{ID: member(1), Token: old})))
		c.until("another life", func(v cache.View) bool {
			m := v.Member(member(1))
			return m != nil && m.Token.Compare(old) > 0 && ready(2)(v)
		})
		c.cache.Look(func(v cache.View) {
			if rev := v.ModRev(store.RequestKey(member(1))); rev != 0 {
				t.Error("the request is still there")
			}
			if m := v.Member(member(1)); m.Reason != records.ReasonRestart {
				t.Errorf("the life began for %s; want Restart", m.Reason)
			}
		})
	})
}

func TestARequestForALifeThatIsOverIsVoid(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		c.set(1, image("a"))
		c.until("a", on("a", 1))
		c.commit(store.Put(store.RequestKey(member(0)), store.Encode(records.Request{ID: member(0), Token: spec.Token{Epoch: 1, Number: 1}})))
		c.set(1, image("b"))
		c.until("b", on("b", 1))
		c.cache.Look(func(v cache.View) {
			if rev := v.ModRev(store.RequestKey(member(0))); rev != 0 {
				t.Error("the request is still there after the next life began")
			}
		})
	})
}

func TestAChangeOfLabelsRestartsNoMember(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		c.set(2)
		c.until("all ready", ready(2))
		tokens := func(v cache.View) (list [2]spec.Token) {
			for i := range list {
				m := v.Member(member(i))
				list[i] = m.Token
			}
			return list
		}
		var before [2]spec.Token
		c.cache.Look(func(v cache.View) { before = tokens(v) })
		observed := func(generation int64) func(cache.View) bool {
			return func(v cache.View) bool {
				st := v.Status(db)
				return st.ObservedGeneration == generation && st.AvailableReplicas == 2 && ready(2)(v)
			}
		}
		c.set(2, func(s *records.Set) { s.Spec.Template.Metadata.Labels = map[string]string{"tier": "two"} })
		c.until("the labels are seen", observed(2))
		c.cache.Look(func(v cache.View) {
			w := v.World(db)
			if got := tokens(v); got != before || len(w.Revisions) != 1 || w.Status.UpdateRevision != w.Status.CurrentRevision {
				t.Errorf("lives %v after %v, %d revisions; want nothing new", got, before, len(w.Revisions))
			}
		})
		c.set(2, image("other"))
		c.until("an image restarts them", func(v cache.View) bool {
			st := v.Status(db)
			return st.ObservedGeneration == 3 && len(v.World(db).Revisions) == 2 && st.CurrentRevision == v.World(db).TemplateHash && ready(2)(v)
		})
		c.cache.Look(func(v cache.View) {
			if got := tokens(v); got[0] == before[0] || got[1] == before[1] {
				t.Errorf("lives %v after %v; want new ones", got, before)
			}
		})
		stop()
	})
}
