package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/internal/program"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/test/judge"
)

// TestServersAndHostsAreUpgradedOneByOne: three servers with a store of their own and four hosts run the program of an earlier
// commit, are upgraded one after the other under load, go back, and are upgraded for good in the other order. No member is
// touched, no record written, no question lost; each host gets another name server, and the watchdog of the newest program it has had.
// In a soak, servers and agents change their program by chance until its time is over.
func TestServersAndHostsAreUpgradedOneByOne(t *testing.T) {
	length, chance := soakFor(t)
	if length == 0 {
		t.Parallel()
		chance = seeded(t)
	}
	before := previousStead(t, "--own-store")
	began := time.Now()
	m := newOwnServersOf(t, 4, chance, before)
	for i := 1; i < controls; i++ {
		m.joinOwn(i, m.control[0].stead("token", "create", "--for-server", serverName(i)))
	}
	m.vote()
	m.use(&database{Lab: m.people, set: "etcd", image: "stead.local/etcd:3.4.23", file: previousEtcd})
	m.people.stead("apply", "-f", previousManifest, "--wait", "--timeout", patience)
	m.sets = append(m.sets, &folk{set: "all", members: previousMembers[:2]}, &folk{set: "guarded", members: previousMembers[2:]})
	m.settle()
	t.Logf("all is up after %v", time.Since(began).Round(100*time.Millisecond))
	r := &rolling{matrix: m, before: before, ours: m.people.ownVersion(), was: m.held()}
	r.store, _ = m.control[0].dump()
	stop := m.hosts[0].startLoad("--endpoints", etcdEndpoints, "--pause", "5ms")
	var asking []*asker
	for _, h := range m.hosts {
		h.client = m.people.client
		asking = append(asking, h.startAsker("etcd", m.sets[0].members...))
	}

	servers, agents := []int{0, 1, 2}, []int{0, 1, 2, 3}
	r.servers("an upgrade of the servers first", steadBinary, servers...)
	r.agents("then of the agents", steadBinary, agents...)
	r.agents("the way back of the agents first", before, agents...)
	r.servers("then of the servers", before, servers...)
	for end := time.Now().Add(length); time.Now().Before(end) && !t.Failed(); {
		stead := []string{before, steadBinary}[chance.IntN(2)]
		if chance.IntN(2) == 0 {
			r.servers("a server by chance", stead, m.anyControl())
		} else {
			r.agents("an agent by chance", stead, m.anyHost())
		}
	}
	r.agents("an upgrade for good, of the agents", steadBinary, agents...)
	r.servers("and of the servers", steadBinary, servers...)
	for _, a := range asking {
		a.saw()
	}
	stop()

	t.Log("a member begins its next life, with the logger of the program under test")
	host, was := m.hosts[m.hostOf("all-1")], m.member("all-1")
	loggers := func() []int { return host.living(r.ours+"-", "stead-node\x00logger\x00", host.path("agent", "bin")) }
	if now := loggers(); len(now) > 0 {
		t.Errorf("loggers of lives that began before are %v", now)
	}
	m.people.stead("restart", "all-1")
	m.people.waitReady("all-1", &was)
	if len(loggers()) == 0 {
		t.Error("the life has no logger of the program under test")
	}
	m.judge()
}

// rolling is a cluster whose servers and agents change their program one after the other.
type rolling struct {
	*matrix
	before, ours string
	was          map[string]tale
	store        map[string]store.KV
}

// version is that of a program.
func (r *rolling) version(stead string) string {
	if stead == r.before {
		return ownStoreVersion
	}
	return r.ours
}

// servers starts servers again with a program, one after the other.
func (r *rolling) servers(what, stead string, which ...int) {
	r.Helper()
	began := time.Now()
	for _, i := range which {
		end(r.T, r.control[i].server)
		r.control[i].program = stead
		r.startOwn(i)
		if out := r.control[i].stead("version"); !strings.Contains(out, "server   "+r.version(stead)) {
			r.Errorf("%s is\n%s\nwant %s", serverName(i), out, r.version(stead))
		}
		r.vote()
		r.connected()
	}
	r.unchanged(what, began)
}

// agents starts agents again with a program, one after the other. What an agent starts beside it has another content in each
// release, so that it is another process from then on; but for the watchdog, which an agent of before leaves as it is, for it replaces none.
func (r *rolling) agents(what, stead string, which ...int) {
	r.Helper()
	began := time.Now()
	for _, i := range which {
		h := r.hosts[i]
		names, sessions := h.nameServers(), h.sessions()
		changes := h.program != stead
		end(r.T, h.agent)
		h.program = stead
		r.startAgent(i)
		h.eventually(time.Minute, "the agent has a session", func() error {
			if h.sessions() == sessions {
				return fmt.Errorf("%s", h.agent.tail(5))
			}
			return nil
		})
		if changes {
			h.oneNameServer(names[0])
		}
		if stead == steadBinary {
			r.ownWatchdog(i)
		}
	}
	r.connected()
	r.unchanged(what, began)
}

// ownWatchdog waits until a watchdog of the program under test runs alone on a host.
func (r *rolling) ownWatchdog(i int) {
	r.Helper()
	r.hosts[i].eventually(time.Minute, "a watchdog of this release runs alone", func() error {
		if now := r.watchdogs(i); len(now) != 1 || !program.Runs(now[0], "../../cmd/stead/embed/stead-node") {
			return fmt.Errorf("watchdogs %v: %s", now, r.hosts[i].agent.tail(20))
		}
		return nil
	})
}

// unchanged fails the test unless members and store are as they were noted.
func (r *rolling) unchanged(what string, began time.Time) {
	r.Helper()
	r.Logf("%s: %v", what, time.Since(began).Round(100*time.Millisecond))
	r.assertHeld(r.was)
	r.judge()
	now, _ := r.control[0].dump()
	for _, key := range changed(r.store, now) {
		judge.Broken(r, "%s: %s was, at %d, %s\nand is, at %d, %s", what, key, r.store[key].Mod, r.store[key].Value, now[key].Mod, now[key].Value)
	}
	for _, name := range slices.Sorted(maps.Keys(r.was)) {
		r.people.waitReady(name, nil)
	}
}
