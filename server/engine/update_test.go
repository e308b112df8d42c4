package engine

import (
	"testing"

	"github.com/stead-project/stead/server/world"
	"github.com/stead-project/stead/spec"
)

// image makes the set's template another one.
func image(name string) func(*spec.Set) {
	return func(s *spec.Set) { s.Spec.Template.Spec.Containers = []spec.Container{{Name: "main", Image: name}} }
}

func keeping(limit int32) func(*spec.Set) {
	return func(s *spec.Set) { s.Spec.RevisionHistoryLimit = &limit }
}

// on: that many members are ready and run the image, which is the current revision's.
func on(name string, n int) func(world.View) bool {
	set := spec.Set{}
	image(name)(&set)
	hash := spec.HashTemplate(set.Template())
	return func(v world.View) bool {
		st, _ := v.Status(db)
		for i := range n {
			if m, _ := v.Member(member(i)); m == nil || m.Revision != hash || m.Goal != spec.GoalRun {
				return false
			}
		}
		return ready(n)(v) && st != nil && st.CurrentRevision == hash && st.CurrentCompleted
	}
}

// numbers are the stored revisions' numbers by image.
func numbers(c *cluster) map[string]int64 {
	list := map[string]int64{}
	c.cache.Look(func(v world.View) {
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
		c.until("a is forgotten", func(v world.View) bool { return len(v.World(db).Revisions) == 2 })
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
		c.until("one", func(v world.View) bool { m, _ := v.Member(member(1)); return m == nil })
		c.cache.Look(func(v world.View) {
			if id, _ := v.Identity(member(1)); id == nil || id.Due != "" || !id.Address.IsValid() {
				t.Errorf("identity %+v; want its address and no revision", id)
			}
		})
		c.set(2, image("b"), volumes)
		c.until("b", on("b", 2))
	})
}
