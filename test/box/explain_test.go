package box

import (
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
)

// everyoneExplained waits until n members are shown and each that is not ready says
// why: in the status, which follows after a moment, and in what explain says now.
func (c *cluster) everyoneExplained(set string, n int) {
	c.t.Helper()
	c.until("every member that waits says why", func() bool {
		rows, said := c.members(set), c.explain(set)
		return len(rows) == n && !slices.ContainsFunc(rows, func(m records.MemberStatus) bool {
			return !m.Ready && (m.Blocked == "" || !strings.Contains(said, m.Name+" waits: "))
		})
	})
}

// explained waits until explain says it of a set or member.
func (c *cluster) explained(name, why string) {
	c.t.Helper()
	c.until("explain says of "+name+": "+why, func() bool { return strings.Contains(c.explain(name), why) })
}

func (c *cluster) condition(set, kind string) records.Condition {
	c.t.Helper()
	for _, k := range c.sets()[set].Conditions {
		if k.Type == kind {
			return k
		}
	}
	return records.Condition{}
}

func TestAMissingImageIsNamedAndHealedByLoadingIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a")
		c.apply(shape{name: "db", replicas: 3, pull: "Never"})
		c.until("db-0 says what is missing", func() bool { return c.find("db-0").Cause == "ImageMissing" })
		c.until("the set says it", func() bool { return c.condition("db", "Progressing").Reason == "ImageMissing" })
		c.everyoneExplained("db", 3)
		c.explained("db-2", "waiting for db-0")
		c.explained("db-2", "ImageMissing")
		if got := c.audit.starts(); len(got) != 0 {
			t.Errorf("started without an image: %v", got)
		}
		before := c.find("db-0").Token
		c.loadImage("a", image)
		c.ready("db", 3)
		if got := c.find("db-0").Token; got != before {
			t.Errorf("the life was replaced: token %s, was %s", got, before)
		}
	})
}

func TestAnImageThatCannotBePulledIsHealedByThePullThatCan(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a")
		c.nodes["a"].host.OnPull(func(string, string) error { return runtime.ErrImagePull })
		c.apply(shape{name: "db", replicas: 1})
		c.until("db-0 says so", func() bool { return strings.HasPrefix(string(c.find("db-0").Cause), "Image") })
		c.everyoneExplained("db", 1)
		c.nodes["a"].host.OnPull(nil)
		c.ready("db", 1)
	})
}

func TestWithoutANodeEveryMemberSaysSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t))
		c.apply(shape{name: "db", replicas: 2, parallel: true})
		c.everyoneExplained("db", 2)
		c.explained("db-1", "no node has joined yet")
		c.addNode("late")
		c.ready("db", 2)
	})
}

func TestASilentNodeIsNamed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a")
		c.apply(shape{name: "db", replicas: 2, volumes: true})
		c.ready("db", 2)
		c.nodes["a"].crash()
		c.scale("db", 3)
		c.until("db-0 waits for its node", func() bool { return strings.Contains(c.find("db-0").Blocked, "node a is unreachable") })
		c.everyoneExplained("db", 3)
		c.until("the set says it", func() bool {
			got := c.condition("db", "Progressing")
			return got.Reason == "NodeSilent" && got.Status == "False"
		})
		c.nodes["a"].start()
		c.ready("db", 3)
	})
}

// A set too large to store its members' rows with its status shows them all the same.
func TestEveryMemberOfALargeSetSaysWhyItWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const n = 130
		c := newCluster(t, inMemory(t), "a")
		c.apply(shape{name: "db", replicas: n, pull: "Never"})
		c.until("db-0 says what is missing", func() bool { return c.find("db-0").Cause == "ImageMissing" })
		c.everyoneExplained("db", n)
		if rows := c.sets()["db"].Members; len(rows) != 0 {
			t.Errorf("its status stores %d rows: the set is not large", len(rows))
		}
		c.until("db-129 waits for db-0", func() bool { return strings.Contains(c.find("db-129").Blocked, "waiting for db-0") })
	})
}
