package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTheAuthorityIsRotated: three servers with their own store, three hosts, etcd under acknowledged writes. A server is away when the
// rotation begins, one that leads is killed, and a host comes later than the others. In a second rotation a server and a host are away until
// the old authority is retired, and come back as docs/OPERATIONS.md says.
func TestTheAuthorityIsRotated(t *testing.T) {
	t.Parallel()
	m := newOwnServers(t, 3, seeded(t))
	m.growServers()
	m.database("etcd", "stead.local/etcd:3.4.23")
	m.settle()
	stop := m.hosts[0].startLoad("--endpoints", etcdEndpoints, "--pause", "20ms", "--writers", "1")
	was, lives := m.held(), m.begunAll()
	late := m.hosts[2].nodeName()

	m.kill(m.control[2].server)
	m.kill(m.hosts[2].agent)
	m.writes()
	m.people.stead("authority", "rotate")
	m.authorityUntil("it waits for s2", func(out string) bool { return strings.Contains(out, " waits for s2: start") })
	m.refused("does not sign yet", "authority", "retire", "--end-clients", "--yes")
	m.startAgain(2)
	m.kill(m.control[0].server)
	m.startAgain(0)
	m.authorityUntil("the hosts that are there move by themselves", func(out string) bool {
		return m.othersMoved(out, late)
	})
	m.refused(late, "authority", "retire", "--end-clients", "--yes")
	m.startAgent(2)
	m.connected()
	m.authorityUntil("the last host moves", func(out string) bool { return strings.Contains(lineOf(out, "signs"), late) })
	m.refused("ann", "authority", "retire", "--yes")

	old := m.people.client
	stale := m.people.stead("token", "create", "--node", "nobody-yet")
	m.newClient("bea")
	if out := m.people.stead("authority", "retire", "--end-clients", "--yes"); !strings.Contains(out, "ends: the client file of ann") || !strings.Contains(out, "void: ") {
		t.Errorf("retire says %s", out)
	}
	m.connected()
	m.oldClientRefused(old)
	if out, err := m.people.trySteadFor(commandTime, "token", "ls"); err != nil || strings.Contains(out, strings.SplitN(stale, ".", 2)[0]) {
		t.Errorf("an unused token of before is still there: %v %s", err, out)
	}
	m.authorityUntil("the stores know the retired one until they are started again", func(out string) bool {
		return strings.Contains(lineOf(out, "retired"), "s0,s1,s2")
	})
	m.killEachServer()
	m.authorityUntil("no store knows the retired one", func(out string) bool { return lineOf(out, "retired") == "- - - -" })
	m.connected()
	m.assertHeld(was)

	t.Log("a server and a host are away through all")
	m.kill(m.control[2].server)
	m.kill(m.hosts[2].agent)
	m.people.stead("authority", "rotate", "--without", serverName(2))
	m.authorityUntil("the others move", func(out string) bool {
		return m.othersMoved(out, late)
	})
	old = m.people.client
	m.newClient("cleo")
	m.people.stead("authority", "retire", "--without-node", late, "--end-clients", "--yes")
	m.oldClientRefused(old)
	m.replaceRefused(2)
	m.hostIsToldToJoinAgain(2)
	m.killEachServer()
	m.connected()
	m.assertHeld(was)
	m.stillAll(lives)
	m.judge()
	stop()
}

// othersMoved: the first two hosts have certificates of the new authority, which signs, and late has not.
func (m *matrix) othersMoved(out, late string) bool {
	signs := lineOf(out, "signs")
	return strings.Contains(signs, m.hosts[0].nodeName()) && strings.Contains(signs, m.hosts[1].nodeName()) && strings.Contains(lineOf(out, "trusted"), late)
}

// lineOf is the line of the authority with this use; "": there is none.
func lineOf(out, use string) string {
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 1 && words[1] == use {
			return strings.Join(words[3:], " ") // without the id, the use, and the end
		}
	}
	return ""
}

// authorityUntil waits until 'authority ls' shows it.
func (m *matrix) authorityUntil(what string, so func(out string) bool) {
	m.Helper()
	m.people.eventually(3*time.Minute, what, func() error {
		out, err := m.people.trySteadFor(commandTime, "authority", "ls")
		if err != nil || !so(out) {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}

// refused fails the test unless a command is refused with these words.
func (m *matrix) refused(words string, args ...string) {
	m.Helper()
	if out, err := m.people.trySteadFor(commandTime, args...); err == nil || !strings.Contains(out, words) {
		m.Errorf("stead %q is not refused with %q: %v %s", args, words, err, out)
	}
}

// newClient has people work with a client file that is made now.
func (m *matrix) newClient(name string) {
	m.Helper()
	file := m.people.path(name + ".json")
	var all []string
	for i := range controls {
		all = append(all, apiAddress(i))
	}
	m.at(2).stead("client", "create", "--name", name, "-o", file, "--servers", strings.Join(all, ","))
	m.people.client = file
}

// oldClientRefused fails the test unless a client file of a retired authority is told what it is.
func (m *matrix) oldClientRefused(file string) {
	m.Helper()
	now := m.people.client
	m.people.client = file
	defer func() { m.people.client = now }()
	m.people.eventually(time.Minute, "a client file of the retired authority is refused", func() error {
		out, err := m.people.trySteadFor(commandTime, "get", "sets")
		if err == nil || !strings.Contains(out, "is of another certificate authority than the servers") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}

// hostIsToldToJoinAgain starts the agent of a host that was away while its authority was retired.
func (m *matrix) hostIsToldToJoinAgain(i int) {
	m.Helper()
	m.startAgent(i)
	h := m.hosts[i]
	h.eventually(time.Minute, "the agent says what to do", func() error {
		if said := h.agent.tail(20); !strings.Contains(said, "the servers' certificate authority is not this node's") {
			return errors.New(said)
		}
		return nil
	})
	m.kill(h.agent)
	m.joined = false
	m.startAgent(i)
	m.joined = true
	m.connected()
}
