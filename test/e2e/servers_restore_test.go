package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/test/judge"
)

// newServer is the first server after all were lost: another machine, at another address.
const newServer = controls

// dataSet is a set whose members have a volume, and a lock in it.
func dataSet(name string, replicas int) string {
	text := strings.NewReplacer("name: life}", "name: "+name+"}", "app: life}", "app: "+name+"}", "serviceName: life", "serviceName: "+name,
		"replicas: 3", fmt.Sprint("replicas: ", replicas)).Replace(lifeSet)
	return strings.Replace(text, "- name: life\n", "- name: "+name+"\n", 1)
}

// TestNewServersFromABackupWhileTheHostsRun: all servers and their disks are gone. New ones at other addresses are made of an encrypted
// backup, as docs/OPERATIONS.md says, line by line. After the backup a set was made, another deleted, a member moved with its volume, and
// a host joined. Nothing that runs notices, and etcd loses no acknowledged write. Members of which that host has a newer volume, or the only one, start
// with it when a person says so, and not before.
func TestNewServersFromABackupWhileTheHostsRun(t *testing.T) {
	t.Parallel()
	m := newOwnServersAs(t, 5, seeded(t), "", 1, "20s")
	late := len(m.hosts) - 1
	m.growServers()
	m.database("etcd", "stead.local/etcd:3.4.23")
	m.people.apply("moved", dataSet("moved", 1))
	m.people.apply("gone", dataSet("gone", 1))
	m.sets = append(m.sets, &folk{set: "moved", members: []string{"moved-0"}}, &folk{set: "gone", members: []string{"gone-0"}})
	m.settle()
	stop := m.hosts[0].startLoad("--endpoints", etcdEndpoints, "--pause", "20ms", "--writers", "1")
	m.lastNightsBackup()

	t.Log("after the backup")
	m.people.stead("delete", "sts", "gone", "--wait", "--timeout", patience)
	m.away = 0
	m.joined = false
	m.boot(late)
	m.joined = true
	m.connected()
	m.loadImages([]string{etcdArchive, m.hosts[0].toolArchive()})
	for _, h := range m.hosts[:late] {
		m.people.stead("node", "cordon", h.nodeName())
	}
	m.people.apply("fresh", dataSet("fresh", 1), "--wait", "--timeout", patience)
	m.people.stead("move", "moved-0", "--to", m.hosts[late].nodeName(), "--wait", "--timeout", patience)
	for _, h := range m.hosts[:late] {
		m.people.stead("node", "uncordon", h.nodeName())
	}
	m.sets = append(m.sets[:2], &folk{set: "fresh", members: []string{"fresh-0"}})
	m.settle()
	marks := map[string]string{}
	for _, set := range []string{"moved", "fresh"} {
		marks[set] = m.hosts[late].path("agent/volumes/default", set, "data-0/data/marked")
		if err := os.WriteFile(marks[set], []byte("after the backup"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was := m.begunAll()
	m.newServersFromBackup()

	t.Log("what was changed since the backup is applied again")
	m.people.waitReady("gone-0", nil) // it is in the backup
	m.people.stead("delete", "sts", "gone", "--wait", "--timeout", patience)
	m.people.apply("fresh", dataSet("fresh", 1))
	for _, name := range []string{"fresh", "moved"} {
		m.people.eventually(2*time.Minute, name+"-0 waits", func() error { return m.people.steadSays("that the store does not know", "explain", name) })
	}
	m.stillAll(was)
	m.judge()
	stop()

	t.Log("the host of the strays is rebooted, as the table of OPERATIONS says of Stray")
	end(t, m.hosts[late].agent)
	m.hosts[late].purge()
	m.boot(late)
	m.connected()
	node := m.hosts[late].nodeName()
	tool := m.hosts[0].toolArchive()
	m.people.eventually(2*time.Minute, "the image that was purged is there again", func() error { // its session of before may have counted as one
		out, err := m.people.trySteadFor(time.Minute, "image", "load", tool, "--node", node)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	for _, set := range []string{"moved", "fresh"} {
		m.people.eventually(2*time.Minute, set+"-0 waits for a person's word about its newer volume", func() error {
			return m.people.steadSays("stead volume restore data-"+set+"-0 --node "+node, "explain", set)
		})
	}
	if out := m.people.stead("volume", "ls"); strings.Count(out, "Unknown") != 2 {
		t.Errorf("the volumes are\n%s\nwant two that the store does not know", out)
	}
	for _, set := range []string{"moved", "fresh"} {
		m.people.stead("volume", "restore", "data-"+set+"-0", "--node", node, "--wait", "--timeout", patience)
		m.people.waitReady(set+"-0", nil)
		if host := m.hostOf(set + "-0"); host != late {
			judge.Broken(t, "%s-0 runs on host %d", set, host)
		}
		if text, err := os.ReadFile(marks[set]); err != nil || string(text) != "after the backup" {
			judge.Broken(t, "what was written to the volume of %s is %q, %v", set, text, err)
		}
	}
	if out := m.people.stead("volume", "ls"); strings.Contains(out, "Unknown") {
		t.Errorf("a volume is unknown still:\n%s", out)
	}
	m.judge()
}

// lastNightsBackup makes an encrypted backup, of which people have the key.
func (m *matrix) lastNightsBackup() {
	m.Helper()
	c := m.control[0]
	if err := os.WriteFile(m.people.path("backup.pub"), []byte(m.people.stead("backup", "keygen", m.people.path("stead-backup.key"))), 0o600); err != nil {
		m.Fatal(err)
	}
	m.kill(c.server)
	m.startOwn(0, "--backup-recipient", m.people.path("backup.pub"))
	m.quorate()
	c.stead("backup", "create", "--to", m.people.path("monday.backup"))
}

// newServersFromBackup loses all servers with their disks, and makes three others of the backup, line by line as docs/OPERATIONS.md says.
// No process of a member may end.
func (m *matrix) newServersFromBackup() {
	m.Helper()
	steps := told(m.T, "All servers are lost: new ones from a backup")
	if len(steps) != 5 {
		m.Fatalf("%d blocks; want the check and the store, the server, the agents, the restore, and more servers", len(steps))
	}
	was := m.begunAll()
	for i := range controls {
		m.kill(m.control[i].server)
		if err := os.RemoveAll(m.control[i].path("server")); err != nil {
			m.Fatal(err)
		}
	}

	m.Log("a new server is made of the backup")
	n := m.machine(fmt.Sprint("c", newServer), controlAddress(newServer))
	m.control, m.standing = append(m.control, n), []int{newServer}
	m.doSteps(n, steps[0])
	m.doSteps(n, steps[1])
	if out := n.stead("restore", "--status"); !strings.Contains(out, "HELD") {
		m.Errorf("the store is not held:\n%s", out)
	}
	m.people.client = m.people.path("anew.json")
	n.stead("client", "create", "--name", "ann", "-o", m.people.client, "--servers", apiAddress(newServer))
	m.servers = []string{apiAddress(newServer)}
	for i, h := range m.hosts {
		m.kill(h.agent)
		m.doSteps(h, steps[2])
		m.startAgent(i)
	}
	m.connected()
	m.stillAll(was)
	m.doSteps(n, steps[3])
	n.eventually(2*time.Minute, "the restore is complete", func() error {
		if st := n.restoring(); st.State != records.RestoreComplete || len(st.Nodes) != len(m.hosts) {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	m.stillAll(was)
	m.judge()

	m.Log("more servers join, one under a name of before")
	for i := newServer + 1; i < newServer+3; i++ {
		m.control = append(m.control, m.machine(fmt.Sprint("c", i), controlAddress(i)))
	}
	m.joinOwn(newServer+1, n.stead("token", "create", "--for-server", serverName(newServer+1)))
	m.doSteps(n, steps[4])
	m.standing = append(m.standing, 1)
	m.startOwn(1, "--join", apiAddress(newServer), "--token", strings.TrimSpace(m.token))
	m.quorate()
	if out := n.stead("server", "ls"); strings.Contains(out, "s2") {
		m.Errorf("a server that was removed is listed:\n%s", out)
	}
	m.stillAll(was)
}

// doSteps does what a block of docs/OPERATIONS.md says on a machine.
func (m *matrix) doSteps(l *Lab, block []string) {
	m.Helper()
	places := strings.NewReplacer("/var/lib/stead/server", l.path("server"), "monday.backup", m.people.path("monday.backup"), "stead-backup.key", m.people.path("stead-backup.key"),
		"10.0.0.4", controlAddress(newServer), "s4", serverName(newServer), "s3 ", "s2 ", "s2 ", "s1 ")
	for _, line := range block {
		m.Log("$ " + line)
		line, _, _ = strings.Cut(places.Replace(line), "#")
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "stead server --"):
			l.startServer(append(words[2:], "--session-ttl", m.ttl)...)
		case strings.HasPrefix(line, "stead restore"):
			m.Log(l.stead(words[1:]...))
		case words[0] == "stead":
			line, to, _ := strings.Cut(line, ">")
			out, err := l.inside(commandTime, steadBinary, append(strings.Fields(line)[1:], "--server", "unix://"+l.Socket)...)
			if err != nil {
				m.Fatalf("%s: %v\n%s", line, err, out)
			}
			if to != "" {
				m.token = out
			}
		case words[0] == "systemctl": // by the test
		default:
			l.run(words[0], words[1:]...)
		}
	}
}
