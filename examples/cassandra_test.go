package examples

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

// fakeCassandra is Cassandra, which serves from its start and ends when told to, and nodetool.
const fakeCassandra = `#!/bin/bash
case "$*" in
*NodeTool*)
  all=$*
  words=${all##*127.0.0.1 }
  echo "$words" >> "$FAKE/calls"
  case $words in
  netstats) echo "Mode: $(cat "$FAKE/mode")" ;;
  status) cat "$FAKE/ring" ;;
  "repair --full") [ ! -e "$FAKE/norepair" ] ;;
  esac ;;
*)
  echo "$*" > "$FAKE/ran.new" && mv "$FAKE/ran.new" "$FAKE/ran"
  until [ -e "$FAKE/end" ]; do sleep 0.05; done
  [ ! -e "$FAKE/why" ] || cat "$FAKE/why" >> "$CONF/errors"
  exit 3 ;;
esac
`

func newCassandra(t *testing.T, ordinal int) (*home, records.Snapshot) {
	t.Helper()
	h := newHome(t, "cassandra", ordinal)
	h.put("bin/java", fakeCassandra)
	h.put("disk/.keep", "")
	h.put("mode", "NORMAL")
	for _, name := range []string{"cassandra.yaml", "jvm.options", "java17.options", "logback.xml"} {
		h.put("entry/"+name, script(t, "cassandra", name))
	}
	h.env = append(h.env, "JAVA="+h.dir+"/bin/java", "CONF="+h.dir+"/conf", "ENTRY="+h.dir+"/entry", "STEAD_NAMESPACE=default", "STEAD_ADDRESS=192.0.2.9")
	facts := records.Snapshot{Replicas: 3, InitialOrdinals: []int{0, 1, 2}, Peers: []records.Peer{h.peer(0), h.peer(1), h.peer(2)}}
	h.set(facts)
	return h, facts
}

func (h *home) serves() {
	h.t.Helper()
	until(h.t, "Cassandra serves, not "+h.read("log"), func() bool { return strings.Contains(h.read("calls"), "enablebinary\n") })
}

func TestOnlyTheFirstMemberOfCassandraBeginsTheRing(t *testing.T) {
	t.Parallel()
	h, _ := newCassandra(t, 0)
	h.put("facts/volume-new", "data first\n")
	h.start()
	h.serves()
	if conf := h.read("conf/cassandra.yaml"); !strings.Contains(conf, `seeds: "cassandra-0.cassandra.d"`) || !strings.Contains(conf, "start_native_transport: false") {
		t.Errorf("the configuration is %s", conf)
	}
	if !h.has("disk/joined") || strings.Contains(h.read("calls"), "repair") {
		t.Errorf("calls %q", h.read("calls"))
	}

	h, facts := newCassandra(t, 1)
	h.put("facts/volume-new", "data first\n")
	h.start()
	until(t, "it waits", func() bool { return strings.Contains(h.read("log"), "waiting for the first members") })
	facts.Peers[0].Volumes = records.VolumesUsed
	h.set(facts)
	h.serves()
	if conf := h.read("conf/cassandra.yaml"); !strings.Contains(conf, `seeds: "cassandra-0.cassandra.d,cassandra-2.cassandra.d"`) {
		t.Errorf("a member that joins must not be a seed, or it copies nothing: %s", conf)
	}
}

func TestAMemberOfCassandraServesOnlyWithItsData(t *testing.T) {
	t.Parallel()
	h, facts := newCassandra(t, 1)
	facts.Bootstrapped = true
	h.set(facts)
	h.put("disk/data/system/half", "")
	h.put("disk/commitlog/half", "")
	h.put("mode", "JOINING")
	h.start()
	until(t, "it is asked how far it is", func() bool { return strings.Count(h.read("calls"), "netstats\n") > 1 })
	if h.has("disk/data") || h.has("disk/commitlog") || h.has("disk/joined") || strings.Contains(h.read("calls"), "enablebinary") {
		t.Errorf("a copy that was broken off is continued, or it serves without its data: %q", h.read("calls"))
	}

	h, facts = newCassandra(t, 1)
	facts.Bootstrapped = true
	h.set(facts)
	h.put("disk/data/system/whole", "")
	h.put("disk/joined", "")
	h.start()
	until(t, "Cassandra runs", func() bool { return h.has("ran") })
	if conf := h.read("conf/cassandra.yaml"); !strings.Contains(conf, "start_native_transport: true") || !strings.Contains(conf, `seeds: "cassandra-1.cassandra.d,`) || !h.has("disk/data/system/whole") {
		t.Errorf("a member with its data: %s", conf)
	}
}

