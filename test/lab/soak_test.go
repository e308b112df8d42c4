package lab

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// soakFor is until when a piece of `make soak` goes on, all that it sets up included: make soak sets STEAD_SOAK to a duration. The
// seed is STEAD_SOAK_SEED or drawn, and always told.
func soakFor(t *testing.T) (end time.Time, chance *rand.Rand) {
	t.Helper()
	asked := os.Getenv("STEAD_SOAK")
	if asked == "" {
		t.Skip("a piece of make soak")
	}
	length, err := time.ParseDuration(asked)
	if err != nil {
		t.Fatalf("STEAD_SOAK: %v", err)
	}
	seed := rand.Uint64N(1e6)
	if text := os.Getenv("STEAD_SOAK_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("STEAD_SOAK_SEED: %v", err)
		}
	}
	t.Logf("soak for %v with seed %d", length, seed)
	return time.Now().Add(length), rand.New(rand.NewPCG(seed, 0))
}

// cluster is three hosts with lives and databases under writes.
type cluster struct {
	*hosts
	databases []*database
	held, all []string // members, all of them with the guarded ones
}

// newCluster makes one of the databases named.
func newCluster(t *testing.T, sets ...string) *cluster {
	t.Helper()
	c := &cluster{hosts: newLab(t, 3), held: holds}
	archives := map[string]string{"etcd": etcdArchive, "zookeeper": zookeeperArchive}
	ports := map[string]string{"etcd": "2379", "zookeeper": "2181"}
	var files []string
	for _, set := range sets {
		files = append(files, archives[set])
	}
	c.act("Stead is installed", func() { c.install(files...) })
	c.act("sets are up", func() {
		c.applyLives()
		for _, set := range sets {
			d := c.newDatabase(set, ports[set])
			d.write()
			c.databases = append(c.databases, d)
			c.held = slices.Concat(c.held, d.members)
		}
	})
	c.all = slices.Concat(c.held, guards)
	return c
}

// settled waits until all is well, and looks for two lives.
func (c *cluster) settled() {
	c.Helper()
	c.whole(c.all...)
	c.judge()
}

// finish reads everything back.
func (c *cluster) finish() {
	c.Helper()
	if c.Failed() {
		return
	}
	c.whole(c.all...)
	for _, d := range c.databases {
		d.read()
	}
	c.judge()
}

// TestHostsRebootInTurn: one host after the other is rebooted in an orderly way, in an order by chance, round after
// round, while etcd and ZooKeeper on them are written to.
func TestHostsRebootInTurn(t *testing.T) {
	end, chance := soakFor(t)
	c := newCluster(t, "etcd", "zookeeper")
	reboots := 0
	for (reboots == 0 || time.Now().Before(end)) && !t.Failed() {
		for _, i := range chance.Perm(c.n) {
			c.act(host(i+1)+" is rebooted", func() { c.reboot(i+1, c.held...) })
			c.settled()
			reboots++
		}
	}
	t.Logf("acts: reboots %d", reboots)
	c.finish()
}

// losses is how many power losses TestHostsLosePower has at least.
const losses = 20

// TestHostsLosePower: hosts lose their power by chance, one or two at once, also while they recover, and it comes back.
func TestHostsLosePower(t *testing.T) {
	end, chance := soakFor(t)
	c := newCluster(t, "etcd")
	count, hurt := map[string]int{}, map[string]bool{}
	was := c.lives(c.held...) // when all was well
	healed := func() {
		for _, name := range c.held {
			if m := was[name]; hurt[m.Node] {
				c.returned(m)
			}
		}
		c.settled()
		was = c.lives(c.held...)
		clear(hurt)
	}
	for (time.Now().Before(end) || count["power losses"] < losses) && !t.Failed() {
		hit := chance.Perm(c.n)[:1+chance.IntN(4)/3] // from 0
		for n := range hit {
			hit[n]++
			hurt[host(hit[n])] = true
			c.lab("kill", fmt.Sprint(hit[n]))
			count["power losses"]++
		}
		time.Sleep(time.Duration(chance.IntN(10)) * time.Second) // of darkness
		for _, i := range hit {
			c.lab("power", fmt.Sprint(i))
		}
		t.Logf("hosts %v lost their power", hit)
		if chance.IntN(2) == 0 { // the next loss meets the recovery
			time.Sleep(time.Duration(chance.IntN(40)) * time.Second)
			count["of them before all was well again"]++
		} else {
			c.act("all is well again", healed)
		}
	}
	c.act("all is well again", healed)
	t.Logf("acts: %v", count)
	c.finish()
}

// TestHostsFreezeAndClocksAreSet: hosts hang for longer than the bound, lose their network, and have their clocks set,
// by chance.
func TestHostsFreezeAndClocksAreSet(t *testing.T) {
	end, chance := soakFor(t)
	c := newCluster(t, "etcd")
	step := func(step time.Duration) func() {
		return func() { c.stepClock(1+chance.IntN(c.n), step, c.all...) }
	}
	acts := []struct {
		what string
		do   func()
	}{
		{"freeze", func() { c.freeze(c.held...) }},
		{"cut", func() { c.cut(c.held...) }},
		{"clock 120 s back", step(-2 * time.Minute)},
		{"clock 120 s on", step(2 * time.Minute)},
		{"clock a day back", step(-24 * time.Hour)},
		{"clock a day on", step(24 * time.Hour)},
	}
	count := map[string]int{}
	for (len(count) == 0 || time.Now().Before(end)) && !t.Failed() {
		for _, n := range chance.Perm(len(acts)) {
			c.act(acts[n].what, acts[n].do)
			c.settled()
			count[acts[n].what]++
		}
	}
	t.Logf("acts: %v", count)
	c.finish()
}

// TestAHostLostForGoodIsReplaced: a host's power and disk are gone. After an operator's word its members start on a new
// host, and the database copies its data from the others.
func TestAHostLostForGoodIsReplaced(t *testing.T) {
	soakFor(t)
	c := newCluster(t, "etcd")
	const gone, fresh = 3, 4
	was := c.on(gone, c.held...)
	c.lab("wipe", fmt.Sprint(gone))
	c.act("a new host is up", func() {
		c.lab("start", fmt.Sprint(fresh))
		c.installStead(fresh)
		c.join(fresh)
		c.eventually("the new host has a session", func() error { return c.hasSession(fresh) })
		c.loadImages(fresh, etcdArchive, c.dir+"/tool.tar")
	})
	c.act("the members of the host are back", func() {
		c.stead("node", "fence", host(gone), "--i-have-powered-off")
		for _, m := range was {
			c.stead("volume", "reclaim", "data-"+m.Name, "--lost", "--yes")
		}
		for _, m := range was {
			if now := c.ready(m.Name, m); now.Node != host(fresh) || now.Address != m.Address {
				t.Errorf("%s is %+v, was %+v", m.Name, now, m)
			}
		}
		for i := range c.databases[0].members {
			c.databases[0].route(i)
		}
		c.eventually("the node that is gone is removed", func() error {
			if out, err := c.tryStead("node", "remove", host(gone)); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	})
	for _, d := range c.databases {
		d.read()
	}
	c.judge()
}
