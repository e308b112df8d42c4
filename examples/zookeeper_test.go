package examples

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stead-project/stead/records"
)

// fakeJava stands for ZooKeeper, which ends at once with code 7, and for its
// command line, which writes down what it is told, and changes the ensemble if it obeys.
const fakeJava = `#!/bin/bash
case "$*" in
*ZooKeeperMain*)
  read -r _ verb what <<<"$(grep reconfig | tee -a "$FAKE/calls")"
  [ -e "$FAKE/obeys" ] || exit 0
  sed -i "/^server\\.${what%%=*}=/d" "$FAKE/servers"
  [ "$verb" != -add ] || echo "$what" >> "$FAKE/servers" ;;
*) cp "$DATA/zookeeper/zoo.cfg" "$FAKE/started"; sleep 0.1; exit 7 ;;
esac
`

// leader answers four-letter words at an address of its own on the loopback, as the
// leader of an ensemble with the servers in the home's file would.
func (h *home) leader() (address string) {
	t := h.t
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
				fmt.Fprint(conn, map[string]string{"srvr": "Mode: leader\n", "conf": "clientPort=2181\nmembership: \n" + h.read("servers")}[string(word)])
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

// What the leader tells of the ensemble.
const (
	otherServers = "server.1=zookeeper-0.zookeeper.d:2888:3888:participant;0.0.0.0:2181\nserver.3=zookeeper-2.zookeeper.d:2888:3888:participant;0.0.0.0:2181\n"
	myServer     = "server.2=zookeeper-1.zookeeper.d:2888:3888:participant;0.0.0.0:2181\n"
)

// Member zookeeper-1 starts; who answers is the leader of an ensemble, or nobody.
func TestZooKeeperEntersTheEnsembleAsTheFactsAllow(t *testing.T) {
	const (
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
		{"a new member joins without a vote", nil, with(first, bootstrapped), otherServers, 7, "joining as server 2",
			otherServers + "server.2=zookeeper-1.zookeeper.d:2888:3888:observer;2181\n", ""},
		{"a wiped disk whose loss nobody confirmed keeps away", nil, bootstrapped, otherServers + myServer, 75, "reconfig -remove 2", "", ""},
		{"a replaced disk first gives back its vote", nil, with(replaced, bootstrapped), otherServers + myServer, 75,
			"the vote could not be given back", "", "reconfig -remove 2\n"}, // this leader never does it
		{"a restart goes on from its disk", nil, with(data, bootstrapped), "", 7, "", "", ""},
		{"who resigned joins anew", nil, with(data, bootstrapped, first, resigned), otherServers, 7, "joining again", "", ""},
		{"a wish to resign that was not granted is forgotten", nil, with(data, bootstrapped, resigned), otherServers + myServer, 7, "", "", ""},
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
		h.put("servers", servers)
		p.Peers[0].FQDN = h.leader()
	}
	if change != nil {
		change(&p)
	}
	h.set(p)
	h.env = append(h.env, "SUPER="+h.dir+"/super", "JAVA="+filepath.Join(h.dir, "java"))
	return h
}

// Member zookeeper-1 is to leave, or is wanted again, or zookeeper-2 has left.
func TestAMemberOfZooKeeperGivesItsVoteBackWhileItRuns(t *testing.T) {
	const resigned = "disk/zookeeper/resigned"
	marked := map[string]string{resigned: "", "obeys": ""}
	for _, c := range []struct {
		name, hook, servers string
		files               map[string]string
		code                int
		says, calls         string
		mark                bool // that it resigned, afterwards
	}{
		{"it gives its vote back", "decommission", otherServers + myServer, map[string]string{"obeys": ""}, 0, "", "reconfig -remove 2\n", true},
		{"it insists", "decommission", otherServers + myServer, nil, 1, "the ensemble still counts server 2", "reconfig -remove 2\n", true},
		{"once is enough", "decommission", otherServers, marked, 0, "", "", true},
		{"not while a vote is being given to it", "decommission", otherServers + myServer, map[string]string{"disk/zookeeper/settling": "", "obeys": ""}, 1, "still counts server 2", "", true},
		{"it does not leave without a leader", "decommission", "", map[string]string{"obeys": ""}, 1, "still counts server 2", "", true},
		{"it stays with its vote, also after a removal that is under way", "abort", otherServers + myServer, marked, 0, "",
			"reconfig -add server.2=zookeeper-1.zookeeper.d:2888:3888:participant;2181\n", false},
		{"it begins again when its vote is given back already", "abort", otherServers, marked, 1, "its container starts again", "", true},
		{"nothing is decided without a leader", "abort", "", marked, 1, "no leader answers", "", true},
		{"a peer takes the vote of who could not give it back", "forget", otherServers + myServer, map[string]string{"obeys": ""}, 0, "", "reconfig -remove 3\n", false},
		{"and insists", "forget", otherServers + myServer, nil, 1, "server 3 could not be taken out", "reconfig -remove 3\n", false},
		{"who has left already is known to nobody", "forget", "server.1=zookeeper-0.zookeeper.d:2888:3888:participant;0.0.0.0:2181\n" + myServer, nil, 0, "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newZooKeeperHome(t, c.servers, nil)
			h.put("disk/zookeeper/.keep", "")
			runs := exec.CommandContext(t.Context(), "sleep", "60") // stands for the script that runs ZooKeeper
			if err := runs.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- runs.Wait() }()
			h.put("disk/zookeeper/pid", fmt.Sprintln(runs.Process.Pid))
			for name, content := range c.files {
				h.put(name, content)
			}
			h.env = append(h.env, "STEAD_GONE=zookeeper-2", "STEAD_GONE_ORDINAL=2")
			_, wait := h.start(c.hook)
			wait()
			if h.code != c.code || !strings.Contains(h.read("log"), c.says) || h.read("calls") != c.calls || h.has(resigned) != c.mark {
				t.Errorf("code %d, calls %q, mark %v; want %d, %q, %v and %q in\n%s", h.code, h.read("calls"), h.has(resigned), c.code, c.calls, c.mark, c.says, h.read("log"))
			}
			ends := strings.Contains(c.says, "starts again")
			if !ends {
				_ = runs.Process.Kill() // it may have been ended, which is wrong
			}
			if how := fmt.Sprint(<-ended); strings.Contains(how, "killed") == ends {
				t.Errorf("its container ended by %q", how)
			}
		})
	}
}

