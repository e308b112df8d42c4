package examples

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

// fakeKafka is Kafka, which runs until it is told to end, and its tools.
const fakeKafka = `#!/bin/bash
all=$*
case $all in
*kafka.Kafka*)
  echo "$all" > "$FAKE/ran.new" && mv "$FAKE/ran.new" "$FAKE/ran"
  until [ -e "$FAKE/end" ]; do sleep 0.05; done
  exit 3 ;;
*StorageTool*)
  words=${all##*StorageTool }
  echo "$words" >> "$FAKE/calls"
  case $words in
  random-uuid) echo new-cluster ;;
  *) dir=$(sed -n 's/^log.dirs=//p' "$CONF/server.properties"); mkdir -p "$dir"; touch "$dir/meta.properties" ;;
  esac ;;
*)
  words=${all##*org.apache.kafka.tools.}
  echo "${words%% --bootstrap-server*} ${words#* --bootstrap-server * }" >> "$FAKE/calls"
  case $words in
  TopicCommand*) [ ! -e "$FAKE/silent" ] && cat "$FAKE/topics" ;;
  MetadataQuorumCommand*describe*) cat "$FAKE/voters" ;;
  'ClusterTool cluster-id --bootstrap-server '*) [ -e "$FAKE/silent" ] || echo "Cluster ID: old-cluster" ;;
  ClusterTool*) [ ! -e "$FAKE/unregister" ] || { cat "$FAKE/unregister"; exit 1; } ;;
  reassign*)
    cp "${words##*--reassignment-json-file }" "$FAKE/moves"
    mv "$FAKE/moved" "$FAKE/topics" ;;
  esac ;;
esac
`

const kafkaVoters = `NodeId	DirectoryId           	LogEndOffset	Lag	LastFetchTimestamp	LastCaughtUpTimestamp	Status
0     	directory-of-0        	17	0	1700000000000	1700000000000	Leader
1     	directory-of-1        	17	0	1700000000000	1700000000000	Follower
4     	directory-of-4        	17	0	1700000000000	1700000000000	Follower
2     	directory-of-2        	17	0	1700000000000	1700000000000	Observer
`

// kafkaTopics is what the tool prints of two partitions, with the leader and the copies in sync of the second.
func kafkaTopics(leader, sync string) string {
	return "Topic: load\tTopicId: abc\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n" +
		"\tTopic: one-copy\tPartition: 7\tLeader: none\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n" +
		"\tTopic: load\tPartition: 0\tLeader: " + leader + "\tReplicas: 1,2,0\tIsr: " + sync + "\tElr: \tLastKnownElr: \n"
}

func newKafka(t *testing.T, ordinal int) (*home, records.Snapshot) {
	t.Helper()
	h := newHome(t, "kafka", ordinal)
	h.put("bin/java", fakeKafka)
	h.put("disk/.keep", "")
	h.put("conf/.keep", "")
	h.put("topics", "")
	h.put("voters", kafkaVoters)
	for _, name := range []string{"server.properties", "jvm.options", "log4j2.properties"} {
		h.put("entry/"+name, script(t, "kafka", name))
	}
	h.env = append(h.env, "JAVA="+h.dir+"/bin/java", "CONF="+h.dir+"/conf", "ENTRY="+h.dir+"/entry", "STEAD_ADDRESS=192.0.2.9")
	facts := records.Snapshot{Replicas: 3, InitialOrdinals: []int{0, 1, 2}, Peers: []records.Peer{h.peer(0), h.peer(1), h.peer(2)}}
	h.set(facts)
	return h, facts
}

func TestOnlyTheFirstMemberOfKafkaBeginsTheCluster(t *testing.T) {
	t.Parallel()
	h, _ := newKafka(t, 0)
	h.put("facts/volume-new", "data first\n")
	h.start()
	until(t, "Kafka runs", func() bool { return h.has("ran") })
	if calls := h.read("calls"); !strings.Contains(calls, "--cluster-id new-cluster --standalone\n") {
		t.Errorf("calls %q", calls)
	}
	conf := h.read("conf/server.properties")
	for _, want := range []string{"\nnode.id=0\n", "\nlog.dirs=" + h.dir + "/disk/log\n", "controller.quorum.bootstrap.servers=kafka-1.kafka.d:9093,kafka-2.kafka.d:9093,kafka-0.kafka.d:9093\n"} {
		if !strings.Contains(conf, want) {
			t.Errorf("%q is not in the configuration %s", want, conf)
		}
	}

	h, facts := newKafka(t, 1)
	h.put("facts/volume-new", "data first\n")
	h.start()
	until(t, "it waits", func() bool { return strings.Contains(h.read("log"), "waiting for the first members") })
	facts.Peers[0].Volumes = records.VolumesUsed
	h.set(facts)
	until(t, "Kafka runs", func() bool { return h.has("ran") })
	if calls := h.read("calls"); !strings.Contains(calls, "--cluster-id old-cluster --no-initial-controllers\n") || strings.Contains(calls, "random-uuid") {
		t.Errorf("calls %q", calls)
	}
}

