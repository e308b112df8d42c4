package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/test/judge"
)

// Three servers on an etcd of three members: it is saved and brought back as docs/OPERATIONS.md
// says, command by command, with etcd's own tool; members run on, and what was made after the
// backup is not made twice.
func TestRestoringAnExternalEtcdAsTheDocsSay(t *testing.T) {
	t.Parallel()
	m := newMatrix(t, 1, nil)
	h := m.hosts[0]
	steps, then := told(t, "An external etcd"), told(t, "The embedded store (`stead server`, `stead dev`)")
	if len(steps) != 2 || len(then) != 3 {
		t.Fatalf("%d and %d blocks; want how to save it and how to bring it back, and how to declare it", len(steps), len(then))
	}
	file := m.people.path("life.yaml")
	if err := os.WriteFile(file, []byte(movable), 0o600); err != nil {
		t.Fatal(err)
	}
	m.people.stead("apply", "-f", file, "--wait", "--timeout", patience)
	m.etcdTool(0, steps[0])
	m.people.stead("scale", "life", "--replicas", "3", "--wait", "--timeout", patience)
	pids := func() string { return fmt.Sprint(h.pidsOf("life-0"), h.pidsOf("life-1"), h.pidsOf("life-2")) }
	was := pids()
	runOn := func(when string) {
		t.Helper()
		if now := pids(); now != was {
			judge.Broken(t, "%s: processes changed from %s to %s", when, was, now)
		}
	}

	for _, c := range m.control {
		end(t, c.server)
	}
	for _, c := range m.control {
		end(t, c.store)
		if err := os.Rename(c.path("etcd"), c.path("etcd.before")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range m.control {
		m.etcdTool(i, steps[1])
	}
	for i := range m.control {
		m.startStore(i)
	}
	for i := range m.control {
		m.startServer(i)
	}
	if st := m.people.restoring(); st.State != records.RestoreHeld {
		t.Fatalf("the store that went back is not held: %+v", st)
	}
	runOn("held")
	m.people.follow(then[2])
	m.people.eventually(time.Minute, "the restore is complete", func() error {
		if st := m.people.restoring(); st.State != records.RestoreComplete {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	runOn("complete")
	m.people.stead("scale", "life", "--replicas", "3")
	m.people.eventually(time.Minute, "life-2 waits, for the life that was made after the backup is a stray", func() error {
		if out := m.people.stead("explain", "life"); !strings.Contains(out, "node "+h.nodeName()+" runs a life of it") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	runOn("at the end")
	m.people.assertOneLife(m.heard, "life-0", "life-1", "life-2")
}

// etcdTool does what a block of docs/OPERATIONS.md says on the machine of one member of etcd,
// with the name and addresses that it has here.
func (m *matrix) etcdTool(i int, block []string) {
	m.Helper()
	c, certs := m.control[i], m.control[0].certs.dir
	places := strings.NewReplacer(
		"/var/backups", m.control[0].Dir, "/var/lib/etcd-new", c.path("etcd"), "etcdutl ", "etcdctl ",
		"--cacert ca.pem", "--cacert "+certs+"/ca.pem", "--cert c.pem", "--cert "+certs+"/stead.pem", "--key k.pem", "--key "+certs+"/stead-key.pem",
		"--name etcd-a", fmt.Sprint("--name c", i), "--initial-advertise-peer-urls https://10.0.0.1", "--initial-advertise-peer-urls https://"+controlAddress(i),
		"etcd-a=", "c0=", "etcd-b=", "c1=", "etcd-c=", "c2=",
		"10.0.0.1", controlAddress(0), "10.0.0.2", controlAddress(1), "10.0.0.3", controlAddress(2))
	line := places.Replace(strings.ReplaceAll(strings.Join(block, "\n"), "\\\n", " "))
	words := strings.Fields(line)
	words[0] = filepath.Join(filepath.Dir(c.etcdBinary()), words[0])
	m.Log("$ " + line)
	if out, err := c.inside(hanging, words[0], words[1:]...); err != nil {
		m.Fatalf("%v: %s", err, out)
	}
}
