package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// controls is how many machines hold the control plane of a matrix: each a server and a
// member of the store.
const controls = 3

func controlAddress(i int) string { return fmt.Sprintf("172.31.9.%d", 11+i) }

// matrix is a cluster of some hosts and three servers with a store of three members, all
// by TLS, on one switch; people work from a machine of their own by a client file.
type matrix struct {
	*testing.T
	hosts   []*Lab
	control []*Lab
	people  *Lab
	sw      string // the switch
	heard   string // the file of the witnesses, one a host
	chance  *rand.Rand
	sets    []*folk

	edited   string   // the set that was updated last
	joined   bool     // the agents need no token any more
	ttl      string   // of sessions, with servers that have their own store
	token    string   // that a step of docs/OPERATIONS.md has made
	away     int      // hosts that have not joined yet: the last ones
	servers  []string // HOST:PORT
	standing []int    // servers with a store of their own
}

// newMatrix starts all of it and loads the images named, and that of the tool, onto every host.
func newMatrix(t *testing.T, hosts int, chance *rand.Rand, archives ...string) *matrix {
	t.Helper()
	m := &matrix{T: t, hosts: newHosts(t, hosts), chance: chance}
	m.sw = m.hosts[0].Name + "-sw"
	for i := range controls {
		m.control = append(m.control, m.machine(fmt.Sprint("c", i), controlAddress(i)))
		m.servers = append(m.servers, controlAddress(i)+":7443")
	}
	m.people = m.machine("p", "172.31.9.99")
	m.control[0].certs = newCerts(m.control[0])
	for i := range controls {
		m.startStore(i)
	}
	for i, c := range m.control {
		if i > 0 {
			m.shareKey(c)
		}
		m.startServer(i)
	}
	file := m.people.path("people.json")
	m.control[0].stead("client", "create", "--name", "ann", "-o", file, "--servers", strings.Join(m.servers, ","))
	m.people.client = file
	m.heard = m.hosts[0].path("witness.log")
	for i, h := range m.hosts {
		h.boot = h.path("boot-id")
		h.start("witness", toolBinary, "witness", "--file", m.heard)
		m.boot(i)
	}
	m.connected()
	m.joined = true
	m.loadImages(append(archives, m.hosts[0].toolArchive()))
	watchForTwo(m, m.hosts)
	return m
}

// loadImages loads them onto all hosts.
func (m *matrix) loadImages(archives []string) {
	m.Helper()
	var wg sync.WaitGroup
	for _, h := range m.hosts[:len(m.hosts)-m.away] {
		wg.Go(func() {
			for _, a := range archives {
				if out, err := m.people.trySteadFor(3*time.Minute, "image", "load", a, "--node", h.nodeName()); err != nil {
					m.Errorf("image load %s: %v %s", a, err, out)
				}
			}
		})
	}
	wg.Wait()
}

// machine is one without containerd, at a port of the switch.
func (m *matrix) machine(port, address string) *Lab {
	m.Helper()
	l := newPlace(m.T)
	l.plug(m.sw, port, address+"/24")
	return l
}

