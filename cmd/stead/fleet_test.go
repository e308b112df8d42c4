package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
)

// fleet is a cluster of three hosts: host-a, with the server, and host-b and host-c, which joined by token. What befalls
// a whole host befalls host-b or host-c.
type fleet struct {
	*cluster
	hosts map[spec.NodeName]*fakert.Host
	boots map[spec.NodeName]spec.BootID
	stop  map[spec.NodeName]func() error
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	c := newCluster(t, nil, reachable, func(c *server.Config) { c.SessionTTL = 2 * time.Second })
	f := &fleet{cluster: c, hosts: map[spec.NodeName]*fakert.Host{}, boots: map[spec.NodeName]spec.BootID{}, stop: map[spec.NodeName]func() error{}}
	for _, name := range []spec.NodeName{"host-b", "host-c"} {
		f.join(name, f.must("token", "create"))
	}
	return f
}

// join starts the agent of a new machine by a join token, and waits for its session.
func (f *fleet) join(name spec.NodeName, token string) {
	f.t.Helper()
	f.hosts[name], f.boots[name] = fakert.New(), "boot-1"
	f.start(name, token)
}

func (f *fleet) start(name spec.NodeName, token string) {
	f.t.Helper()
	f.stop[name] = f.elsewhereOn(f.hosts[name], f.boots[name], name, hostOptions{Join: f.server.Addresses(), Token: token})
	f.until(string(name)+" is there", f.nodeIs(string(name), "Ready"))
}

// off is a power loss, and waits until the servers notice.
func (f *fleet) off(name spec.NodeName) {
	f.t.Helper()
	if err := f.stop[name](); err != nil {
		f.t.Error(err)
	}
	f.hosts[name].Reboot()
	ready := f.nodeIs(string(name), "Ready")
	f.until(string(name)+" is silent", func() bool { return !ready() })
}

// on is power that comes back: the agent starts by itself, in another boot.
func (f *fleet) on(name spec.NodeName) {
	f.t.Helper()
	f.boots[name] += "1"
	f.start(name, "")
}

// wipe takes the disks of a host that is off.
func (f *fleet) wipe(name spec.NodeName) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.dir, string(name))); err != nil {
		f.t.Fatal(err)
	}
}

// nodeOf is the host of a member.
func (f *fleet) nodeOf(member string) string {
	f.t.Helper()
	return f.must("get", "member", member, "-o", "jsonpath={.status.node}")
}

// db makes three members with volumes, db-N on host a, b, c.
func (f *fleet) db() {
	f.t.Helper()
	f.must("apply", "-f", "testdata/db.yaml", "--wait", "--timeout", "2m")
	for member, host := range map[string]string{"db-0": "host-a", "db-1": "host-b", "db-2": "host-c"} {
		if at := f.nodeOf(member); at != host {
			f.t.Fatalf("%s is on %s; want %s", member, at, host)
		}
	}
}

// Its name is not enough, and neither is a token for that name: what the old machine had must be given up first, each
// by a person's word. Then the new one is another node of the same name (SAFETY S9).
func TestAReinstalledHostTakesItsOldNameOnlyWithProof(t *testing.T) {
	f := newFleet(t)
	f.db()
	token := f.must("token", "create", "--node", "host-b")
	refused := func() {
		t.Helper()
		f.barred("'stead node remove host-b' frees the name", "host-b", hostOptions{Join: f.server.Addresses(), Token: token})
	}
	refused() // while the old one runs
	f.refused("it is on", "node", "remove", "host-b")
	f.off("host-b")
	f.wipe("host-b")
	refused()
	const fenced = "stead node fence host-b --i-have-powered-off"
	f.refused(fenced, "node", "remove", "host-b")
	f.refused(fenced, "volume", "reclaim", "data-db-1", "--lost", "--yes")
	if said := f.must("node", "fence", "host-b", "--i-have-powered-off"); !strings.Contains(said, "stead volume reclaim VOLUME --lost") {
		t.Errorf("fence: %s", said)
	}
	refused()
	f.until("what is left is its volume", func() bool {
		_, said := f.stead("node", "remove", "host-b")
		return strings.Contains(said, "stead volume reclaim data-db-1 -n default --lost")
	})
	f.must("volume", "reclaim", "data-db-1", "-n", "default", "--lost", "--yes")
	f.until("nothing of it is left", func() bool {
		code, _ := f.stead("node", "remove", "host-b")
		return code == exitDone
	})
	f.join("host-b", token) // which no refusal has used up
	f.must("wait", "db", "--timeout", "2m")
	if all := f.must("volume", "ls"); strings.Count(all, "Keep") != 3 || !strings.Contains(all, "data-db-1") {
		t.Errorf("volumes\n%s", all)
	}
}
