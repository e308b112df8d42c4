package examples

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

// What stands for Redis: each host says in nodes/HOST which nodes it knows, and records what it is told.
const (
	fakeClusterCLI = `#!/bin/bash
words="$*"
if [ "$1" = --cluster ]; then echo "$words" >> "$FAKE/calls"; exit 0; fi
host=$3 # after -e -h
shift 3
case "$*" in
"cluster nodes") cat "$FAKE/nodes/$host" ;;
"cluster info") cat "$FAKE/info" ;;
"cluster myid") cat "$FAKE/myid" ;;
"info replication") echo "master_link_status:$(cat "$FAKE/link")" ;;
role) cat "$FAKE/role" ;;
dbsize) cat "$FAKE/dbsize" ;;
"config get cluster-replica-no-failover") printf 'cluster-replica-no-failover\n%s\n' "$(cat "$FAKE/failover")" ;;
"config get cluster-announce-hostname") echo "$host" ;;
*) echo "$host $*" >> "$FAKE/calls" ;;
esac
`
	fakeClusterServer = `#!/bin/bash
cp "$1" "$FAKE/ran.new" && mv "$FAKE/ran.new" "$FAKE/ran"
`
)

// ofRedis is CLUSTER NODES of six members: a, b and c are the masters of 0, 1 and 2, which d, e and f copy.
const ofRedis = `a 192.0.2.1:6379@16379,redis-cluster-0.redis-cluster.d myself,master - 0 0 1 connected 0-5460
b 192.0.2.2:6379@16379,redis-cluster-1.redis-cluster.d master - 0 0 2 connected 5461-10922
c 192.0.2.3:6379@16379,redis-cluster-2.redis-cluster.d master - 0 0 3 connected 10923-16383
d 192.0.2.4:6379@16379,redis-cluster-3.redis-cluster.d slave,nofailover a 0 0 1 connected
e 192.0.2.5:6379@16379,redis-cluster-4.redis-cluster.d slave b 0 0 2 connected
f 192.0.2.6:6379@16379,redis-cluster-5.redis-cluster.d slave c 0 0 3 connected
`

func newRedisCluster(t *testing.T, ordinal, members int) (*home, records.Snapshot) {
	t.Helper()
	h := newHome(t, "redis-cluster", ordinal)
	h.put("bin/redis-cli", fakeClusterCLI)
	h.put("bin/redis-server", fakeClusterServer)
	h.put("redis.conf", script(t, "redis-cluster", "redis.conf"))
	h.put("disk/.keep", "")
	h.put("facts/termination-reason", "Update")
	for name, text := range map[string]string{"info": "cluster_state:ok\ncluster_slots_assigned:16384\n", "myid": "a", "link": "up", "role": "slave", "dbsize": "0", "failover": "no"} {
		h.put(name, text)
	}
	h.env = append(h.env, "CONF="+h.dir+"/redis.conf", "STEAD_NODE=host-0", "STEAD_ADDRESS=192.0.2.1")
	facts := records.Snapshot{Replicas: members, InitialOrdinals: []int{0, 1, 2, 3, 4, 5}}
	for i := range members {
		facts.Peers = append(facts.Peers, h.peer(i))
	}
	h.set(facts)
	h.knows(ofRedis, members)
	return h, facts
}

// knows makes all members know these nodes.
func (h *home) knows(nodes string, members int) {
	h.t.Helper()
	h.put("nodes/127.0.0.1", nodes)
	for i := range members {
		h.put("nodes/"+h.peer(i).Address.String(), nodes)
	}
}

// steps are what the script's plan says for what Redis knows, by the hosts and words that members note.
func (h *home) steps(facts records.Snapshot, notes ...string) string {
	h.t.Helper()
	for i, note := range notes {
		facts.Peers[i].Note = note
	}
	h.set(facts)
	_, wait := h.start("plan")
	wait()
	return h.read("log")
}

