package examples

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stead-project/stead/records"
)

// fakeJava stands for ZooKeeper, which ends at once with code 7, and for its
// command line, which writes down what it is told.
const fakeJava = `#!/bin/bash
case "$*" in
*ZooKeeperMain*) grep reconfig >> "$FAKE/calls" ;;
*) cp "$DATA/zookeeper/zoo.cfg" "$FAKE/started"; sleep 0.1; exit 7 ;;
esac
`

// leader answers four-letter words at an address of its own on the loopback, as the
// leader of an ensemble with these servers would.
func leader(t *testing.T, servers string) (address string) {
	t.Helper()
	address = fmt.Sprintf("127.77.%d.%d", os.Getpid()>>8&255, os.Getpid()&255|1)
	lis, err := net.Listen("tcp", address+":2181")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			word := make([]byte, 4)
			if _, err := io.ReadFull(conn, word); err == nil {
				fmt.Fprint(conn, map[string]string{"srvr": "Mode: leader\n", "conf": "clientPort=2181\nmembership: \n" + servers}[string(word)])
			}
			_ = conn.Close() // the asker is told all
		}
	})
	t.Cleanup(func() {
		_ = lis.Close() // ends the loop
		wg.Wait()
	})
	return address
}

// Member zookeeper-1 starts; who answers is the leader of an ensemble, or nobody.
func TestZooKeeperEntersTheEnsembleAsTheFactsAllow(t *testing.T) {
	const (
		others = "server.1=zookeeper-0.zookeeper.d:2888:3888:participant;0.0.0.0:2181\nserver.3=zookeeper-2.zookeeper.d:2888:3888:participant;0.0.0.0:2181\n"
		mine   = "server.2=zookeeper-1.zookeeper.d:2888:3888:participant;0.0.0.0:2181\n"
		formed = "server.1=zookeeper-0.zookeeper.d:2888:3888:participant;2181\nserver.2=zookeeper-1.zookeeper.d:2888:3888:participant;2181\nserver.3=zookeeper-2.zookeeper.d:2888:3888:participant;2181\n"
	)
	data := map[string]string{"disk/zookeeper/version-2/snapshot.0": "x", "disk/zookeeper/zoo.cfg": "dynamicConfigFile=/data/zookeeper/zoo.cfg.dynamic.5\n"}
	with := func(maps ...map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range maps {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	first := map[string]string{"facts/volume-new": "data first\n"}
	replaced := map[string]string{"facts/volume-new": "data replaced\n"}
	bootstrapped := map[string]string{"facts/bootstrapped": "1\n"}
	used := func(p *records.Snapshot) { p.Peers[0].Volumes = records.VolumesUsed }
	from := func(p *records.Snapshot) { p.Replicas, p.InitialOrdinals, p.Peers = 2, []int{1, 2}, nil }
	resigned := map[string]string{"disk/zookeeper/resigned": ""}
	cases := []struct {
		name    string
		set     func(p *records.Snapshot) // the facts about the set, where they are others than those of three members without data
		files   map[string]string
		servers string // of the leader's configuration; "": nobody answers
		code    int
		says    string
		dynamic string // what ZooKeeper was started with; "": not looked at
		calls   string
	}{
		{"a first start forms the ensemble", nil, first, "", 7, "forming the cluster of members 0 1 2", formed, ""},
		{"the set may begin with any ordinals", from, first, "", 7, "forming the cluster of members 1 2",
			"server.2=zookeeper-1.zookeeper.d:2888:3888:participant;2181\nserver.3=zookeeper-2.zookeeper.d:2888:3888:participant;2181\n", ""},
		{"nobody forms an ensemble when a peer's disk was used", used, first, "", 75, "cannot join: no leader answers", "", ""},
		{"nor with a replaced disk", used, replaced, "", 75, "cannot join: no leader answers", "", ""},
		{"an empty disk that was used before does not", nil, nil, "", 75, "was used before and is empty now", "", ""},
		{"nor does one where an ensemble was", nil, with(first, bootstrapped), "", 75, "cannot join: no leader answers", "", ""},
		{"a new member joins without a vote", nil, with(first, bootstrapped), others, 7, "joining as server 2",
			others + "server.2=zookeeper-1.zookeeper.d:2888:3888:observer;2181\n", ""},
		{"a wiped disk whose loss nobody confirmed keeps away", nil, bootstrapped, others + mine, 75, "reconfig -remove 2", "", ""},
		{"a replaced disk first gives back its vote", nil, with(replaced, bootstrapped), others + mine, 75,
			"the vote could not be given back", "", "reconfig -remove 2\n"}, // this leader never does it
		{"a restart goes on from its disk", nil, with(data, bootstrapped), "", 7, "", "", ""},
		{"who resigned joins anew", nil, with(data, bootstrapped, first, resigned), others, 7, "joining again", "", ""},
		{"a wish to resign that was not granted is forgotten", nil, with(data, bootstrapped, resigned), others + mine, 7, "", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newZooKeeperHome(t, c.servers, c.set)
			for name, content := range c.files {
				h.put(name, content)
			}
			_, wait := h.start()
			wait()
			if h.code != c.code || !strings.Contains(h.read("log"), c.says) {
				t.Errorf("code %d, want %d and %q in\n%s", h.code, c.code, c.says, h.read("log"))
			}
			if started := h.has("started"); started != (c.code == 7) {
				t.Errorf("ZooKeeper was started: %v", started)
			}
			if got := h.read("disk/zookeeper/zoo.cfg.dynamic"); c.dynamic != "" && strings.ReplaceAll(got, "\n\n", "\n") != c.dynamic {
				t.Errorf("the configuration is\n%swant\n%s", got, c.dynamic)
			}
			if got := h.read("calls"); !strings.HasPrefix(got, c.calls) || c.calls == "" && strings.Contains(got, "-remove") {
				t.Errorf("calls %q, want %q", got, c.calls)
			}
			if h.has("disk/zookeeper/resigned") {
				t.Error("the mark of one who resigned stays")
			}
		})
	}
	t.Run("a restart keeps ZooKeeper's own newest configuration", func(t *testing.T) {
		h := newZooKeeperHome(t, "", nil)
		for name, content := range with(data, bootstrapped) {
			h.put(name, content)
		}
		_, wait := h.start()
		wait()
		if got := h.read("started"); !strings.Contains(got, "\ndynamicConfigFile=/data/zookeeper/zoo.cfg.dynamic.5\n") {
			t.Errorf("started with\n%s", got)
		}
	})
}

// newZooKeeperHome is the world of member zookeeper-1.
func newZooKeeperHome(t *testing.T, servers string, change func(p *records.Snapshot)) *home {
	t.Helper()
	h := newHome(t, "zookeeper", 1)
	h.put("java", fakeJava)
	h.put("super/password", "secret")
	p := records.Snapshot{Replicas: 3, InitialOrdinals: []int{0, 1, 2}, Peers: []records.Peer{h.peer(0)}}
	p.Peers[0].FQDN = "127.77.0.0" // nobody
	if servers != "" {
		p.Peers[0].FQDN = leader(t, servers)
	}
	if change != nil {
		change(&p)
	}
	h.set(p)
	h.env = append(h.env, "SUPER="+h.dir+"/super", "JAVA="+filepath.Join(h.dir, "java"))
	return h
}
