package examples

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

// The commands of RabbitMQ write down what they are asked. A file refuse/WORD is what the command with that word fails with,
// and lacking is how many queues have no replica on a node, left how many have one on a node that is to have none.
const fakeRabbitMQ = `#!/bin/bash
all=" $* "
all=${all// -q / }
all=${all# } all=${all% }
echo "${0##*/}" $all >> "$FAKE/calls"
for word in $all; do
  [ ! -e "$FAKE/refuse/$word" ] || { cat "$FAKE/refuse/$word"; exit 69; }
done
case $all in
eval*"not lists"*) cat "$FAKE/lacking" ;;
*rabbit_nodes*) cat "$FAKE/known" ;;
eval*) cat "$FAKE/left" ;;
esac
`

const fakeRabbitMQServer = `#!/bin/bash
cp "$RABBITMQ_CONFIG_FILE" "$FAKE/ran.new" && mv "$FAKE/ran.new" "$FAKE/ran"
`

func newRabbitMQ(t *testing.T, ordinal int, used bool) *home {
	t.Helper()
	h, _ := newRabbitMQs(t, ordinal, used)
	return h
}

func newRabbitMQs(t *testing.T, ordinal int, used bool) (*home, records.Snapshot) {
	t.Helper()
	h := newHome(t, "rabbitmq", ordinal)
	for _, command := range []string{"rabbitmqctl", "rabbitmq-queues", "rabbitmq-diagnostics", "rabbitmq-upgrade"} {
		h.put("bin/"+command, fakeRabbitMQ)
	}
	h.put("bin/rabbitmq-server", fakeRabbitMQServer)
	h.put("secret/cookie", "secret")
	h.put("entry/rabbitmq.conf", "default_user = app\n")
	h.put("lacking", "0\n")
	h.put("left", "0\n")
	h.put("known", "true\n")
	h.put("tmp/pid", "1\n")
	h.put("disk/.keep", "")
	h.env = append(h.env, "ENTRY="+h.dir+"/entry", "SECRET="+h.dir+"/secret", "RABBITMQ_NODENAME="+node(fmt.Sprint(ordinal)),
		"RABBITMQ_CONFIG_FILE="+h.dir+"/tmp/rabbitmq.conf", "RABBITMQ_PID_FILE="+h.dir+"/tmp/pid")
	p := records.Snapshot{Replicas: 3, InitialOrdinals: []int{0, 1, 2}, Bootstrapped: used}
	for i := range 3 {
		peer := h.peer(i)
		peer.Ready = used && i != ordinal
		p.Peers = append(p.Peers, peer)
	}
	h.set(p)
	return h, p
}

const rabbitNode = "rabbit@rabbitmq-%.rabbitmq.d"

func node(ordinal string) string { return strings.Replace(rabbitNode, "%", ordinal, 1) }

// hook runs a hook of the script to its end, and returns what it asked of RabbitMQ.
func (h *home) hook(name string) (calls []string) {
	h.t.Helper()
	h.put("calls", "")
	_, wait := h.start(name)
	wait()
	for line := range strings.Lines(h.read("calls")) {
		words := strings.Fields(line)
		calls = append(calls, strings.Join(words[1:min(len(words), 3)], " "))
	}
	return calls
}

func TestTheFirstNodeOfRabbitMQFormsTheClusterAlone(t *testing.T) {
	t.Parallel()
	h := newRabbitMQ(t, 0, false)
	h.put("facts/volume-new", "data first\n")
	h.start("run")
	until(t, "it runs, not "+h.read("log"), func() bool { return h.has("ran") })
	if strings.Contains(h.read("ran"), "classic_config.nodes") || h.has("disk/joining") || h.read("calls") != "" {
		t.Errorf("it runs with %q, after %q", h.read("ran"), h.read("calls"))
	}
}

func TestANodeOfRabbitMQJoinsOnceAPeerHasForgottenIt(t *testing.T) {
	t.Parallel()
	h := newRabbitMQ(t, 1, true)
	h.put("disk/joining", "")
	h.put("disk/mnesia/"+node("1")+"/half", "")
	h.put("refuse/forget_cluster_node", "{:active, 'it runs'}\n")
	h.hook("run")
	if h.code != 75 || h.has("ran") || !strings.Contains(h.read("log"), "does not forget") {
		t.Fatalf("a node that no peer forgot joins: exit %d, %s", h.code, h.read("log"))
	}
	h.put("refuse/forget_cluster_node", "Error:\n{:not_a_cluster_node, 'The node selected is not in the cluster.'}\n")
	h.start("run")
	until(t, "it runs, not "+h.read("log"), func() bool { return h.has("ran") })
	if !strings.Contains(h.read("ran"), "classic_config.nodes.1 = "+node("0")+"\n") || !h.has("disk/joining") || h.has("disk/mnesia") {
		t.Errorf("it runs with %q", h.read("ran"))
	}
}

func TestANodeOfRabbitMQThatWasForgottenJoinsAnew(t *testing.T) {
	t.Parallel()
	for known, anew := range map[string]bool{"true\n": false, "false\n": true, "": false} { // nothing: nobody answers
		h := newRabbitMQ(t, 1, true)
		h.put("disk/mnesia/"+node("1")+"/data", "")
		h.put("known", known)
		h.start("run")
		until(t, "it runs, not "+h.read("log"), func() bool { return h.has("ran") })
		if joins := strings.Contains(h.read("ran"), "classic_config.nodes.1"); joins != anew || h.has("disk/mnesia") == anew || h.has("disk/joining") != anew {
			t.Errorf("known %q: it runs with %q", known, h.read("ran"))
		}
	}
}

