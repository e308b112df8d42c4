package box

import (
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/records"
)

// process names the one container of a member.
func process(name string) runtime.ContainerID {
	return runtime.ContainerID{ID: member(name), Name: "main"}
}

// host is where a member lives.
func (c *cluster) host(name string) *node {
	c.t.Helper()
	n := c.nodes[c.find(name).Node]
	if n == nil {
		c.t.Fatalf("%s lives nowhere\n%s", name, c.describe())
	}
	return n
}

func TestAContainerThatEndsIsStartedAgainInPlace(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(*node) bool{
		"it exits": func(n *node) bool { return n.host.Exit(process("db-0"), runtime.Exit{Code: 1}) },
		"it vanishes": func(n *node) bool {
			return n.host.Lose(process("db-0"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				c := newCluster(t, inMemory(t), "a")
				c.apply(shape{name: "db", replicas: 2, volumes: true})
				c.ready("db", 2)
				before := c.find("db-0")
				for try := 1; try <= 3; try++ {
					if !end(c.nodes["a"]) {
						t.Fatal("db-0 did not run")
					}
					c.until("db-0 is ready again", func() bool { m := c.find("db-0"); return m.Ready && m.Restarts == try })
				}
				if got := c.find("db-0"); got.Token != before.Token || got.Address != before.Address {
					t.Errorf("got %+v, was %+v", got, before)
				}
				if got, want := order(c.audit.starts()), []string{"db-0", "db-1", "db-0", "db-0", "db-0"}; !slices.Equal(got, want) {
					t.Errorf("started %v, want %v", got, want)
				}
			})
		})
	}
}

func TestARebootIsProofOnlyWhenTheNodeSaysSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b", "c")
		c.apply(shape{name: "db", replicas: 3})
		c.ready("db", 3)
		before := c.find("db-1")
		n := c.host("db-1")
		n.reboot()
		c.until("db-1 waits for its node", func() bool { return strings.Contains(c.find("db-1").Blocked, "is unreachable") })
		c.throughout(ttl, "no other life begins", func() bool {
			m := c.find("db-1")
			return m.Token == before.Token && !m.Ready && len(c.audit.starts()) == 3
		})
		n.start()
		c.ready("db", 3)
		if got := c.find("db-1"); got.Token == before.Token {
			t.Errorf("the life went on over a reboot: %+v", got)
		}
		if got := len(c.audit.starts()); got != 4 {
			t.Errorf("%d starts, want 4\n%s", got, c.describe())
		}
	})
}

func TestANodeWhoseAgentIsGoneLosesNothingButItsReadiness(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b", "c")
		c.apply(shape{name: "db", replicas: 3})
		c.ready("db", 3)
		before := c.find("db-0")
		lost := c.host("db-0")
		other := c.host("db-1")
		c.until("DNS knows all three", func() bool { return len(other.readyPeers("db")) == 3 })
		lost.crash()
		c.until("db-0 is not ready in the status", func() bool {
			return !c.find("db-0").Ready && c.sets()["db"].ReadyReplicas == 2
		})
		c.until("db-0 is not ready in DNS", func() bool {
			return slices.Equal(other.readyPeers("db"), []string{"db-1", "db-2"})
		})
		c.until("the status names the silent node", func() bool {
			return slices.ContainsFunc(c.sets()["db"].Conditions, func(k records.Condition) bool {
				return k.Reason == "NodeSilent" && k.Status == "False"
			})
		})
		c.throughout(ttl, "db-0 runs on and nothing is done about it", func() bool {
			return c.find("db-0").Token == before.Token && len(c.audit.running(member("db-0"))) == 1 && len(c.audit.starts()) == 3
		})
		lost.start()
		c.ready("db", 3)
		c.until("DNS knows all three again", func() bool { return len(other.readyPeers("db")) == 3 })
		if got := c.find("db-0"); got.Token != before.Token || len(c.audit.starts()) != 3 {
			t.Errorf("got %+v and %d starts, want the life that was: %+v", got, len(c.audit.starts()), before)
		}
	})
}

func TestAMemberOfASilentNodeIsStoppedOnlyByItsAgent(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		c.apply(shape{name: "db", replicas: 2})
		c.ready("db", 2)
		n := c.host("db-1")
		n.crash()
		c.scale("db", 1)
		c.until("db-1 is to stop", func() bool { return c.find("db-1").Goal == records.GoalStop })
		c.scale("db", 2)
		c.throughout(ttl+ttl/2, "db-1 is not taken for dead", func() bool {
			return c.find("db-1").Goal == records.GoalStop && len(c.audit.starts()) == 2
		})
		n.start()
		c.ready("db", 2)
		if got := order(c.audit.starts()); !slices.Equal(got, []string{"db-0", "db-1", "db-1"}) {
			t.Errorf("started %v", got)
		}
	})
}

// A process in D state survives SIGKILL: it is not gone, whatever was ordered.
func TestAProcessThatDoesNotDieBlocksItsIdentity(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a")
		host := c.nodes["a"].host
		host.OnStart(func(m runtime.Container) fakert.Behaviour {
			stuck := m.ID.ID.Ordinal == 1
			return fakert.Behaviour{IgnoreTerm: stuck, Unkillable: stuck}
		})
		c.apply(shape{name: "db", replicas: 2, grace: 1})
		c.ready("db", 2)
		before := c.find("db-1").Token
		c.scale("db", 1)
		c.until("db-1 is stopping, and that is said", func() bool {
			m := c.find("db-1")
			return m.Phase == records.PhaseStopping && m.Blocked != ""
		})
		c.scale("db", 2)
		c.nodes["a"].restart()
		c.throughout(2*ttl, "db-1 is not taken for dead", func() bool {
			m := c.find("db-1")
			return m.Token == before && m.Phase == records.PhaseStopping && m.Blocked != "" && len(c.audit.starts()) == 2
		})
		host.OnStart(nil)
		if !host.Exit(process("db-1"), runtime.Exit{Code: 137}) {
			t.Fatal("db-1 had no process")
		}
		c.ready("db", 2)
		if got := c.find("db-1").Token; got == before || len(c.audit.starts()) != 3 {
			t.Errorf("token %s, was %s; starts %v", got, before, order(c.audit.starts()))
		}
	})
}
