package examples

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stead-project/stead/records"
)

// The stand-ins share a folder: list is the member list, healthy exists while there
// is a quorum, calls records what was done, race is what another adds at the same moment.
const (
	fakeEtcdctl = `#!/bin/bash
while [ "${1#--}" != "$1" ]; do shift 2; done
case "$1 $2" in
"endpoint health") [ -e "$FAKE/healthy" ] ;;
"member list") cat "$FAKE/list" ;;
"member add") echo "add $3 $5" >> "$FAKE/calls"; echo "99, unstarted, , $5, , false" >> "$FAKE/list"
  [ ! -e "$FAKE/race" ] || cat "$FAKE/race" >> "$FAKE/list" ;;
"member remove") echo "remove $3" >> "$FAKE/calls"; sed -i "/^$3, /d" "$FAKE/list" ;;
*) exit 64 ;;
esac
`
	fakeEtcd = `#!/bin/bash
trap 'echo "etcd stops" >> "$FAKE/calls"; exit 9' TERM
echo "$*" > "$FAKE/args.new" && mv "$FAKE/args.new" "$FAKE/args"
[ -z "${STAY-}" ] && exit 7
while :; do sleep 0.02; done
`
)

func newEtcdHome(t *testing.T, ordinal int) *home {
	t.Helper()
	h := newHome(t, "etcd", ordinal)
	h.put("bin/etcdctl", fakeEtcdctl)
	h.put("bin/etcd", fakeEtcd)
	h.set(threeEmpty(h))
	return h
}

// threeEmpty are three initial members none of which has data, as one sees its peers.
func threeEmpty(h *home) records.Snapshot {
	return records.Snapshot{Replicas: 3, InitialOrdinals: []int{0, 1, 2}, Peers: []records.Peer{h.peer(0), h.peer(1)}}
}

const (
	otherRows = "10, started, etcd-0, http://etcd-0.etcd.d:2380, http://etcd-0.etcd.d:2379, false\n" +
		"11, started, etcd-1, http://etcd-1.etcd.d:2380, http://etcd-1.etcd.d:2379, false\n"
	mineStarted   = "12, started, etcd-2, http://etcd-2.etcd.d:2380, http://etcd-2.etcd.d:2379, false\n"
	mineUnstarted = "12, unstarted, , http://etcd-2.etcd.d:2380, , false\n"

	firstUnstarted = "11, unstarted, , http://etcd-1.etcd.d:2380, , false\n"
	third          = "13, unstarted, , http://etcd-3.etcd.d:2380, , false\n"

	wal      = "disk/etcd/member/wal/0.wal"
	resigned = "disk/etcd/member/resigned"
	ended    = "disk/etcd/member/ended"

	asNew      = "--initial-cluster etcd-0=http://etcd-0.etcd.d:2380,etcd-1=http://etcd-1.etcd.d:2380,etcd-2=http://etcd-2.etcd.d:2380 --initial-cluster-state new"
	asExisting = "--initial-cluster etcd-0=http://etcd-0.etcd.d:2380,etcd-1=http://etcd-1.etcd.d:2380,etcd-2=http://etcd-2.etcd.d:2380 --initial-cluster-state existing"
	addMe      = "add etcd-2 http://etcd-2.etcd.d:2380\n"
)

