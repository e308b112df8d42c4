package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/stead-project/stead/agent/runtime/runtimetest"
)

const (
	etcdArchive      = "../../.cache/images/etcd.tar"
	zookeeperArchive = "../../.cache/images/zookeeper.tar"
	server           = "10.77.0.11:7443"
	witnessAddress   = "10.78.0.1:7777" // by the network that is never cut
)

// install makes a cluster of the hosts as docs/OPERATIONS.md says, and loads the images named.
func (h *hosts) install(archives ...string) {
	h.Helper()
	h.deb = h.pack(version)
	h.each(h.installStead)
	// `enable --now` returns when the server answers: the units are Type=notify.
	h.ssh(1, "echo STEAD_SERVER_OPTIONS=--listen "+server+" > /etc/default/stead && "+
		"echo STEAD_AGENT_OPTIONS=--address "+address(1)+" >> /etc/default/stead && "+
		"systemctl enable -q --now stead-server && stead status && systemctl enable -q --now stead-agent && "+
		"stead client create --name ann -o /root/ann.json")
	h.people = filepath.Join(h.dir, "ann.json")
	if err := os.WriteFile(h.people, []byte(h.ssh(1, "cat /root/ann.json")), 0o600); err != nil {
		h.Fatal(err)
	}
	for i := 2; i <= h.n; i++ {
		h.join(i)
	}
	h.connected()
	h.startWitness()
	archives = append(archives, h.toolArchive())
	for i := 1; i <= h.n; i++ {
		h.loadImages(i, archives...)
	}
}

// startWitness has lives heard from now on.
func (h *hosts) startWitness() {
	h.Helper()
	h.heard = filepath.Join(h.dir, "witness.log")
	h.start(h.tool, "witness", "--datagrams", "--listen", witnessAddress, "--file", h.heard)
}

// toolArchive is the image of the test tool.
func (h *hosts) toolArchive() string {
	h.Helper()
	archive := filepath.Join(h.dir, "tool.tar")
	program, err := os.ReadFile(h.tool)
	if err == nil {
		err = os.WriteFile(archive, runtimetest.Archive(h, "stead.local/tool:1", program, runtimetest.ImageConfig{}), 0o600)
	}
	if err != nil {
		h.Fatal(err)
	}
	return archive
}

// loadImages loads them on a host. One with a single processor may be silent for a while when it has much to unpack.
func (h *hosts) loadImages(i int, archives ...string) {
	h.Helper()
	for _, a := range archives {
		h.eventually("image load "+a+" on "+host(i), func() error {
			out, err := h.tryStead("image", "load", a, "--node", host(i))
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
}

// The versions of the packages: what is installed, and what the runbook's upgrade has.
const version, newer = "0.0.0~lab1", "0.0.0~lab2"

// pack makes a Debian package of the program under test.
func (h *hosts) pack(version string) (deb string) {
	h.Helper()
	dir := filepath.Join(h.dir, "deb-"+version)
	args := []string{"-C", "../..", "go", "run", "./scripts/release", "-program", "bin/stead", "-gzip", "-version", version, "-to", dir}
	if out, err := h.try(hanging, "env", args...); err != nil {
		h.Fatalf("make the package: %v\n%s", err, out)
	}
	return filepath.Join(dir, "stead_"+version+"_"+runtime.GOARCH+".deb")
}

// installStead installs the package on a host.
func (h *hosts) installStead(i int) {
	if out, err := h.try(hanging, script, "put", fmt.Sprint(i), h.deb, "/tmp/"); err != nil {
		h.Errorf("copy to %s: %v %s", host(i), err, out)
	}
	if out, err := h.trySSH(i, "apt-get install -y /tmp/"+filepath.Base(h.deb)); err != nil {
		h.Errorf("install on %s: %v %s", host(i), err, out)
	}
}

// join starts the agent of a host that is not the server's.
func (h *hosts) join(i int) {
	h.Helper()
	token := strings.TrimSpace(h.stead("token", "create", "--node", host(i)))
	h.ssh(i, "umask 077 && echo "+token+" > /root/token && echo STEAD_AGENT_OPTIONS=--address "+address(i)+
		" --join "+server+" --token-file /root/token > /etc/default/stead && systemctl enable -q --now stead-agent")
}

// connected waits until every host has a session.
func (h *hosts) connected() {
	h.Helper()
	var all []int
	for i := 1; i <= h.n; i++ {
		all = append(all, i)
	}
	h.eventually("all nodes are connected", func() error { return h.hasSession(all...) })
}

func (h *hosts) hasSession(which ...int) error {
	out, err := h.tryStead("get", "nodes")
	for _, i := range which {
		if err == nil && !strings.Contains(lineWith(out, host(i)+" "), " Ready") {
			err = fmt.Errorf("%s has no session", host(i))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// member is what tests read of a member.
type member struct {
	Name     string `json:"name"`
	Token    string `json:"token"`
	Ready    bool   `json:"ready"`
	Address  string `json:"address"`
	Restarts int    `json:"restarts"`
	Node     string `json:"node"`
	Phase    string `json:"phase"`
}

func (h *hosts) tryMember(name string) (member, error) {
	var o struct{ Status member }
	out, err := h.tryStead("get", "member", name, "-o", "json")
	if err != nil {
		return o.Status, fmt.Errorf("%w: %s", err, out)
	}
	return o.Status, json.Unmarshal([]byte(out), &o)
}

// tryMembers are all members of the default namespace by one question, each of which takes seconds on a busy machine.
func (h *hosts) tryMembers() (map[string]member, error) {
	var list struct{ Items []struct{ Status member } }
	out, err := h.tryStead("get", "members", "-o", "json")
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	all := map[string]member{}
	for _, m := range list.Items {
		all[m.Status.Name] = m.Status
	}
	return all, nil
}

// known waits until a server tells of these members.
func (h *hosts) known(names ...string) (all map[string]member) {
	h.Helper()
	h.eventually("members are known", func() (err error) {
		if all, err = h.tryMembers(); err != nil {
			return err
		}
		for _, name := range names {
			if _, known := all[name]; !known {
				return fmt.Errorf("%s is not", name)
			}
		}
		return nil
	})
	return all
}

// member waits until a server tells of the member.
func (h *hosts) member(name string) (m member) {
	h.Helper()
	h.eventually(name+" is known", func() (err error) {
		m, err = h.tryMember(name)
		return err
	})
	return m
}

// ready waits until the member is ready, in another life than those named.
func (h *hosts) ready(name string, not ...member) (m member) {
	h.Helper()
	h.eventually(name+" is ready", func() (err error) {
		m, err = h.tryMember(name)
		for _, old := range not {
			if err == nil && m.Token == old.Token {
				err = fmt.Errorf("it is the life of before: %+v", m)
			}
		}
		if err == nil && !m.Ready {
			err = fmt.Errorf("%+v", m)
		}
		return err
	})
	return m
}

// hostOf is the number of the host that a member is on.
func (h *hosts) hostOf(m member) (i int) {
	h.Helper()
	if _, err := fmt.Sscanf(m.Node, "host%d", &i); err != nil {
		h.Fatalf("%+v is on no host: %v", m, err)
	}
	return i
}