func TestWhoCopiesWhomInRedisCluster(t *testing.T) {
	t.Parallel()
	const joined = ofRedis + `g 192.0.2.7:6379@16379,redis-cluster-6.redis-cluster.d master - 0 0 0 connected
h 192.0.2.8:6379@16379,redis-cluster-7.redis-cluster.d master - 0 0 0 connected
`
	settled := strings.Replace(joined, "redis-cluster-7.redis-cluster.d master -", "redis-cluster-7.redis-cluster.d slave g", 1)
	for name, c := range map[string]struct {
		nodes string
		want  int // members
		here  int // members there are
		notes []string
		steps string
	}{
		"all is as it should be":              {ofRedis, 6, 6, []string{"A", "B", "C", "B", "C", "A"}, ""},
		"two came, and one of them copies":    {joined, 8, 8, nil, "replicate 7 g\n"},
		"then slots are moved to the other":   {settled, 8, 8, nil, "rebalance\n"},
		"a master too many copies, elsewhere": {settled, 6, 8, []string{"A", "B", "C", "B", "C", "A", "A", "B leaves"}, "replicate 6 b\n"},
		"a master leaves: it hands over":      {ofRedis, 6, 6, []string{"A", "B", "C leaves", "B", "C", "A"}, "failover 5\n"},
		"a pair on one host is taken apart":   {ofRedis, 6, 6, []string{"A", "B", "C", "A", "C", "B"}, "replicate 3 b\n"},
		"one whose disk was lost copies":      {strings.Replace(ofRedis, "slave,nofailover a", "master -", 1), 6, 6, nil, "replicate 3 a\n"},
	} {
		h, facts := newRedisCluster(t, 0, c.here)
		facts.Replicas = c.want
		h.knows(c.nodes, c.here)
		if got := h.steps(facts, c.notes...); got != c.steps {
			t.Errorf("%s: %q, want %q", name, got, c.steps)
		}
	}
	h, facts := newRedisCluster(t, 0, 6)
	h.knows(strings.Replace(ofRedis, ",redis-cluster-1.redis-cluster.d", "", 1), 6)
	h.steps(facts)
	if h.code == 0 {
		t.Error("it decides while it does not know who one of the nodes is")
	}
}

func TestAnEmptyDiskOfRedisClusterRunsOnlyWhenItsSlotsHaveAnotherMaster(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodes string
		runs  bool
	}{
		"its slots are still its own":     {strings.Replace(ofRedis, "master - 0 0 2", "master,noaddr - 0 0 2", 1), false},
		"a replica still copies it":       {strings.Replace(ofRedis, " 5461-10922", "", 1), false},
		"its replica has taken them over": {strings.NewReplacer("connected 5461-10922", "disconnected", "slave b 0 0 2 connected", "master - 0 0 4 connected 5461-10922").Replace(ofRedis), true},
	} {
		h, facts := newRedisCluster(t, 1, 6)
		facts.Bootstrapped = true
		h.set(facts)
		h.put("facts/volume-new", "data replaced\n")
		h.knows(c.nodes, 6)
		h.put("disk/nodes.conf", "b") // and the data is gone
		_, wait := h.start()
		if c.runs {
			until(t, name+": it runs, not "+h.read("log"), func() bool { return h.has("ran") })
			if !h.has("disk/joining") || h.has("disk/nodes.conf") {
				t.Errorf("%s: it runs as if it had its data", name)
			}
			h.put("disk/joining", "")
			h.does("ready")
			if h.code == 0 {
				t.Error("it is ready while it joins")
			}
			continue
		}
		wait()
		if h.code != 75 || h.has("ran") || !strings.Contains(h.read("log"), "no replica has taken them over") {
			t.Errorf("%s: exit %d, ran %v: its replica would become as empty: %s", name, h.code, h.has("ran"), h.read("log"))
		}
	}

	h, facts := newRedisCluster(t, 1, 6)
	facts.Bootstrapped = true
	h.set(facts)
	h.put("nodes/192.0.2.1", "")
	for i := range 6 {
		h.move("nodes/"+h.peer(i).Address.String(), "gone")
	}
	_, wait := h.start()
	wait()
	if h.code != 75 || h.has("ran") {
		t.Errorf("nobody answers, and it runs: exit %d", h.code)
	}
}

// On a slow machine the first members are ready before the last ones have begun.
func TestALateMemberOfRedisClusterWaitsForNoOtherLateOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		other string // the volume of the other member that does not answer
		runs  bool
	}{
		"the other was never ready": {records.VolumesNew, true},
		"the other may have slots":  {records.VolumesUsed, false},
	} {
		h, facts := newRedisCluster(t, 1, 6)
		for i := range facts.Peers {
			if i != 1 && i != 3 {
				facts.Peers[i].Volumes = records.VolumesUsed
			}
		}
		facts.Peers[3].Volumes = c.other
		h.set(facts)
		h.put("facts/volume-new", "data replaced\n")
		h.knows(regexp.MustCompile(` \d+-\d+\n`).ReplaceAllString(regexp.MustCompile(`slave\S* .`).ReplaceAllString(ofRedis, "master -"), "\n"), 6)
		h.move("nodes/"+h.peer(3).Address.String(), "silent")
		_, wait := h.start()
		if !c.runs {
			wait()
			if h.code != 75 || h.has("ran") {
				t.Errorf("%s: exit %d, and it runs: %v", name, h.code, h.has("ran"))
			}
			continue
		}
		until(t, name+": it runs, not "+h.read("log"), func() bool { return h.has("ran") })
		if h.has("disk/joining") {
			t.Errorf("%s: it waits for a place among masters that are still to be", name)
		}
	}
}

