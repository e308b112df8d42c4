package engine

import (
	"maps"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

func TestAnOutageIsMeasuredFromWhenItWasFirstSeen(t *testing.T) {
	life := plan.Outage{ID: spec.Identity{Set: "db"}, Token: spec.Token{Epoch: 1, Number: 5}, Goal: records.GoalRun, Session: 7}
	next, ended, again := life, life, life
	next.Token.Number, ended.Goal, again.Session = 6, records.GoalStop, 8
	began := time.Now()
	type measured = map[plan.Outage]time.Duration
	o := outages{}
	for _, s := range []struct {
		name  string
		after time.Duration
		want  measured
		named []plan.Outage
	}{
		{"nothing was seen", 0, nil, []plan.Outage{life}},
		{"it lasts", 7 * time.Second, measured{life: 7 * time.Second}, []plan.Outage{life}},
		{"and is over", 10 * time.Second, measured{life: 10 * time.Second}, nil},
		{"it counts anew", 12 * time.Second, nil, []plan.Outage{life}},
		{"another life counts its own", 20 * time.Second, measured{life: 8 * time.Second}, []plan.Outage{next}},
		{"so does one that is told to end", 25 * time.Second, measured{next: 5 * time.Second}, []plan.Outage{next, ended}},
		{"and another session", 30 * time.Second, measured{next: 10 * time.Second, ended: 5 * time.Second}, []plan.Outage{again}},
		{"only what was named last is measured", 31 * time.Second, measured{again: time.Second}, nil},
	} {
		now := began.Add(s.after)
		if got := o.measure(now); !maps.Equal(got, s.want) {
			t.Errorf("%s: got %v; want %v", s.name, got, s.want)
		}
		o = o.observe(s.named, now)
	}
}

// A member on the completed revision that never becomes ready holds no later template: its
// time is measured from look to look, and the engine looks again when it is over.
func TestAMemberThatNeverIsReadyGivesWayToAGoodTemplate(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.engine("a", c.store)
		defer stop()
		deadline := int32(120)
		patient := func(s *records.Set) { s.Spec.ProgressDeadlineSeconds = &deadline }
		c.set(1, image("a"), patient)
		c.until("a", on("a", 1))
		c.node.behave(1, "hold")
		began := time.Now()
		c.set(2, image("a"), patient)
		c.until("the second is begun", func(v cache.View) bool { m := v.Member(member(1)); return m != nil })
		c.set(2, image("b"), patient)
		c.until("it is ended", func(v cache.View) bool { m := v.Member(member(1)); return m.Goal == records.GoalStop })
		if waited := time.Since(began); waited < 2*time.Minute || waited > 3*time.Minute {
			t.Errorf("ended after %s; its time is two minutes", waited)
		}
		c.node.behave(1, "")
		c.until("b", on("b", 2))
	})
}
