package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServersWithTheirOwnStore: three servers, each with a member of the store in it, and four hosts with etcd under
// acknowledged writes. The one server that hosts know becomes three; the data of one is set back, that of most is lost, and one
// stays. In a soak these follow each other by chance, with what TestServersAreKilledReplacedUpgradedAndRestoredUnderWrites does once.
func TestServersWithTheirOwnStore(t *testing.T) {
	length, chance := soakFor(t)
	if length == 0 {
		t.Parallel()
		chance = seeded(t)
	}
	began := time.Now()
	m := newOwnServers(t, 4, chance)
	m.database("etcd", "stead.local/etcd:3.4.23")
	m.settle()
	t.Logf("all is up after %v", time.Since(began).Round(time.Millisecond))
	stop := m.hosts[0].startLoad("--endpoints", etcdEndpoints, "--pause", "20ms", "--writers", "1")
	was := m.held()
	acts := []fault{
		{"one server becomes three", (*matrix).growServers},
		{"each server is killed", (*matrix).killEachServer},
		{"the disk of a server is lost, and it is replaced", (*matrix).loseServerDisk},
		{"most servers are lost for a while", (*matrix).loseQuorum},
		{"the data of a server is set back", (*matrix).setServerBack},
		{"the data of most servers is lost, and the cluster goes on with that of one", (*matrix).recoverOwn},
		{"three servers become one", (*matrix).shrinkServers},
	}
	do := func(f fault) {
		began := time.Now()
		f.do(m)
		m.connected()
		m.assertHeld(was)
		m.judge()
		t.Logf("%s: %v", f.what, time.Since(began).Round(100*time.Millisecond))
	}
	counts, end := map[string]int{}, time.Now().Add(length)
	for more := true; more && !t.Failed(); more = time.Now().Before(end) {
		do(acts[0])
		turns := slices.Clone(acts[1:6])
		if length == 0 { // the others are in TestServersAreKilledReplacedUpgradedAndRestoredUnderWrites
			turns = turns[3:]
		}
		chance.Shuffle(len(turns), func(i, j int) {
			if length > 0 {
				turns[i], turns[j] = turns[j], turns[i]
			}
		})
		for _, f := range turns {
			do(f)
			counts[f.what]++
		}
		do(acts[6])
	}
	if length > 0 {
		t.Logf("acts: %v", counts)
	}
	stop()
}

func serverName(i int) string { return fmt.Sprint("s", i) }
func apiAddress(i int) string { return controlAddress(i) + ":7443" }

// newOwnServers starts one of the servers of a matrix with the embedded store, and hosts that know it alone.
func newOwnServers(t *testing.T, hosts int, chance *rand.Rand) *matrix {
	t.Helper()
	return newOwnServersAs(t, hosts, chance, "", 0, "5s")
}

// newOwnServersAs does it with a program ("": the one under test), and sessions of a length; the last away of the hosts have not joined yet.
func newOwnServersAs(t *testing.T, hosts int, chance *rand.Rand, program string, away int, ttl string) *matrix {
	t.Helper()
	m := &matrix{T: t, hosts: newHosts(t, hosts), away: away, ttl: ttl, chance: chance}
	m.sw = m.hosts[0].Name + "-sw"
	var all []string
	for i := range controls {
		m.control = append(m.control, m.machine(fmt.Sprint("c", i), controlAddress(i)))
		m.control[i].program = program
		all = append(all, apiAddress(i))
	}
	m.servers, m.standing = all[:1], []int{0}
	m.people = m.machine("p", "172.31.9.99")
	m.startOwn(0)
	file := m.people.path("people.json")
	m.control[0].stead("client", "create", "--name", "ann", "-o", file, "--servers", strings.Join(all, ","))
	m.people.client = file
	m.heard = m.hosts[0].path("witness.log")
	for i, h := range m.hosts {
		h.boot, h.program = h.path("boot-id"), program
		h.start("witness", toolBinary, "witness", "--file", m.heard)
		if i < hosts-away {
			m.boot(i)
		}
	}
	m.connected()
	m.joined = true
	m.loadImages([]string{etcdArchive, m.hosts[0].toolArchive()})
	watchForTwo(m, m.hosts)
	return m
}

