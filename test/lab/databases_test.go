package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// labBases are the databases that go through it, those of one lab together; of the last of them the leader's host is chosen.
var labBases = []struct {
	name string
	sets []base
	// together: all hosts lose their power at once, too, and with it what is not on their disks yet.
	together bool
	memory   string // MiB a host has, as two of its members need it; "": as always
}{
	{name: "etcd-postgresql", sets: []base{{"etcd", "2379", etcdArchive}, {"postgresql", "5432", images + "patroni.tar"}}},
	{name: "galera", sets: []base{{"galera", "3306", images + "galera.tar"}}},
	{name: "cassandra", sets: []base{{"cassandra", "9042", images + "cassandra.tar"}}, memory: "3072"},
	{name: "nats", sets: []base{{"nats", "4222", images + "nats.tar"}}, together: true},
}

const images = "../../.cache/images/"

// base is a database of examples/.
type base struct{ set, port, archive string }

// TestDatabasesLoseNothingWhenTheirHostsAreLostMovedFromAndCutOff: three hosts, each with a server and an agent, and members of databases
// that are written to from all three. The host of the leader loses its power, all is moved from it and back, and it is cut off. Once.
func TestDatabasesLoseNothingWhenTheirHostsAreLostMovedFromAndCutOff(t *testing.T) {
	soakFor(t)
	for _, g := range labBases {
		t.Run(g.name, func(t *testing.T) {
			if g.memory != "" {
				t.Setenv("LAB_MEMORY", g.memory)
			}
			h := newLab(t, 3)
			c := &bases{hosts: h, held: holds}
			t.Cleanup(c.logLast) // before the hosts go
			var archives []string
			for _, d := range g.sets {
				archives = append(archives, d.archive)
			}
			h.act("Stead is installed", func() { h.installServers(h.pack(version), archives...) })
			h.act("sets are up", func() {
				h.applyLives()
				for _, d := range g.sets {
					w := h.newDatabase(d.set, d.port).writeInside()
					c.all, c.held = append(c.all, w), slices.Concat(c.held, w.members)
				}
			})
			c.act("the leader's host loses its power", c.losePower)
			if g.together {
				c.act("all hosts lose their power at once", c.loseAll)
			}
			c.act("the leader's host is drained, its members move, and return", c.moveAway)
			c.act("the leader's host is cut off", c.cutOff)
			h.act("what was acknowledged is read", func() {
				for _, w := range c.all {
					w.readBack(1, 2, 3)
				}
			})
		})
	}
}

// bases are databases under writes, and lives beside them.
type bases struct {
	*hosts
	all  []*inside
	held []string
}

// logLast logs what members and writers logged last, if the test has failed.
func (c *bases) logLast() {
	if !c.Failed() {
		return
	}
	for _, w := range c.all {
		for _, name := range w.members {
			out, err := c.tryStead("logs", name, "--tail", "40")
			c.Logf("--- %s: %v ---\n%s", name, err, out)
		}
		c.each(func(i int) {
			out, err := c.trySSH(i, "journalctl -q -n 15 -o short-precise --no-pager -u "+w.unit())
			c.Logf("--- %s on %s: %v ---\n%s", w.unit(), host(i), err, out)
		})
	}
}

// act does something and says how long nothing was acknowledged meanwhile, whoever wrote.
func (c *bases) act(what string, do func()) {
	c.Helper()
	from := clock(c)
	c.hosts.act(what, func() {
		do()
		c.quorate()
		c.whole(slices.Concat(c.held, guards)...)
		for _, w := range c.all {
			for i := 1; i <= c.n; i++ {
				w.goesOn(i)
			}
		}
	})
	if c.Failed() {
		return
	}
	for _, w := range c.all {
		c.Logf("acts: %s: %s acknowledged nothing for %.1f s at most", what, w.set, w.gap(from).Seconds())
	}
	c.judge()
}

// leaderHost is the host of the member that leads; in a database whose members are all alike, of the first.
func (c *bases) leaderHost() (i int) {
	c.Helper()
	last := c.all[len(c.all)-1]
	if last.set != "postgresql" {
		return c.hostOf(c.member(last.members[0]))
	}
	c.eventually("PostgreSQL has a leader", func() error {
		out, err := c.tryStead("get", "members")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); strings.HasPrefix(line, "postgresql-") && slices.Contains(f, "leader") {
				i = c.hostOf(c.member(f[0]))
				return nil
			}
		}
		return fmt.Errorf("%s", out)
	})
	return i
}

// others go on: each writes to each database from now on.
func (c *bases) othersGoOn(i int) {
	c.Helper()
	for n := 1; n <= c.n; n++ {
		for _, w := range c.all {
			if n != i {
				w.goesOn(n)
			}
		}
	}
}

func (c *bases) losePower() {
	c.Helper()
	i := c.leaderHost()
	was := c.on(i, c.held...)
	c.lab("kill", fmt.Sprint(i))
	c.othersGoOn(i)
	c.lab("start", fmt.Sprint(i))
	for _, m := range was {
		c.returned(m)
	}
}

func (c *bases) loseAll() {
	c.Helper()
	var was []member
	for i := 1; i <= c.n; i++ {
		was = append(was, c.on(i, c.held...)...)
	}
	for _, command := range []string{"kill", "power", "start"} {
		for i := 1; i <= c.n; i++ {
			c.lab(command, fmt.Sprint(i))
		}
	}
	for _, m := range was {
		c.returned(m)
	}
	c.connected()
}

func (c *bases) cutOff() {
	c.Helper()
	i := c.leaderHost()
	lives := c.lives(c.held...)
	c.lab("cut", fmt.Sprint(i))
	c.othersGoOn(i)
	c.lab("heal", fmt.Sprint(i))
	c.connected()
	for name := range lives {
		c.ready(name)
	}
	c.assertHeld(lives)
}

func (c *bases) moveAway() {
	c.Helper()
	i := c.leaderHost()
	was := c.on(i, c.held...)
	// Longer than one move takes: one that is aborted is followed by another.
	if out, err := c.tryLong(2*hanging, "drain", host(i), "--move", "--timeout", "15m"); err != nil {
		c.Fatalf("%v\n%s", err, out)
	}
	c.stead("uncordon", host(i))
	for _, m := range was {
		if now := c.ready(m.Name, m); now.Node == host(i) || now.Address != m.Address {
			c.Errorf("%+v was moved, and is %+v", m, now)
		}
		c.stead("move", m.Name, "--to", host(i), "--wait", "--timeout", "4m")
		c.ready(m.Name, m)
	}
	for _, w := range c.all {
		for n := range w.members {
			w.route(n)
		}
	}
}