// Member etcd-2 starts; etcd itself ends at once with code 7.
func TestEtcdEntersTheClusterAsTheFactsAllow(t *testing.T) {
	// The facts about the set, where they are others than those of three members without data.
	type changed = func(p *records.Snapshot)
	peerUsed := func(p *records.Snapshot) { p.Peers[0].Volumes = records.VolumesUsed }
	from2 := func(p *records.Snapshot) { p.Replicas, p.InitialOrdinals, p.Peers = 2, []int{2, 10}, nil }
	cases := []struct {
		name  string
		set   changed
		files map[string]string // facts, disk, list
		calls string
		args  string // part of etcd's arguments; "": none on entering
		code  int    // 0: etcd's own, 7
	}{
		{name: "the first start forms the cluster without asking anybody",
			files: map[string]string{"facts/volume-new": "data first\n"}, args: asNew},
		{name: "a late first start finds a quorum and removes nobody",
			files: map[string]string{"facts/volume-new": "data first\n", "healthy": "", "list": otherRows + mineUnstarted}, args: asNew},
		{name: "the first start of a re-created set forms a cluster, too",
			files: map[string]string{"facts/volume-new": "data replaced\n"}, args: asNew},
		{name: "nobody forms a cluster when a peer's disk was used",
			set: peerUsed, files: map[string]string{"facts/volume-new": "data first\n"}, code: 75},
		{name: "nor with a replaced disk",
			set: peerUsed, files: map[string]string{"facts/volume-new": "data replaced\n", "list": otherRows + mineStarted}, code: 75},
		{name: "it joins the others, under a new id, before Stead says that the set was complete",
			set: peerUsed, files: map[string]string{"facts/volume-new": "data replaced\n", "healthy": "", "list": otherRows + mineStarted}, calls: "remove 12\n" + addMe, args: asExisting},
		{name: "the set may begin with any ordinals",
			set: from2, files: map[string]string{"facts/volume-new": "data first\n"},
			args: "--initial-cluster etcd-2=http://etcd-2.etcd.d:2380,etcd-10=http://etcd-10.etcd.d:2380 --initial-cluster-state new"},
		{name: "a restart goes on from its disk",
			files: map[string]string{"facts/bootstrapped": "1", wal: "", "healthy": "", "list": otherRows + mineStarted}},
		{name: "a restart before the cluster was complete goes on from its disk",
			files: map[string]string{"facts/volume-new": "data first\n", wal: ""}},
		{name: "a scaled-up member is added",
			files: map[string]string{"facts/bootstrapped": "1", "facts/volume-new": "data first\n", "healthy": "", "list": otherRows}, calls: addMe, args: asExisting},
		{name: "a join that was cut off after the add goes on",
			files: map[string]string{"facts/bootstrapped": "1", "facts/volume-new": "data first\n", "healthy": "", "list": otherRows + mineUnstarted}, args: asExisting},
		{name: "a replaced disk takes a new id",
			files: map[string]string{"facts/bootstrapped": "1", "facts/volume-new": "data replaced\n", "healthy": "", "list": otherRows + mineStarted}, calls: "remove 12\n" + addMe, args: asExisting},
		{name: "a replaced disk takes a new id although the last join never ended",
			files: map[string]string{"facts/bootstrapped": "1", "facts/volume-new": "data replaced\n", "healthy": "", "list": otherRows + mineUnstarted}, calls: "remove 12\n" + addMe, args: asExisting},
		{name: "a first disk of a member that etcd knows as started was lost",
			files: map[string]string{"facts/bootstrapped": "1", "facts/volume-new": "data first\n", "healthy": "", "list": otherRows + mineStarted}, calls: "remove 12\n" + addMe, args: asExisting},
		{name: "a used disk that is empty is refused",
			files: map[string]string{"facts/bootstrapped": "1", "healthy": "", "list": otherRows + mineStarted}, code: 75},
		{name: "a used disk that is empty joins once an operator removed the member",
			files: map[string]string{"facts/bootstrapped": "1", "healthy": "", "list": otherRows}, calls: addMe, args: asExisting},
		{name: "a used disk that is empty before the cluster was complete is refused",
			files: map[string]string{}, code: 75},
		{name: "nobody is removed or added without a quorum",
			files: map[string]string{"facts/bootstrapped": "1", "facts/volume-new": "data replaced\n", "list": otherRows + mineStarted}, code: 75},
		{name: "one joins at a time",
			files: map[string]string{"facts/bootstrapped": "1", "facts/volume-new": "data first\n", "healthy": "",
				"list": otherRows + third}, code: 75},
		{name: "of two that join at once the first waits until the other is out again",
			files: map[string]string{"facts/bootstrapped": "1", "facts/volume-new": "data first\n", "healthy": "",
				"list": otherRows + mineUnstarted + third}, code: 75},
		{name: "and the other takes itself out",
			files: map[string]string{"facts/bootstrapped": "1", "facts/volume-new": "data first\n", "healthy": "",
				"list": firstUnstarted + mineUnstarted}, calls: "remove 12\n", code: 75},
		{name: "the first, when the other came in between",
			files: map[string]string{"facts/bootstrapped": "1", "facts/volume-new": "data first\n", "healthy": "",
				"list": otherRows, "race": third}, calls: addMe, code: 75},
		{name: "the other, when the first came in between",
			files: map[string]string{"facts/bootstrapped": "1", "facts/volume-new": "data first\n", "healthy": "",
				"list": "", "race": firstUnstarted}, calls: addMe + "remove 99\n", code: 75},
		{name: "a member that resigned joins anew",
			files: map[string]string{"facts/bootstrapped": "1", wal: "", resigned: "", "healthy": "", "list": otherRows}, calls: addMe, args: asExisting},
		{name: "a member whose resignation came to nothing goes on from its disk",
			files: map[string]string{"facts/bootstrapped": "1", wal: "", resigned: "", "healthy": "", "list": otherRows + mineStarted}},
		{name: "a member that ended by itself goes on from its disk",
			files: map[string]string{"facts/bootstrapped": "1", wal: "", ended: "", "healthy": "", "list": otherRows + mineStarted}},
		{name: "also under the name that its service had before",
			files: map[string]string{"facts/bootstrapped": "1", wal: "", ended: "", "healthy": "", "list": otherRows + strings.ReplaceAll(mineStarted, ".etcd.d", ".old.d")}},
		{name: "and when nobody can be asked",
			files: map[string]string{"facts/bootstrapped": "1", wal: "", ended: "", "list": otherRows}},
		{name: "a member that was forgotten, and so ended by itself, joins anew",
			files: map[string]string{"facts/bootstrapped": "1", wal: "", ended: "", "healthy": "", "list": otherRows}, calls: addMe, args: asExisting},
		{name: "a member that resigned goes on from its disk when nobody can be asked",
			files: map[string]string{"facts/bootstrapped": "1", wal: "", resigned: "", "list": otherRows}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newEtcdHome(t, 2)
			p := threeEmpty(h)
			if c.set != nil {
				c.set(&p)
			}
			h.set(p)
			for name, content := range c.files {
				h.put(name, content)
			}
			_, wait := h.start()
			wait()
			if c.code == 0 {
				c.code = 7
			}
			args := h.read("args")
			if h.code != c.code || h.read("calls") != c.calls || h.has("args") != (c.code == 7) {
				t.Fatalf("code %d, calls %q, etcd %q; want %d, %q\n%s", h.code, h.read("calls"), args, c.code, c.calls, h.read("log"))
			}
			if !strings.Contains(args, c.args) || c.args == "" && strings.Contains(args, "--initial") {
				t.Errorf("etcd %q, want %q", args, c.args)
			}
			if c.code == 75 && !strings.Contains(h.read("log"), "refused: ") {
				t.Errorf("no reason is given: %q", h.read("log"))
			}
			if _, used := c.files[wal]; used && !h.has(wal) && !h.has("disk/etcd.left/wal/0.wal") {
				t.Error("the data is gone")
			}
		})
	}
}