// A member that has left, and ends by itself before Stead stops it, does not come in again.
func TestAMemberOfZooKeeperThatHasLeftWaitsToBeStopped(t *testing.T) {
	h := newZooKeeperHome(t, otherServers, nil)
	for name, content := range map[string]string{"disk/zookeeper/version-2/snapshot.0": "x", "disk/zookeeper/zoo.cfg": "x", "disk/zookeeper/resigned": "",
		"facts/bootstrapped": "1\n", "facts/termination-reason": "ScaleDown\n"} {
		h.put(name, content)
	}
	h.put("bin/sleep", "#!/bin/bash\necho waits >> \"$FAKE/calls\"\nexec /bin/sleep 0.01\n")
	_, wait := h.start()
	until(t, "it waits", func() bool { return strings.Contains(h.read("calls"), "waits") })
	if h.has("started") || !h.has("disk/zookeeper/resigned") {
		t.Fatalf("it came in again: %s", h.read("log"))
	}
	if err := os.Remove(filepath.Join(h.dir, "facts/termination-reason")); err != nil { // it is wanted again
		t.Fatal(err)
	}
	wait()
	if h.code != 7 || !strings.Contains(h.read("log"), "joining again") {
		t.Errorf("code %d\n%s", h.code, h.read("log"))
	}
}