func TestAMemberOfCassandraThatWasForgottenJoinsAnewOnce(t *testing.T) {
	t.Parallel()
	h, facts := newCassandra(t, 1)
	facts.Bootstrapped = true
	h.set(facts)
	h.put("disk/data/system/old", "")
	h.put("disk/joined", "")
	h.put("facts/forgotten", "1.40\n")
	h.start()
	h.serves()
	if h.has("disk/data/system/old") || !strings.Contains(h.read("conf/cassandra.yaml"), "start_native_transport: false") {
		t.Errorf("it serves what the others have forgotten: %s", h.read("log"))
	}
	until(t, "it has its data", func() bool { return h.has("disk/joined") })

	again, _ := newCassandra(t, 1)
	again.set(facts)
	again.put("disk/data/system/new", "")
	again.put("disk/joined", "")
	again.put("disk/forgotten", "1.40\n")
	again.put("facts/forgotten", "1.40\n")
	again.start()
	until(t, "Cassandra runs", func() bool { return again.has("ran") })
	if !again.has("disk/data/system/new") || !strings.Contains(again.read("conf/cassandra.yaml"), "start_native_transport: true") {
		t.Errorf("it joins anew a second time, with the data of the first: %s", again.read("log"))
	}
}

func TestALostDiskOfCassandraTakesItsPlaceAndIsComparedFirst(t *testing.T) {
	t.Parallel()
	h, facts := newCassandra(t, 1)
	facts.Bootstrapped = true
	h.set(facts)
	h.put("mode", "JOINING")
	h.put("why", "ERROR A node with address /192.0.2.9:7000 already exists, cancelling join. Use cassandra.replace_address\n")
	h.put("end", "")
	_, wait := h.start()
	wait()
	if h.code == 0 || !h.has("disk/replace") || strings.Contains(h.read("ran"), "replace_address") {
		t.Fatalf("exit %d, it ran %s", h.code, h.read("ran"))
	}
	h.move("end", "ended")
	h.move("ran", "ran-first")
	h.put("mode", "NORMAL")
	h.put("norepair", "")
	h.start()
	until(t, "Cassandra runs", func() bool { return h.has("ran") }) // who compares runs beside it, and may be first
	until(t, "it is compared again", func() bool { return strings.Contains(h.read("calls"), "repair --full\n") })
	if !strings.Contains(h.read("ran"), "-Dcassandra.replace_address_first_boot=192.0.2.9") || h.has("disk/joined") || h.read("facts/self/busy") == "" {
		t.Errorf("it ran %s", h.read("ran"))
	}
	h.move("norepair", "repair")
	h.serves()
	until(t, "it is not busy any more", func() bool { return !h.has("facts/self/busy") })
	if !h.has("disk/joined") || h.has("disk/replace") {
		t.Error("it has its data, and its mark does not say so")
	}

	h, _ = newCassandra(t, 1)
	h.put("facts/volume-new", "data replaced\n")
	h.put("facts/bootstrapped", "1")
	h.put("disk/replace", "")
	h.put("why", "ERROR Cannot replace_address 192.0.2.9 because it doesn't exist in gossip\n")
	h.put("end", "")
	_, wait = h.start()
	wait()
	if h.has("disk/replace") {
		t.Error("a place that the ring does not have any more is wanted again")
	}
}

func TestAMemberOfCassandraGivesItsRangesAwayAndForgetsWhoCouldNot(t *testing.T) {
	t.Parallel()
	h, _ := newCassandra(t, 2)
	h.put("disk/joined", "")
	_, wait := h.start("decommission")
	wait()
	if h.code != 0 || h.has("disk/joined") || !strings.Contains(h.read("calls"), "decommission\n") {
		t.Errorf("exit %d, calls %q", h.code, h.read("calls"))
	}
	h.put("mode", "DECOMMISSIONED")
	h.put("calls", "")
	_, wait = h.start("decommission")
	wait()
	if h.code != 0 || strings.Contains(h.read("calls"), "decommission\n") {
		t.Errorf("one that has left leaves again: exit %d, calls %q", h.code, h.read("calls"))
	}

	const ring = `Datacenter: dc1
--  Address    Load        Tokens  Owns (effective)  Host ID                               Rack
UN  192.0.2.1  75.29 KiB   16      100.0%            f90175dd-cefc-4e1c-88d9-0d96d00fc604  rack1
DN  192.0.2.3  ?           16      100.0%            0b3e6e92-7b1c-4d27-a5f1-6c6f0a0c9f11  rack1
`
	for gone, want := range map[string]string{"192.0.2.3": "status\nremovenode 0b3e6e92-7b1c-4d27-a5f1-6c6f0a0c9f11\n", "192.0.2.1": "status\n", "192.0.2.7": "status\n"} {
		h, _ := newCassandra(t, 0)
		h.put("ring", ring)
		h.env = append(h.env, "STEAD_GONE_ADDRESS="+gone)
		_, wait := h.start("forget")
		wait()
		if h.code != 0 || h.read("calls") != want {
			t.Errorf("forget %s: exit %d, calls %q; want %q", gone, h.code, h.read("calls"), want)
		}
	}
}