func TestANodeOfRabbitMQIsReadyOnceItHasAReplicaOfEachQueue(t *testing.T) {
	t.Parallel()
	h := newRabbitMQ(t, 1, true)
	h.put("disk/joining", "")
	h.put("lacking", "2\n")
	_, wait := h.start("joined")
	until(t, "it says what lacks", func() bool { return strings.Contains(h.read("log"), "has no replica of some queues") })
	if !h.has("disk/joining") {
		t.Error("it counts as joined without its replicas")
	}
	h.put("lacking.new", "0\n")
	h.move("lacking.new", "lacking")
	wait()
	if h.code != 0 || h.has("disk/joining") {
		t.Errorf("exit %d: %s", h.code, h.read("log"))
	}
	if calls := h.hook("joined"); h.code != 0 || len(calls) != 1 {
		t.Errorf("one that has its data asks %q", calls)
	}
}

func TestANodeOfRabbitMQLeavesWhenTheOthersHaveReplicas(t *testing.T) {
	t.Parallel()
	h, p := newRabbitMQs(t, 2, true)
	p.Replicas, p.Peers[1].Ready = 2, false
	h.set(p)
	if calls := h.hook("decommission"); h.code != 75 || len(calls) != 1 {
		t.Errorf("one that stays is not ready: exit %d, it asks %q", h.code, calls)
	}
	p.Peers[1].Ready = true
	h.set(p)
	h.put("lacking", "1\n")
	if calls := strings.Join(h.hook("decommission"), "\n"); h.code == 0 || h.has("disk/joining") || strings.Contains(calls, "shrink") {
		t.Errorf("exit %d, it asks %s", h.code, calls)
	}
	h.hook("abort")
	if h.code != 0 {
		t.Errorf("nothing was given up, and abort ends with %d", h.code)
	}
	h.put("lacking", "0\n")
	h.put("left", "1\n")
	if calls := strings.Join(h.hook("decommission"), "\n"); h.code != 75 || strings.Contains(calls, "stop_app") {
		t.Errorf("with a queue that did not let it go: exit %d, it asks %s", h.code, calls)
	}
	h.put("left", "0\n")
	h.put("refuse/reset", "no peer answers\n")
	want := "check_running\ngrow " + node("0") + "\neval X\ngrow " + node("1") + "\neval X\nshrink " + node("2") + "\neval X\nstop_app\nreset"
	calls := strings.Join(h.hook("decommission"), "\n")
	calls = strings.ReplaceAll(calls, "eval length([Q", "eval X")
	if h.code == 0 || calls != want || !h.has("disk/joining") {
		t.Errorf("exit %d, it asks %s, want %s", h.code, calls, want)
	}
	h.put("refuse/check_running", "it is stopped\n")
	if calls := strings.Join(h.hook("decommission"), "\n"); h.code == 0 || calls != "check_running\nreset" {
		t.Errorf("again: exit %d, it asks %s", h.code, calls)
	}
	h.move("refuse/reset", "reset")
	h.hook("decommission")
	if h.code != 0 {
		t.Errorf("exit %d: %s", h.code, h.read("log"))
	}

	h = newRabbitMQ(t, 2, true)
	h.put("refuse/check_running", "it starts\n")
	if calls := h.hook("decommission"); h.code == 0 || len(calls) != 1 {
		t.Errorf("one that does not run leaves: exit %d, it asks %q", h.code, calls)
	}
}

func TestANodeOfRabbitMQThatHasLeftIsForgotten(t *testing.T) {
	t.Parallel()
	h := newRabbitMQ(t, 0, true)
	h.env = append(h.env, "STEAD_GONE_FQDN=rabbitmq-3.rabbitmq.d")
	for said, want := range map[string]int{
		"": 0, "Error:\n{:not_a_cluster_node, 'The node selected is not in the cluster.'}\n": 0, "{:badrpc, :nodedown}\n": 75,
	} {
		if said != "" {
			h.put("refuse/forget_cluster_node", said)
		}
		asked := "forget_cluster_node"
		calls := strings.Join(h.hook("forget"), "\n")
		if want == 0 {
			asked += "\nshrink " + node("3") + "\neval length([Q"
		}
		calls = strings.ReplaceAll(calls, "-n "+node("0"), "forget_cluster_node")
		if h.code != want || calls != asked {
			t.Errorf("%q: exit %d, want %d; it asks %q, want %q", said, h.code, want, calls, asked)
		}
		if h.has("refuse/forget_cluster_node") {
			h.move("refuse/forget_cluster_node", "said")
		}
	}
}

func TestANodeOfRabbitMQHandsItsLeadersOverUnlessAllStopOrItHasLeft(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"Update": "await_online_quorum_plus_one --timeout,drain", "Drain": "await_online_quorum_plus_one --timeout,drain", "ScaleDown": "", "ScaleToZero": "", "Delete": "",
	} {
		h := newRabbitMQ(t, 1, true)
		h.put("facts/termination-reason", reason+"\n")
		if calls := strings.Join(h.hook("stop"), ","); h.code != 0 || calls != want {
			t.Errorf("%s: exit %d, it asks %q, want %q", reason, h.code, calls, want)
		}
	}
}
