package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

func followOf(names ...spec.SetName) *proto.FromNode {
	m := &proto.Follow{}
	for _, name := range names {
		m.Sets = append(m.Sets, wire.SetName(spec.SetRef{Namespace: "default", Name: name}))
	}
	return &proto.FromNode{Kind: &proto.FromNode_Follow{Follow: m}}
}

// ready is what a session of node 2 reported of member 1 of db.
func (r *rig) ready(is bool) {
	r.Record(store.ReportKey(ident(1)), records.Report{ID: ident(1), Token: token(11), Session: 7, Phase: records.PhaseRunning, Ready: is})
}

// followed is a store with the set db, whose only life is that of member 1 on node 2, and a session of node 1 that
// is sent sets in brief. round publishes what changed.
func followed(t *testing.T) (r *rig, n *hand, round func()) {
	r = newStill(t)
	r.begin()
	round = func() { r.catchUp(); r.server.snapshots.round(cache.Changes{All: true}) }
	r.Record(store.NodeKey("n2"), records.Node{Name: "n2", UID: "uid2"})
	r.Record(store.SessionKey("n2"), records.Session{Node: "n2", UID: "uid2", Boot: "b1", ID: 7})
	r.Record(store.StatusKey(refDB), records.SetStatus{ServiceName: "dbs"})
	r.Commit(store.Del(store.MemberKey(ident(0))))
	r.live(1, 11, "n2", "uid2")
	round()
	h := n1
	h.differences, h.interest = true, true
	return r, r.hand(h), round
}

// A node is sent in full the sets with a member there and those that it asks for, and of others only what
// of names and addresses changes; whenever that turns, it is sent what leads to the other form.
func TestANodeIsSentInFullWhatConcernsIt(t *testing.T) {
	r, n, round := followed(t)
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"at first", func() {}, "db 0>1 brief"},
		{"a member elsewhere is ready", func() { r.ready(true) }, ""},
		{"one got an address", func() { r.live(2, 12, "n2", "uid2") }, "db 1>4 brief"},
		{"it asks", func() { n.Receive(followOf("db")) }, "db 4>4 turned"},
		{"a member elsewhere is not ready", func() { r.ready(false) }, "db 4>6"},
		{"it asks for what never was, too", func() { n.Receive(followOf("db", "kv", "Not a name")) }, "kv 0>7 gone"},
		{"it asks for nothing", func() { n.Receive(followOf()) }, "db 6>4 brief turned kv 0>8 gone"},
		{"a member came here", func() { r.live(3, 13, "n1", "uid1") }, "db 4>9 brief db 9>9 turned"},
		{"it asks, too", func() { n.Receive(followOf("db")) }, ""},
		{"the member went", func() { r.Commit(store.Del(store.MemberKey(ident(3)))) }, "db 9>11"},
		{"the set went", func() { r.Commit(store.Del(store.SetKey(refDB))) }, "db 0>12 gone"},
	} {
		step.change()
		round()
		if got := strings.Join(shown(t, n.tells().pictures), " "); got != step.want {
			t.Errorf("%s: sent %q, want %q", step.name, got, step.want)
		}
	}
}

// A name that no set can have is asked for by nobody, and would only take memory.
func TestNamesThatNoSetCanHaveAreNotFollowed(t *testing.T) {
	name := func(ns spec.Namespace, set spec.SetName) *proto.SetName {
		return wire.SetName(spec.SetRef{Namespace: ns, Name: set})
	}
	got := askedSets(&proto.Follow{Sets: []*proto.SetName{name("default", "db"), name("Not", "db"), name("default", "Not"), name("", "db")}})
	if len(got) != 1 || !got[refDB] {
		t.Errorf("followed are %v", got)
	}
}

// What a node asked for in its hello is sent in full at first, and what it lost is sent in the form
// in which it has it.
func TestAHelloSaysWhatANodeAsksFor(t *testing.T) {
	r := newStill(t)
	r.begin()
	r.live(1, 11, "n2", "uid2")
	r.Commit(store.Del(store.MemberKey(ident(0))))
	r.server.snapshots.round(cache.Changes{All: true})
	asking, other := n1, hello{node: "n3", uid: "uid3", boot: "b1", cluster: "c1"}
	asking.asks = []spec.SetName{"db"}
	for _, h := range []hello{asking, other} {
		h.differences, h.interest = true, true
		n, want := r.hand(h), "db 0>1"
		if len(h.asks) == 0 {
			want += " brief"
		}
		for _, of := range []string{"at first", "again"} {
			if got := strings.Join(shown(t, n.tells().pictures), " "); got != want {
				t.Errorf("%s, %s: sent %q, want %q", h.node, of, got, want)
			}
			n.Receive(resendOf("db"))
		}
	}
}

// How much a node asks for is bounded (SAFETY S21).
func TestANodeCannotAskForAnyNumberOfSets(t *testing.T) {
	var names []spec.SetName
	for i := range maxFollowed + 1 {
		names = append(names, spec.SetName(fmt.Sprint("s", i)))
	}
	r := newStill(t)
	n := r.hand(n1)
	n.Receive(followOf(names[1:]...))
	if err := n.se.ctx.Err(); err != nil {
		t.Fatalf("it asked for as many as it may: %v", err)
	}
	n.Receive(followOf(names...))
	if err := n.Send(); status.Code(err) != codes.ResourceExhausted || r.server.Refusals()[LimitFollow] != 1 {
		t.Errorf("it asked for more: %v; counted %v", err, r.server.Refusals())
	}
	h := n1
	h.asks = names
	if _, err := decodeJoinRequest(h.message()); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("it asked for more at hello: %v", err)
	}
}

// A session that is sent sets in brief sleeps while nothing changes for its node; it is woken for sets that it
// asks for, for what all nodes are sent, and while a pong waits.
func TestASessionSleepsUnlessItIsConcerned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStill(t)
		r.begin()
		r.Record(store.StatusKey(refDB), records.SetStatus{ServiceName: "dbs"})
		r.Record(store.NodeKey("n2"), records.Node{Name: "n2", UID: "uid2"})
		r.Record(store.SessionKey("n2"), records.Session{Node: "n2", UID: "uid2", Boot: "b1", ID: 7})
		r.live(1, 11, "n2", "uid2")
		p := newSnapshotPublisher(r.Cache, "d")
		w, stop := p.watchers.add("n9", false)
		done := make(chan struct{})
		go func() { defer close(done); p.run(t.Context()) }()
		woken := func() bool {
			select {
			case <-w.moved.C():
				return true
			case <-time.After(time.Minute):
				return false
			}
		}
		for woken() {
		}
		is := false
		for _, step := range []struct {
			name   string
			change func()
			want   bool
		}{
			{"readiness", func() {}, false},
			{"an address", func() { r.live(2, 12, "n2", "uid2") }, true},
			{"readiness of a set that it asks for", func() { p.watchers.ask(w, map[spec.SetRef]bool{refDB: true}) }, true},
			{"readiness, and it asks no more", func() { p.watchers.ask(w, nil) }, false},
			{"readiness, and a pong waits", func() { w.pong.Store(true) }, true},
		} {
			is = !is
			step.change()
			r.ready(is)
			if got := woken(); got != step.want {
				t.Errorf("%s: woken is %v", step.name, got)
			}
		}
		p.watchers.ask(w, map[spec.SetRef]bool{refDB: true})
		stop()
		if len(p.watchers.nodes)+len(p.watchers.asking) > 0 {
			t.Error("a session that ended is still waited for")
		}
	})
}