// startOwn starts (again) a server with a member of the store, and waits until it answers.
func (m *matrix) startOwn(i int, more ...string) {
	m.Helper()
	m.control[i].startServer(append([]string{"--name", serverName(i), "--listen", apiAddress(i),
		"--peer-listen", controlAddress(i) + ":7444", "--session-ttl", m.ttl}, more...)...)
}

// joinOwn has a server join with a token of another one.
func (m *matrix) joinOwn(i int, token string) {
	m.Helper()
	m.startOwn(i, "--join", apiAddress(m.standing[0]), "--token", strings.TrimSpace(token))
	if !slices.Contains(m.standing, i) {
		m.standing = append(m.standing, i)
	}
}

// at is a server that stands, and not the i-th.
func (m *matrix) at(i int) *Lab {
	for _, n := range m.standing {
		if n != i {
			return m.control[n]
		}
	}
	return nil
}

// quorate waits until all servers vote and are reachable, and something can be written.
func (m *matrix) quorate() {
	m.Helper()
	m.vote()
	m.writes()
}

// vote waits until all servers vote and are reachable.
func (m *matrix) vote() {
	m.Helper()
	l := m.control[m.standing[0]]
	l.eventually(2*time.Minute, "all servers vote", func() error {
		out, err := l.trySteadFor(commandTime, "server", "ls")
		good := 0
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); len(words) > 5 && words[3] == "yes" && words[5] == "yes" {
				good++
			}
		}
		if err != nil || good != len(m.standing) {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}

// writes waits until people can have something written.
func (m *matrix) writes() {
	m.Helper()
	m.people.eventually(2*time.Minute, "something can be written", func() error {
		out, err := m.people.trySteadFor(commandTime, "token", "create", "--node", "nobody", "--ttl", "1m")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
}

func (m *matrix) growServers() []string {
	m.Helper()
	for i := range controls {
		if !slices.Contains(m.standing, i) {
			m.joinOwn(i, m.control[m.standing[0]].stead("token", "create", "--for-server", serverName(i)))
		}
	}
	m.quorate()
	for _, i := range m.standing {
		m.control[i].stead("token", "create", "--node", "nobody", "--ttl", "1m")
	}
	out := m.people.stead("audit", "--verb", "create token", "--since", "1m")
	for _, i := range m.standing {
		if !strings.Contains(out, " "+serverName(i)+" ") {
			m.Errorf("the audit log has nothing of %s:\n%s", serverName(i), out)
		}
	}
	return nil
}

// killEachServer kills one after the other, the one that leads last.
func (m *matrix) killEachServer() []string {
	m.Helper()
	left := []int{0, 1, 2}
	for len(left) > 0 {
		next, lead := left[0], m.leader()
		if next == lead {
			next = left[len(left)-1]
		}
		left = slices.DeleteFunc(left, func(i int) bool { return i == next })
		m.kill(m.control[next].server)
		m.writes()
		m.connected() // by the others
		m.startAgain(next)
	}
	return nil
}

// loseServerDisk loses the disk of the server that the agents were started with. Without it they find the others, also an
// agent that is started again.
func (m *matrix) loseServerDisk() []string {
	m.Helper()
	const lost = 0
	c, other := m.control[lost], m.at(lost)
	m.kill(c.server)
	if err := os.RemoveAll(c.path("server")); err != nil {
		m.Fatal(err)
	}
	host := m.anyHost()
	before := m.hosts[host].sessions()
	m.kill(m.hosts[host].agent)
	m.startAgent(host)
	m.hosts[host].eventually(time.Minute, "an agent finds another server", func() error {
		if m.hosts[host].sessions() == before {
			return errors.New("it has no session")
		}
		return nil
	})
	stale := strings.TrimSpace(other.stead("token", "create", "--for-server", serverName(lost)))
	m.replaceRefused(lost, "--join", apiAddress(1), "--token", stale)
	return nil
}

// replaceRefused starts a server that must not start, and replaces it as it is told.
func (m *matrix) replaceRefused(i int, more ...string) {
	m.Helper()
	c := m.control[i]
	refused := c.start("refused", append([]string{steadBinary, "server", "--data-dir", c.path("server"), "--socket", c.Socket, "--name", serverName(i),
		"--listen", apiAddress(i), "--peer-listen", controlAddress(i) + ":7444"}, more...)...)
	select {
	case <-refused.done:
	case <-time.After(hanging):
		m.Fatalf("%s starts:\n%s", serverName(i), refused.tail(20))
	}
	if said := refused.tail(3); !strings.Contains(said, "stead server replace "+serverName(i)) {
		m.Fatalf("%s does not say what to do:\n%s", serverName(i), said)
	}
	if err := os.RemoveAll(c.path("server")); err != nil {
		m.Fatal(err)
	}
	other := m.at(i)
	m.standing = slices.DeleteFunc(m.standing, func(n int) bool { return n == i })
	m.joinOwn(i, other.stead("server", "replace", serverName(i), "--yes"))
	m.quorate()
}

func (m *matrix) loseQuorum() []string {
	m.Helper()
	return m.loseQuorumWhile(func() {})
}

// loseQuorumWhile loses most servers, does something, and has them return.
func (m *matrix) loseQuorumWhile(lost func()) []string {
	m.Helper()
	stays := m.anyControl()
	for i := range controls {
		if i != stays {
			m.kill(m.control[i].server)
		}
	}
	was := m.begunAll()
	c := m.control[stays]
	c.eventually(2*time.Minute, "nothing can be written", func() error {
		out, err := c.trySteadFor(commandTime, "token", "create", "--node", "nobody")
		if err == nil || !strings.Contains(out, "the store has no majority: 1 of its 3 servers can be reached") || !strings.Contains(out, "stead server recover") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	out, err := c.trySteadFor(commandTime, "status")
	for i := range controls {
		if i != stays && !strings.Contains(out, serverName(i)+" ("+controlAddress(i)+":7444)") {
			m.Errorf("status does not name %s: %v\n%s", serverName(i), err, out)
		}
	}
	lost()
	m.stillAll(was)
	for i := range controls {
		if i != stays {
			m.startOwnLater(i)
		}
	}
	m.quorate()
	return nil
}

// startOwnLater starts a server that cannot answer before others do.
func (m *matrix) startOwnLater(i int) {
	m.Helper()
	c := m.control[i]
	c.server = c.start("server", steadBinary, "server", "--data-dir", c.path("server"), "--socket", c.Socket, "--name", serverName(i),
		"--listen", apiAddress(i), "--peer-listen", controlAddress(i)+":7444", "--session-ttl", m.ttl)
}

// begunAll are the processes of all members on all hosts.
func (m *matrix) begunAll() []map[string][]string {
	var all []map[string][]string
	for _, h := range m.hosts {
		all = append(all, h.membersHere())
	}
	return all
}

// stillAll fails the test when a process of a member ended.
func (m *matrix) stillAll(was []map[string][]string) {
	m.Helper()
	for i, now := range m.begunAll() {
		for name, pids := range was[i] {
			if !shares(pids, now[name]) {
				m.Errorf("%s ran on host %d as %v, and runs as %v", name, i, pids, now[name])
			}
		}
	}
}

// shrinkServers leaves one server, another each time; a removed one ends by itself.
func (m *matrix) shrinkServers() []string {
	m.Helper()
	stays := 1 + m.chance.IntN(controls-1) // not the one that the agents were started with
	for i := range controls {
		if i == stays {
			continue
		}
		m.control[stays].eventually(time.Minute, "a server is removed", func() error {
			out, err := m.control[stays].trySteadFor(commandTime, "server", "remove", serverName(i), "--yes")
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		})
		select {
		case <-m.control[i].server.done:
		case <-time.After(hanging):
			m.Errorf("removed, %s goes on", serverName(i))
			_ = m.control[i].server.signal(syscall.SIGKILL)
		}
		if err := os.RemoveAll(m.control[i].path("server")); err != nil {
			m.Fatal(err)
		}
		m.standing = slices.DeleteFunc(m.standing, func(n int) bool { return n == i })
	}
	m.quorate()
	return nil
}