// startStore starts (again) a member of the store. The first start of all forms it, so
// nobody waits here.
func (m *matrix) startStore(i int) {
	m.Helper()
	c, at := m.control[i], m.control[0].certs.dir
	var all []string
	for n := range controls {
		all = append(all, fmt.Sprintf("c%d=https://%s:2380", n, controlAddress(n)))
	}
	client, peer := "https://"+controlAddress(i)+":2379", "https://"+controlAddress(i)+":2380"
	c.store = c.start("etcd", c.etcdBinary(), "--name", fmt.Sprint("c", i), "--data-dir", c.path("etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", strings.Join(all, ","),
		"--client-cert-auth", "--trusted-ca-file", at+"/ca.pem", "--cert-file", at+"/server.pem", "--key-file", at+"/server-key.pem",
		"--peer-client-cert-auth", "--peer-trusted-ca-file", at+"/ca.pem", "--peer-cert-file", at+"/server.pem", "--peer-key-file", at+"/server-key.pem",
		"--heartbeat-interval", "200", "--election-timeout", "2000", "--logger", "zap", "--log-level", "error")
}

// startServer starts (again) a server and waits until it answers.
func (m *matrix) startServer(i int) {
	m.Helper()
	c := m.control[i]
	if c.storeFlags == nil {
		var urls []string
		for n := range controls {
			urls = append(urls, "https://"+controlAddress(n)+":2379")
		}
		c.storeFlags = m.control[0].certs.flags("ca.pem", "stead")
		c.storeFlags[1] = strings.Join(urls, ",")
	}
	c.startServer("--name", fmt.Sprint("s", i), "--listen", m.servers[i], "--session-ttl", cmp.Or(m.ttl, "5s"))
}

// shareKey gives a machine the key of Secrets that the first server made.
func (m *matrix) shareKey(c *Lab) {
	m.Helper()
	key, err := os.ReadFile(m.control[0].path("server", "secret.key"))
	if err == nil {
		err = os.Mkdir(c.path("server"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(c.path("server", "secret.key"), key, 0o600)
	}
	if err != nil {
		m.Fatal(err)
	}
}

// leader is the machine whose server leads.
func (m *matrix) leader() (leader int) {
	m.Helper()
	m.people.eventually(2*time.Minute, "a server leads", func() error {
		out, err := m.people.trySteadFor(commandTime, "status")
		for leader = range m.control {
			if err == nil && strings.Contains(out, fmt.Sprint("leader s", leader)) {
				return nil
			}
		}
		return fmt.Errorf("%v: %s", err, out)
	})
	return leader
}

// boot gives a host a new boot id and starts what it runs by itself.
func (m *matrix) boot(i int) {
	m.Helper()
	h := m.hosts[i]
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x\n", i, time.Now().UnixNano()&0xffffffffffff)
	if err := os.WriteFile(h.boot, []byte(id), 0o600); err != nil {
		m.Fatal(err)
	}
	if !alive(h.containerdSocket()) {
		h.startContainerd()
	}
	m.startAgent(i)
}

// startAgent starts (again) a host's agent, and does not wait for its session.
func (m *matrix) startAgent(i int) {
	m.Helper()
	h := m.hosts[i]
	argv := append([]string{cmp.Or(h.program, steadBinary), "agent", "--join", strings.Join(m.servers, ",")}, h.agentFlags()...)
	if !m.joined {
		argv = append(argv, "--token", strings.TrimSpace(m.people.stead("token", "create", "--node", h.nodeName())))
	}
	h.agent = h.start("agent", argv...)
}

// connected waits until every host has a session.
func (m *matrix) connected() {
	m.Helper()
	m.people.eventually(3*time.Minute, "all nodes are connected", func() error {
		out, err := m.people.trySteadFor(commandTime, "get", "nodes")
		if err != nil || strings.Count(out, " Ready ") != len(m.hosts)-m.away {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}

// silent waits until a host has no session.
func (m *matrix) silent(i int) {
	m.Helper()
	m.people.eventually(3*time.Minute, "a node is silent", func() error {
		out, err := m.people.trySteadFor(commandTime, "get", "nodes")
		for line := range strings.Lines(out) {
			if err == nil && strings.HasPrefix(line, m.hosts[i].nodeName()+" ") && !strings.Contains(line, " Ready ") {
				return nil
			}
		}
		return fmt.Errorf("%v: %s", err, out)
	})
}

// member waits until a server tells of the member.
func (m *matrix) member(name string) (o member) {
	m.Helper()
	m.people.eventually(patient, name+" is told of", func() (err error) {
		o, err = m.people.member(name)
		return err
	})
	return o
}

// hostOf is the host that a member is assigned to.
func (m *matrix) hostOf(name string) (host int) {
	m.Helper()
	m.people.eventually(patient, name+" is on a host", func() error {
		node := m.member(name).Status.Node
		host = slices.IndexFunc(m.hosts, func(h *Lab) bool { return h.nodeName() == node })
		if host < 0 {
			return fmt.Errorf("it is on %q", node)
		}
		return nil
	})
	return host
}

// port takes a machine's port of the switch down or up: when down, nothing goes in or out.
func (m *matrix) port(port, state string) {
	m.Helper()
	m.people.run("ip", "-n", m.sw, "link", "set", port, state)
}
