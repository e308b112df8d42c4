package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/records"
)

// TestTheStoreGoesToAnExternalEtcdAndBack: the store of three servers is ended, an external etcd of three members is made of its last backup, and
// the other way round, as docs/OPERATIONS.md says, under etcd with acknowledged writes: nothing that runs notices. Each time the store is first
// ended by mistake, and goes on where it is. The old store, started again, changes nothing.
func TestTheStoreGoesToAnExternalEtcdAndBack(t *testing.T) {
	t.Parallel()
	steps, members := told(t, "From the embedded etcd to an external one, and back"), told(t, "An external etcd")
	if len(steps) != 1 || steps[0][0] != "stead server end --to /root/last.db" || len(members) != 2 {
		t.Fatalf("%q, %q; want how to end the store, and how an external etcd is made of a file", steps, members)
	}
	m := newOwnServersAs(t, 3, seeded(t), "", 0, "20s")
	c := m.control[0]
	m.growServers()
	m.database("etcd", "stead.local/etcd:3.4.23")
	m.settle()
	stop := m.hosts[0].startLoad("--endpoints", etcdEndpoints, "--pause", "20ms", "--writers", "1")
	was := m.held()
	processes := m.begunAll()
	still := func() {
		t.Helper()
		m.assertHeld(was)
		m.stillAll(processes)
	}

	c.stead("server", "end", "--to", c.path("too-early.db"), "--yes")
	m.endedHere(m.control...)
	m.stillAll(processes)
	m.killServers()
	m.startOwnAll()
	m.endedHere(m.control...) // also by servers that were started again
	t.Log("it was a mistake")
	m.goesOn(c, "--ended")
	m.quorate()
	still()

	const file = "etcd-monday.db"
	m.control[2].stead("server", "end", "--to", c.path(file), "--yes")
	m.killServers()
	t.Log("the external etcd")
	c.certs = newCerts(c)
	for i, own := range m.control {
		m.movesAside(own.path("server", "etcd"))
		m.etcdTool(i, members[1])
	}
	m.servers = nil
	for i := range m.control {
		m.servers = append(m.servers, apiAddress(i))
		m.startStore(i)
	}
	for i := range m.control {
		m.startServer(i)
	}
	m.continues(m.control[1])
	still()
	m.people.stead("scale", "etcd", "--replicas", "3")
	m.control[1].stead("server", "end", "--to", m.control[1].path("too-early.db"), "--yes")
	m.endedHere(m.control...)
	m.goesOn(m.control[2], "--ended")
	still()

	t.Log("and back")
	back := c.path("back.db")
	c.stead("server", "end", "--to", back, "--yes")
	m.killServers()
	for i, own := range m.control {
		m.kill(own.store)
		own.store = nil
		own.ownStore()
		if i > 0 { // it joins, with an empty directory
			m.movesAside(own.path("server"))
		}
	}
	if out, err := c.inside(commandTime, steadBinary, "backup", "unpack", back, "--data-dir", c.path("server")); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	m.standing = []int{0}
	m.startOwn(0)
	m.continues(c)
	for i := 1; i < controls; i++ {
		m.joinOwn(i, c.stead("server", "replace", serverName(i), "--yes"))
	}
	m.quorate()
	still()

	t.Log("the servers' old store is started")
	m.killServers()
	for i := 1; i < controls; i++ { // where it was moved away before the whole directory was
		old := m.control[i].path("server.aside", "etcd")
		if err := os.Rename(old+".aside", old); err != nil {
			t.Fatal(err)
		}
	}
	swap := func() {
		m.swapAside(c.path("server", "etcd"))
		for _, other := range m.control[1:] {
			m.swapAside(other.path("server"))
		}
	}
	swap()
	m.startOwnAll()
	m.endedHere(m.control...)
	m.stillAll(processes)
	m.killServers()
	swap()
	m.startOwnAll()
	m.quorate()
	m.assertHeld(was)
	m.settle()
	m.stillAll(processes)
	stop()
}

// killServers ends all servers at once.
func (m *matrix) killServers() {
	m.Helper()
	for _, c := range m.control {
		m.kill(c.server)
	}
}

// startOwnAll starts (again) all servers with a member of the store, and waits until nodes are connected.
func (m *matrix) startOwnAll() {
	m.Helper()
	for _, i := range m.standing {
		m.startOwnLater(i)
	}
	m.connected()
}

// movesAside keeps a directory beside itself.
func (m *matrix) movesAside(dir string) {
	m.Helper()
	if err := os.Rename(dir, dir+".aside"); err != nil {
		m.Fatal(err)
	}
}

// swapAside puts what was moved aside in its place, and what is there aside.
func (m *matrix) swapAside(dir string) {
	m.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, dir+".aside", unix.RENAME_EXCHANGE); err != nil {
		m.Fatal(err)
	}
}

// endedHere fails the test unless nothing can be changed in the store by any of its servers, nor by a restore.
func (m *matrix) endedHere(servers ...*Lab) {
	m.Helper()
	for _, l := range servers {
		for _, words := range [][]string{{"scale", "etcd", "--replicas", "4"}, {"restore", "--yes"}} {
			l.eventually(2*time.Minute, "it is refused", func() error {
				out, err := l.trySteadFor(commandTime, words...)
				if err == nil {
					m.Fatalf("%q of a store that was ended: %s", words, out)
				}
				if !strings.Contains(out, "it continues in another") {
					return fmt.Errorf("%v: %s", err, out)
				}
				return nil
			})
		}
	}
}

// continues declares the store that was made of the last backup of one that was ended.
func (m *matrix) continues(l *Lab) {
	m.Helper()
	if st := l.restoring(); st.State != records.RestoreHeld || !st.Ended {
		m.Errorf("the new store is %+v", st)
	}
	m.connected()
	m.goesOn(l)
}

// goesOn declares a store, and waits until all nodes have said what they run.
func (m *matrix) goesOn(l *Lab, flags ...string) {
	m.Helper()
	l.stead(append([]string{"restore", "--yes"}, flags...)...)
	l.eventually(2*time.Minute, "the restore is complete", func() error {
		if st := l.restoring(); st.State != records.RestoreComplete {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	m.connected()
}