func TestWithAnEmptyDiskAMemberOfKafkaStartsOnlyWhenOthersLead(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		name, topics, why string
	}{
		{"the disk that is lost would lead", kafkaTopics("1", "1,2,0"), "load-0 has no other leader yet"},
		{"nobody leads", kafkaTopics("none", "1"), "load-0 has no other leader yet"},
		{"nobody answers", "", "the others do not answer"},
	} {
		h, facts := newKafka(t, 1)
		facts.Bootstrapped = true
		h.set(facts)
		h.put("disk/log/left", "of before")
		h.put("topics", at.topics)
		if at.topics == "" {
			h.put("silent", "")
		}
		h.put("end", "") // one that starts all the same ends
		_, wait := h.start()
		wait()
		if h.code != 75 || !strings.Contains(h.read("log"), "refused: cannot join: "+at.why) || h.has("ran") {
			t.Errorf("%s: exit %d, it says %s", at.name, h.code, h.read("log"))
		}
	}

	h, facts := newKafka(t, 1)
	facts.Bootstrapped = true
	h.set(facts)
	h.put("disk/log/left", "of before")
	h.put("topics", kafkaTopics("2", "1,2,0"))
	h.start()
	until(t, "Kafka runs", func() bool { return h.has("ran") })
	if h.has("disk/log/left") || !h.has("disk/log/meta.properties") {
		t.Error("what was left on the disk is taken for a copy")
	}
}

func TestADiskOfKafkaWithDataIsStartedAsItIs(t *testing.T) {
	t.Parallel()
	h, facts := newKafka(t, 1)
	facts.Bootstrapped = true
	h.set(facts)
	h.put("disk/log/meta.properties", "")
	h.put("disk/log/load-0/00.log", "data")
	h.put("topics", kafkaTopics("none", "1"))
	h.start()
	until(t, "Kafka runs", func() bool { return h.has("ran") })
	if calls := h.read("calls"); strings.Contains(calls, "format") || !h.has("disk/log/load-0/00.log") {
		t.Errorf("calls %q", calls)
	}
}

func TestAMemberOfKafkaIsReadyWhenItVotesAndItsCopiesAreInSync(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct {
		ordinal int
		sync    string
		ready   bool
	}{
		"in sync":      {1, "1,0", true},
		"not in sync":  {1, "2,0", false},
		"has no vote":  {2, "2,1", false},
		"has no copy":  {4, "2,0", true},
		"a longer one": {1, "10,0", false},
	} {
		h, facts := newKafka(t, at.ordinal)
		facts.Bootstrapped = true
		h.set(facts)
		h.put("disk/log/meta.properties", "")
		h.put("conf/ready", "") // of the container's last start
		h.put("topics", strings.ReplaceAll(kafkaTopics("0", at.sync), "Isr: 1\t", "Isr: 1,2\t"))
		if !at.ready {
			h.start()
			until(t, "it was asked twice", func() bool { return strings.Count(h.read("calls"), "TopicCommand") > 1 })
		} else {
			h.start()
			until(t, name+": it is ready", func() bool { return strings.Contains(h.read("log"), "its copies are in sync") })
		}
		if h.has("conf/ready") != at.ready {
			t.Errorf("%s: ready is %v", name, !at.ready)
		}
	}
}

func TestAMemberOfKafkaGivesItsCopiesToThoseThatStay(t *testing.T) {
	t.Parallel()
	h, facts := newKafka(t, 4)
	for i := range facts.Peers {
		facts.Peers[i].Ready = true
	}
	three, four := h.peer(3), h.peer(4)
	three.Ready, four.Ready = true, true
	facts.Peers = append(facts.Peers, three, four)
	h.set(facts)
	h.put("topics", strings.ReplaceAll(kafkaTopics("0", "0,1,4"), "Replicas: 1,2,0", "Replicas: 0,4,1"))
	h.put("moved", kafkaTopics("0", "0,1,2"))
	_, wait := h.start("decommission")
	wait()
	if h.code != 0 || !strings.Contains(h.read("moves"), `{"topic":"load","partition":0,"replicas":[0,2,1]}`) || strings.Contains(h.read("moves"), "one-copy") {
		t.Errorf("exit %d, moves %s, it says %s", h.code, h.read("moves"), h.read("log"))
	}
	h, facts = newKafka(t, 2)
	for i := range facts.Peers {
		facts.Peers[i].Ready = true
	}
	facts.Replicas = 2
	h.set(facts)
	h.put("topics", kafkaTopics("0", "0,1,2"))
	_, wait = h.start("decommission")
	wait()
	if h.code == 0 || !strings.Contains(h.read("log"), "refused: load-0 has more copies than members would stay") {
		t.Errorf("exit %d, it says %s", h.code, h.read("log"))
	}
}

func TestWhoLeftKafkaHasNoVoteAndNoCopyAnyMore(t *testing.T) {
	t.Parallel()
	h, facts := newKafka(t, 0)
	for i := range facts.Peers {
		facts.Peers[i].Ready = true
	}
	h.set(facts)
	h.env = append(h.env, "STEAD_GONE_ORDINAL=4")
	h.put("topics", strings.ReplaceAll(kafkaTopics("0", "0,1"), "Replicas: 1,2,0", "Replicas: 0,4,1"))
	h.put("moved", kafkaTopics("0", "0,1,2"))
	_, wait := h.start("forget")
	wait()
	calls := h.read("calls")
	if h.code != 0 || !strings.Contains(h.read("moves"), `"replicas":[0,2,1]`) ||
		!strings.Contains(calls, "remove-controller --controller-id 4 --controller-directory-id directory-of-4 --unregister\n") || !strings.Contains(calls, "ClusterTool unregister --id 4\n") {
		t.Errorf("exit %d, moves %s, calls %s, it says %s", h.code, h.read("moves"), calls, h.read("log"))
	}

	for said, code := range map[string]int{"BrokerIdNotRegisteredException: it is not": 0, "TimeoutException: nobody answers": 75} {
		h, facts = newKafka(t, 0)
		h.set(facts)
		h.env = append(h.env, "STEAD_GONE_ORDINAL=3")
		h.put("unregister", said)
		_, wait = h.start("forget")
		wait()
		if calls := h.read("calls"); h.code != code || strings.Contains(calls, "remove-controller") {
			t.Errorf("one whose vote is gone, and %s: exit %d, calls %s", said, h.code, calls)
		}
	}
}
