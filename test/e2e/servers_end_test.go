package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
)

// TestTheStoreGoesToAnExternalEtcdAndBack: a server's own store is ended, an external etcd is made of its last backup, and the other way round,
// as docs/OPERATIONS.md says, under etcd with acknowledged writes: nothing that runs notices. The old store, started again, changes nothing.
func TestTheStoreGoesToAnExternalEtcdAndBack(t *testing.T) {
	t.Parallel()
	steps := told(t, "From the embedded etcd to an external one, and back")
	if len(steps) != 1 || steps[0][0] != "stead server end --to /root/last.db" {
		t.Fatalf("%q; want how to end the store", steps)
	}
	m := newOwnServersAs(t, 3, seeded(t), "", 0, "20s")
	c := m.control[0]
	m.database("etcd", "stead.local/etcd:3.4.23")
	m.settle()
	stop := m.hosts[0].startLoad("--endpoints", etcdEndpoints, "--pause", "20ms", "--writers", "1")
	was := m.held()
	processes := m.begunAll()

	file := c.path("last.db")
	c.stead("server", "end", "--to", file, "--yes")
	m.endedHere(c)
	m.stillAll(processes)
	m.kill(c.server)
	m.startOwn(0)
	m.connected()
	m.endedHere(c) // also by a server that was started again
	m.kill(c.server)
	m.movesAside(c.path("server", "etcd"))

	t.Log("the external etcd")
	c.certs = newCerts(c)
	c.inEtcd("snapshot", "restore", file, "--data-dir", c.path("etcd"), "--name", "external", "--initial-cluster", "external=http://127.0.0.1:2380",
		"--initial-advertise-peer-urls", "http://127.0.0.1:2380", "--initial-cluster-token", "after-the-move")
	c.startStore()
	start := func() {
		c.startServer("--name", serverName(0), "--listen", apiAddress(0), "--session-ttl", m.ttl)
	}
	start()
	m.continues(c)
	m.assertHeld(was)
	m.stillAll(processes)
	m.people.stead("scale", "etcd", "--replicas", "3")

	t.Log("and back")
	back := c.path("back.db")
	c.stead("server", "end", "--to", back, "--yes")
	m.kill(c.server)
	m.kill(c.store)
	c.store = nil
	c.ownStore()
	if out, err := c.inside(commandTime, steadBinary, "backup", "unpack", back, "--data-dir", c.path("server")); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	m.startOwn(0)
	m.continues(c)
	m.assertHeld(was)
	m.stillAll(processes)

	t.Log("the old store is started, and the nodes' servers with it")
	m.kill(c.server)
	m.movesAside(c.path("server", "etcd"))
	if err := os.Rename(c.path("server", "etcd.aside"), c.path("server", "etcd")); err != nil {
		t.Fatal(err)
	}
	m.startOwn(0)
	m.connected()
	m.endedHere(c)
	m.stillAll(processes)
	m.kill(c.server)
	if err := os.RemoveAll(c.path("server", "etcd")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(c.path("server", "etcd.aside.2"), c.path("server", "etcd")); err != nil {
		t.Fatal(err)
	}
	m.startOwn(0)
	m.connected()
	m.assertHeld(was)
	m.growServers() // from one to three
	m.shrinkServers()
	m.connected()
	m.assertHeld(was)
	m.settle()
	m.stillAll(processes)
	stop()
}

// movesAside keeps a directory beside itself.
func (m *matrix) movesAside(dir string) {
	m.Helper()
	to := dir + ".aside"
	if _, err := os.Lstat(to); err == nil {
		to += ".2"
	}
	if err := os.Rename(dir, to); err != nil {
		m.Fatal(err)
	}
}

// endedHere fails the test unless nothing can be changed in the store, nor by a restore.
func (m *matrix) endedHere(l *Lab) {
	m.Helper()
	for _, words := range [][]string{{"scale", "etcd", "--replicas", "4"}, {"restore", "--yes"}} {
		l.eventually(time.Minute, "it is refused", func() error {
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

// continues declares the store of the last backup.
func (m *matrix) continues(l *Lab) {
	m.Helper()
	if st := l.restoring(); st.State != records.RestoreHeld || !st.Ended {
		m.Errorf("the new store is %+v", st)
	}
	m.connected()
	l.stead("restore", "--yes")
	l.eventually(2*time.Minute, "the restore is complete", func() error {
		if st := l.restoring(); st.State != records.RestoreComplete {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	m.connected()
}

// inEtcd runs etcd's own tool.
func (l *Lab) inEtcd(args ...string) {
	l.t.Helper()
	if out, err := l.inside(hanging, "env", append([]string{"ETCDCTL_API=3", strings.TrimSuffix(l.etcdBinary(), "etcd") + "etcdctl"}, args...)...); err != nil {
		l.t.Fatalf("etcdctl %q: %v %s", args, err, out)
	}
}