func TestAMemberBeyondTheFirstOnesWaitsForThem(t *testing.T) {
	h := newEtcdHome(t, 3)
	h.env = append(h.env, "PATIENCE=20")
	p := threeEmpty(h)
	p.Replicas = 5
	h.set(p)
	h.put("facts/volume-new", "data first\n")
	h.put("list", otherRows+mineUnstarted)
	h.put("healthy", "")
	_, wait := h.start()
	// Complete now, but a member of the first ones is still joining.
	h.put("facts/bootstrapped", "1")
	until(t, "it says that it waits", func() bool {
		return strings.Contains(h.read("calls"), "add") || strings.Contains(h.read("log"), "still joining")
	})
	if calls := h.read("calls"); calls != "" {
		t.Fatalf("it did %q too early", calls)
	}
	h.put("list", otherRows+mineStarted)
	wait()
	if want := "add etcd-3 http://etcd-3.etcd.d:2380\n"; h.code != 7 || h.read("calls") != want {
		t.Fatalf("code %d, calls %q, want %q\n%s", h.code, h.read("calls"), want, h.read("log"))
	}
}

// Member etcd-2 runs and is told to stop; etcd ends with code 9.
func TestEtcdResignsOnlyAtAScaleDown(t *testing.T) {
	cases := []struct {
		name, reason, list string
		calls              string
		mark               bool
	}{
		{name: "scaled down it resigns before etcd stops", reason: "ScaleDown",
			list: otherRows + mineStarted, calls: "remove 12\netcd stops\n", mark: true},
		{name: "scaled down and removed before, it just stops", reason: "ScaleDown",
			list: otherRows, calls: "etcd stops\n", mark: true},
		{name: "scaled to zero the cluster stays as it is", reason: "ScaleToZero",
			list: otherRows + mineStarted, calls: "etcd stops\n"},
		{name: "updated it stays a member", reason: "Update", list: otherRows + mineStarted, calls: "etcd stops\n"},
		{name: "deleted it stays a member", reason: "Delete", list: otherRows + mineStarted, calls: "etcd stops\n"},
		{name: "without a reason it stays a member", list: otherRows + mineStarted, calls: "etcd stops\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newEtcdHome(t, 2)
			h.env = append(h.env, "STAY=1")
			h.put("facts/bootstrapped", "1")
			h.put(wal, "")
			h.put("healthy", "")
			h.put("list", c.list)
			cmd, wait := h.start()
			until(t, "etcd runs", func() bool { return h.has("args") })
			if c.reason != "" {
				h.put("facts/termination-reason", c.reason+"\n")
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			wait()
			if h.code != 9 || h.read("calls") != c.calls || h.has(resigned) != c.mark {
				t.Fatalf("code %d, calls %q, mark %v; want 9, %q, %v\n%s",
					h.code, h.read("calls"), h.has(resigned), c.calls, c.mark, h.read("log"))
			}
		})
	}
}

