package examples

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

const fakeBusybox = `#!/bin/bash
echo "$3" >> "$FAKE/calls"
host=${3#http://} host=${host%%:*}
cat "$FAKE/jsz-$host"
`

const fakeNATS = `#!/bin/bash
echo "$*" > "$FAKE/args.new" && mv "$FAKE/args.new" "$FAKE/args"
while :; do sleep 0.02; done
`

// A leader that knows the present names of nats-1 and nats-2, the name of a lost disk, and one without a name.
const natsKnown = `{
  "meta_cluster": {
    "name": "nats",
    "leader": "nats-0-5",
    "peer": "self",
    "replicas": [
      {"name": "nats-1-5", "current": true, "peer": "one"},
      {"name": "nats-1-2", "current": false, "peer": "lost"},
      {"name": "Server name unknown at this time (peerID: gone)", "current": false, "peer": "gone"},
      {"name": "nats-2-5", "current": true, "peer": "two"}
    ]
  }
}
`

// natsSelf is an address of the loopback at which nobody listens.
const natsSelf = "127.78.0.1"

func newNATS(t *testing.T, used bool) (*home, records.Snapshot) {
	t.Helper()
	h := newHome(t, "nats", 0)
	h.put("bin/busybox", fakeBusybox)
	h.put("bin/nats-server", fakeNATS)
	h.put("disk/.keep", "")
	h.env = append(h.env, "SELF="+natsSelf, "SYSTEM_PASSWORD=secret")
	p := records.Snapshot{Replicas: 3, InitialOrdinals: []int{0, 1, 2}, Bootstrapped: used, Peers: []records.Peer{h.peer(0), h.peer(1), h.peer(2)}}
	h.set(p)
	return h, p
}

func TestANATSServerWithAnEmptyDiskJoinsUnderANewName(t *testing.T) {
	t.Parallel()
	h, _ := newNATS(t, true)
	_, wait := h.start("run")
	wait()
	if h.code != 75 || h.has("args") {
		t.Fatalf("with no leader it ends with %d: %s", h.code, h.read("log"))
	}
	h.put("jsz-nats-2.nats.d", natsKnown)
	h.start("run")
	until(t, "it runs, not "+h.read("log"), func() bool { return h.has("args") })
	name := strings.TrimSpace(h.read("disk/name"))
	if !strings.HasPrefix(name, "nats-0-") || !strings.Contains(h.read("args"), "--name "+name+" ") || strings.TrimSpace(h.read("facts/self/note")) != name {
		t.Errorf("its name is %q, its note %q, its arguments %q", name, h.read("facts/self/note"), h.read("args"))
	}
}

func TestALeaderOfNATSForgetsWhoIsPastWhenAllAreThere(t *testing.T) {
	t.Parallel()
	h, p := newNATS(t, true)
	h.put("disk/name", "nats-0-5\n")
	h.put("jsz-"+natsSelf, natsKnown)
	p.Peers[0].Note, p.Peers[1].Note = "nats-0-5", "nats-1-5" // nats-2 has not said its name yet
	h.set(p)
	h.start("run")
	looks := func(n int) func() bool { return func() bool { return strings.Count(h.read("calls"), natsSelf) >= n } }
	until(t, "it looks twice", looks(2))
	p.Peers[2].Note = "nats-2-6" // which the leader does not know yet
	h.set(p)
	until(t, "it looks twice more", looks(4))
	if log := h.read("log"); strings.Contains(log, "forgetting") {
		t.Fatalf("it forgets too early: %s", log)
	}
	p.Peers[2].Note = "nats-2-5"
	h.set(p)
	until(t, "it forgets", func() bool { return strings.Contains(h.read("log"), "forgetting Server name unknown") })
	log := h.read("log")
	if !strings.Contains(log, "forgetting nats-1-2:") || strings.Contains(log, "forgetting nats-1-5") || strings.Contains(log, "forgetting nats-2-5") {
		t.Errorf("it says %s", log)
	}
}