func TestSlotsOfRedisClusterAreGivenOutOnce(t *testing.T) {
	t.Parallel()
	h, _ := newRedisCluster(t, 0, 6)
	h.put("info", "cluster_state:fail\ncluster_slots_assigned:5461\n")
	h.put("dbsize", "7")
	if got := h.does("create"); h.code == 0 || got != "" {
		t.Errorf("slots are given out though there are keys: exit %d, calls %q", h.code, got)
	}
	h.put("info", "cluster_state:ok\ncluster_slots_assigned:16384\n")
	h.start("create")
	until(t, "it asks for the arrangement, not "+h.read("log"), func() bool { return h.has("disk/arrange") })
	if got := h.read("calls"); got != "" {
		t.Errorf("slots that are given out are given out again: %q", got)
	}
	h, _ = newRedisCluster(t, 1, 6)
	h.start("grow")
	until(t, "another member is asked for, not "+h.read("log"), func() bool { return h.has("disk/arrange") || strings.Contains(h.read("log"), "the lowest member") })
	if h.has("disk/arrange") {
		t.Error("two members may move slots at once")
	}
}

func TestAMemberOfRedisClusterLeavesAndIsForgotten(t *testing.T) {
	t.Parallel()
	gone := ofRedis + "g :0@0,redis-cluster-6.redis-cluster.d slave,fail c 0 0 0 disconnected\n"
	h, _ := newRedisCluster(t, 0, 6)
	h.knows(gone, 6)
	h.env = append(h.env, "STEAD_GONE=redis-cluster-6", "STEAD_GONE_ORDINAL=6")
	if got := h.does("forget"); h.code != 0 || strings.Count(got, " cluster forget g\n") != 6 {
		t.Errorf("exit %d, calls %q; want that all six forget it", h.code, got)
	}
	h.knows(strings.Replace(gone, "disconnected", "disconnected 0-5", 1), 6)
	if got := h.does("forget"); h.code == 0 || got != "" {
		t.Errorf("one that has slots is forgotten: exit %d, calls %q", h.code, got)
	}
	h.knows(gone, 6)
	h.move("nodes/192.0.2.4", "silent")
	if got := h.does("forget"); h.code == 0 || got != "" {
		t.Errorf("a member that does not answer brings it back: exit %d, calls %q", h.code, got)
	}
}

func TestAMemberOfRedisClusterIsReadyWhenItHasCopiedAll(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put   map[string]string
		ready bool
	}{
		"a replica that has all":           {nil, true},
		"a master":                         {map[string]string{"role": "master", "link": "down"}, true},
		"a replica that copies":            {map[string]string{"link": "down"}, false},
		"a replica that may not take over": {map[string]string{"failover": "yes"}, false},
		"slots that nobody serves":         {map[string]string{"info": "cluster_state:fail\ncluster_slots_assigned:16384\n"}, false},
		"before the cluster is created":    {map[string]string{"role": "master", "info": "cluster_state:fail\ncluster_slots_assigned:0\n"}, true},
	} {
		h, _ := newRedisCluster(t, 3, 6)
		for file, text := range c.put {
			h.put(file, text)
		}
		h.does("ready")
		if (h.code == 0) != c.ready {
			t.Errorf("%s: exit %d", name, h.code)
		}
	}
}

func TestAReplicaOfRedisClusterTakesOverOnlyFromWhomItHasCopied(t *testing.T) {
	t.Parallel()
	h, _ := newRedisCluster(t, 3, 6)
	h.put("myid", "d")
	h.put("disk/nodes.conf", "d")
	h.put("disk/appendonlydir/.keep", "")
	h.start()
	until(t, "it may take over, not "+h.read("log"), func() bool { return strings.Contains(h.read("calls"), "cluster-replica-no-failover no\n") })
	h.put("link", "down")
	h.put("calls", "")
	h.knows(strings.Replace(ofRedis, "slave,nofailover a", "slave b", 1), 6)
	until(t, "it may not take over from another master", func() bool { return strings.Contains(h.read("calls"), "cluster-replica-no-failover yes\n") })
	h.put("link", "up")
	until(t, "it may when it has copied all", func() bool { return strings.Contains(h.read("calls"), "cluster-replica-no-failover no\n") })
}

func TestAMemberOfRedisClusterStaysUntilItsSlotsAndReplicasAreWithTheOthers(t *testing.T) {
	t.Parallel()
	h, facts := newRedisCluster(t, 2, 6)
	h.put("myid", "c")
	facts.Peers[2].Note = "host-0 leaves"
	h.set(facts)
	_, wait := h.start("decommission")
	until(t, "it says that it leaves", func() bool { return h.read("facts/self/note") == "host-0 leaves\n" })
	h.put("nodes/.2", strings.NewReplacer("master - 0 0 3 connected 10923-16383", "slave f 0 0 4 connected", "slave c 0 0 3 connected", "master - 0 0 4 connected 10923-16383").Replace(ofRedis))
	if h.has("disk/left") {
		t.Fatal("it has left with its slots")
	}
	h.move("nodes/.2", "nodes/127.0.0.1")
	wait()
	if h.code != 0 || !h.has("disk/left") {
		t.Errorf("exit %d: %s", h.code, h.read("log"))
	}
}