// Member etcd-1 is asked to forget etcd-2.
func TestEtcdForgetsWhoCouldNotResign(t *testing.T) {
	for _, c := range []struct {
		name, list string
		healthy    bool
		code       int
		calls      string
	}{
		{"who is gone is removed", otherRows + mineStarted, true, 0, "remove 12\n"},
		{"also one that had not joined yet", otherRows + mineUnstarted, true, 0, "remove 12\n"},
		{"who has resigned is known to nobody", otherRows, true, 0, ""},
		{"nobody is removed without a quorum", otherRows + mineStarted, false, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newEtcdHome(t, 1)
			h.env = append(h.env, "STEAD_GONE=etcd-2", "STEAD_GONE_FQDN=etcd-2.etcd.d")
			h.put("list", c.list)
			if c.healthy {
				h.put("healthy", "")
			}
			_, wait := h.start("forget")
			wait()
			if h.code != c.code || h.read("calls") != c.calls || h.has("args") {
				t.Errorf("code %d, calls %q; want %d, %q\n%s", h.code, h.read("calls"), c.code, c.calls, h.read("log"))
			}
		})
	}
}

// Whether etcd ended by itself or was stopped a later run sees by a mark.
func TestEtcdIsMarkedWhenItEndsByItself(t *testing.T) {
	for reason, mark := range map[string]bool{"": true, "Update\n": false} {
		h := newEtcdHome(t, 2)
		h.put("facts/bootstrapped", "1")
		h.put(wal, "")
		if reason != "" {
			h.put("facts/termination-reason", reason)
		}
		_, wait := h.start()
		wait()
		if h.has(ended) != mark || h.code != 7 {
			t.Errorf("reason %q: code %d, mark %v", reason, h.code, h.has(ended))
		}
	}
}
