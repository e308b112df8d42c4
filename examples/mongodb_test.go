package examples

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

// What stands for MongoDB records what it is asked. fakeMongosh refuses what is in the file refuses.
const (
	fakeMongod = `#!/bin/bash
echo "$*" > "$FAKE/ran.new" && mv "$FAKE/ran.new" "$FAKE/ran"
until [ -e "$FAKE/end" ]; do sleep 0.05; done
`
	fakeMongosh = `#!/bin/bash
[ "$ACT" != watch ] || exec sleep 600
[ "$MONGODB_PASSWORD" = secret ] || exit 9
at=${3#mongodb://}
echo "${at%%/*} $ACT $WHO" >> "$FAKE/calls"
[ "$(cat "$FAKE/refuses" 2>/dev/null)" != "$ACT" ]
`
)

const allOfMongoDB = "mongodb-0.mongodb.d:27017,mongodb-1.mongodb.d:27017,mongodb-2.mongodb.d:27017"

func newMongoDB(t *testing.T, ordinal int) (*home, records.Snapshot) {
	t.Helper()
	h := newHome(t, "mongodb", ordinal)
	h.put("bin/mongod", fakeMongod)
	h.put("bin/mongosh", fakeMongosh)
	h.put("disk/.keep", "")
	h.put("conf/.keep", "")
	h.put("secret/password", "secret")
	h.put("secret/key", "key")
	h.env = append(h.env, "CONF="+h.dir+"/conf", "ENTRY="+h.dir+"/entry", "SECRET="+h.dir+"/secret", "STEAD_ADDRESS=192.0.2.9")
	facts := records.Snapshot{Replicas: 3, InitialOrdinals: []int{0, 1, 2}, Peers: []records.Peer{h.peer(0), h.peer(1), h.peer(2)}}
	h.set(facts)
	return h, facts
}

// others are the members of MongoDB but one, and then that one, as the script names them.
func others(last string) string {
	var list []string
	for name := range strings.SplitSeq(allOfMongoDB, ",") {
		if !strings.HasPrefix(name, last) {
			list = append(list, name)
		}
	}
	return strings.Join(append(list, last+".mongodb.d:27017"), ",")
}

func (h *home) runsMongod() {
	h.t.Helper()
	until(h.t, "mongod runs, not "+h.read("log"), func() bool { return h.has("ran") })
}

// does runs the script to its end, and returns what MongoDB was asked.
func (h *home) does(words ...string) string {
	h.t.Helper()
	h.put("calls", "")
	_, wait := h.start(words...)
	wait()
	return h.read("calls")
}

func TestTheFirstMembersOfMongoDBWaitForTheirJob(t *testing.T) {
	t.Parallel()
	h, _ := newMongoDB(t, 1)
	h.put("facts/volume-new", "data first\n")
	h.start()
	h.runsMongod()
	if !strings.Contains(h.read("ran"), "--replSet mongodb --keyFile "+h.dir+"/conf/key --bind_ip 127.0.0.1,192.0.2.9") || h.read("calls") != "" || h.has("disk/joining") {
		t.Errorf("it ran %q, calls %q", h.read("ran"), h.read("calls"))
	}
	h.put("conf/state", "NONE\n")
	h.does("ready")
	if h.code != 0 {
		t.Error("a first member is not ready before the replica set is initiated: its job would wait for ever")
	}

	h, _ = newMongoDB(t, 0)
	h.env = append(h.env, "STEAD_JOB_ORDINALS=0 1 2")
	want := "127.0.0.1:27017 initiate \n"
	for _, name := range []string{"mongodb-0", "mongodb-1", "mongodb-2"} {
		want += others("mongodb-0") + " add " + name + ".mongodb.d:27017\n"
	}
	if got := h.does("initiate"); h.code != 0 || got != want {
		t.Errorf("exit %d, calls %q; want %q", h.code, got, want)
	}
	h.put("refuses", "add")
	h.does("initiate")
	if h.code == 0 {
		t.Error("a job of which a step failed succeeds")
	}
}

func TestAnEmptyDiskOfMongoDBIsTakenOutBeforeItStarts(t *testing.T) {
	t.Parallel()
	h, facts := newMongoDB(t, 2)
	facts.Bootstrapped = true
	h.set(facts)
	h.put("facts/volume-new", "data replaced\n")
	h.put("refuses", "remove")
	_, wait := h.start()
	wait()
	if h.code != 75 || h.has("ran") {
		t.Fatalf("exit %d; it must not vote as if it had its data", h.code)
	}
	h.put("disk/db/WiredTiger", "") // a copy that was broken off
	h.put("refuses", "nothing")
	h.put("calls", "")
	h.start()
	h.runsMongod()
	until(t, "it is added", func() bool { return strings.Contains(h.read("calls"), " add ") })
	if want := others("mongodb-2") + " remove mongodb-2.mongodb.d:27017\n" + others("mongodb-2") + " add mongodb-2.mongodb.d:27017\n"; h.read("calls") != want || h.has("disk/db/WiredTiger") {
		t.Errorf("calls %q; want %q", h.read("calls"), want)
	}
	h.put("conf/state", "NONE\n")
	h.does("ready")
	if h.code == 0 {
		t.Error("it is ready before it is in the replica set")
	}
	h.put("conf/state", "OTHER\n")
	h.does("ready")
	if h.code == 0 || !h.has("disk/joining") {
		t.Error("it is ready, or counts as whole, while it copies")
	}
	h.put("conf/state", "SECONDARY\n")
	h.does("ready")
	if h.code != 0 || h.has("disk/joining") {
		t.Error("it has all, and is not ready")
	}

	h, facts = newMongoDB(t, 2)
	facts.Bootstrapped = true
	h.set(facts)
	h.put("disk/db/WiredTiger", "")
	h.start()
	h.runsMongod()
	if h.read("calls") != "" || !h.has("disk/db/WiredTiger") {
		t.Errorf("a member with its data: calls %q", h.read("calls"))
	}
}

func TestAMemberOfMongoDBLeavesAndIsForgotten(t *testing.T) {
	t.Parallel()
	h, _ := newMongoDB(t, 2)
	if got, want := h.does("decommission"), others("mongodb-2")+" remove mongodb-2.mongodb.d:27017\n"; got != want || h.code != 0 || !h.has("disk/joining") {
		t.Errorf("exit %d, calls %q; want %q, and a mark that it copies all when it returns", h.code, got, want)
	}
	h, _ = newMongoDB(t, 2)
	h.put("refuses", "remove")
	h.does("decommission")
	if h.code == 0 || h.has("disk/joining") {
		t.Error("it has left, though nobody took it out")
	}
	h, _ = newMongoDB(t, 0)
	h.env = append(h.env, "STEAD_GONE_FQDN=mongodb-4.mongodb.d")
	if got, want := h.does("forget"), others("mongodb-0")+" remove mongodb-4.mongodb.d:27017\n"; got != want || h.code != 0 {
		t.Errorf("exit %d, calls %q; want %q", h.code, got, want)
	}
	if got := h.does("step-down"); got != "127.0.0.1:27017 stepDown \n" || h.code != 0 {
		t.Errorf("exit %d, calls %q", h.code, got)
	}
	h.put("conf/state", "REMOVED\n")
	h.does("ready")
	if h.code == 0 || !h.has("disk/joining") {
		t.Error("one that was taken out is ready, or would start with its old data")
	}
}