func TestANATSServerLeavesWhenItHasNoStreamAndReturnsAsAnother(t *testing.T) {
	t.Parallel()
	h, p := newNATS(t, true)
	h.put("disk/name", "nats-0-5\n")
	p.Replicas = 2
	p.Peers[1].Ready = true
	h.set(p)
	_, wait := h.start("decommission")
	wait()
	if h.code != 75 || h.has("disk/left") {
		t.Fatalf("one that stays is not ready: exit %d, %s", h.code, h.read("log"))
	}
	p.Peers[2].Ready = true
	h.set(p)
	h.put("disk/jetstream/APP/streams/orders/meta.inf", "")
	h.put("bin/sleep", "#!/bin/bash\necho sleep >> \"$FAKE/slept\"\nexec /bin/sleep \"$@\"\n")
	_, wait = h.start("decommission")
	until(t, "it waits for its stream to be elsewhere", func() bool { return h.has("slept") })
	if h.has("disk/left") {
		t.Error("it has left with a stream")
	}
	h.move("disk/jetstream", "moved")
	wait()
	if h.code != 0 || !h.has("disk/left") {
		t.Fatalf("exit %d: %s", h.code, h.read("log"))
	}

	h.put("jsz-nats-2.nats.d", natsKnown)
	h.put("disk/jetstream/SYS/_js_/half", "")
	h.start("run")
	until(t, "it runs, not "+h.read("log"), func() bool { return h.has("args") })
	if name := h.read("disk/name"); name == "nats-0-5\n" || h.has("disk/jetstream") || h.has("disk/left") {
		t.Errorf("it returns as %q", name)
	}
}

// Its host was off when it left, and it returns with its disk. NATS does not tell it that it was removed.
func TestANATSServerThatWasForgottenReturnsAsAnotherOnce(t *testing.T) {
	t.Parallel()
	run := func(disk string) *home {
		h, _ := newNATS(t, true)
		h.put("disk/name", "nats-0-5\n")
		h.put("disk/jetstream/APP/streams/orders/meta.inf", "")
		if disk != "" {
			h.put("disk/forgotten", disk)
		}
		h.put("facts/forgotten", "1.40\n")
		h.put("jsz-nats-2.nats.d", natsKnown)
		h.start("run")
		until(t, "it runs, not "+h.read("log"), func() bool { return h.has("args") })
		return h
	}
	for _, before := range []string{"", "1.7\n"} {
		if h := run(before); h.read("disk/name") == "nats-0-5\n" || h.has("disk/jetstream") || h.read("disk/forgotten") != "1.40\n" {
			t.Errorf("forgotten as %q before, it returns as %q, and notes %q", before, h.read("disk/name"), h.read("disk/forgotten"))
		}
	}
	// It may have streams again: the fact stays until it is ready.
	if h := run("1.40\n"); h.read("disk/name") != "nats-0-5\n" || !h.has("disk/jetstream") {
		t.Errorf("the second time it returns as %q", h.read("disk/name"))
	}
}

// What each disk must have before a message is acknowledged is NATS's to keep: the entry has to ask for it.
func TestNATSIsToldToWriteBeforeItAcknowledges(t *testing.T) {
	t.Parallel()
	conf := script(t, "nats", "nats.conf")
	_, jetstream, _ := strings.Cut(conf, "jetstream {")
	jetstream, _, _ = strings.Cut(jetstream, "}")
	if !strings.Contains(jetstream, "sync_interval: always") {
		t.Errorf("jetstream {%s}", jetstream)
	}
}

func TestANATSServerIsForgottenBeforeTheNextLeaves(t *testing.T) {
	t.Parallel()
	h, _ := newNATS(t, true)
	h.put("jsz-nats-2.nats.d", natsKnown)
	for gone, want := range map[string]int{"nats-1": 75, "nats-3": 0} {
		h.env = append(h.env, "STEAD_GONE="+gone)
		_, wait := h.start("forget")
		wait()
		if h.code != want {
			t.Errorf("forget %s: exit %d, want %d: %s", gone, h.code, want, h.read("log"))
		}
	}
	h.put("jsz-nats-2.nats.d", "{}")
	_, wait := h.start("forget")
	wait()
	if h.code != 75 {
		t.Errorf("with no leader it ends with %d: %s", h.code, h.read("log"))
	}
}
