package agent

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

var other = spec.SetRef{Namespace: "default", Name: "kv"}

// elsewhere is a set with a member on another host, of which the server says everything, or only the names.
func elsewhere(rev int64, brief bool) records.Snapshot {
	s := picture(rev, 1)
	s.Ref, s.Service, s.Names = other, "kv", []records.DNSName{{Name: "kv"}}
	s.Peers = []records.Peer{{
		Name: "kv-0", FQDN: "kv-0.kv.default.svc.cluster.local", Address: netip.MustParseAddr("10.88.0.9"),
		Ready: true, Node: "n2", Host: netip.MustParseAddr("192.0.2.2"),
	}}
	if brief {
		return s.InBrief()
	}
	return s
}

// follows are the last sets that the agent asked for, by hello or later.
func (n *node) follows() (names []string) {
	synctest.Wait()
	n.script.with(func() {
		for _, name := range n.script.follow.GetSets() {
			names = append(names, wire.ToSetRef(name).String())
		}
	})
	return names
}

// asks are the questions of DNS to the agent.
func (n *node) asks() *session.Interests {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.interests
}

// shown is the set as DNS was given it last.
func (n *node) shown() (records.Snapshot, bool) {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	at := slices.IndexFunc(n.dns, func(s records.Snapshot) bool { return s.Ref == other })
	if at < 0 {
		return records.Snapshot{}, false
	}
	return n.dns[at], true
}

// A set that is asked for by name comes in full, and who asked waits until DNS has it. It is asked for in
// later sessions, too, and no more an hour after the last question.
func TestASetIsFollowedFromTheFirstQuestionToAnHourAfterTheLast(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.with(func() {
			if !n.script.hellos[0].GetInterest() {
				t.Error("the agent does not say that it takes sets in brief")
			}
		})
		n.script.say(stateOf(elsewhere(10, true), 0, 3))
		if s, ok := n.shown(); !ok || !s.Brief || s.Peers[0].Ready {
			t.Fatalf("DNS has %+v", s)
		}
		done := make(chan error, 1)
		follow := func(f func(context.Context) error) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			done <- f(ctx)
		}
		ask := func(ctx context.Context) error { return n.asks().Follow(ctx, other) }
		go follow(ask)
		if got := n.follows(); !slices.Equal(got, []string{"default/kv"}) {
			t.Fatalf("the server was asked for %q", got)
		}
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the set did not come: %v", err)
		}
		go follow(func(ctx context.Context) error {
			return n.asks().FollowAddress(ctx, netip.MustParseAddr("10.88.0.9"))
		})
		synctest.Wait()
		n.script.say(stateOf(elsewhere(11, false), 0, 4))
		if err := <-done; err != nil {
			t.Errorf("the set came: %v", err)
		}
		if s, ok := n.shown(); !ok || s.Brief || !s.Peers[0].Ready {
			t.Errorf("DNS has %+v", s)
		}
		go follow(ask)
		if err := <-done; err != nil {
			t.Errorf("it is there: %v", err)
		}
		time.Sleep(50 * time.Minute)
		n.asks().Asked(other)
		time.Sleep(50 * time.Minute)
		if got := n.follows(); len(got) != 1 {
			t.Errorf("fifty minutes after the last question: %q", got)
		}
		n.script.down()
		n.script.up()
		time.Sleep(time.Minute)
		n.script.with(func() {
			if h := n.script.hellos; len(h) < 2 || len(h[len(h)-1].GetFollow().GetSets()) != 1 {
				t.Error("the next session does not begin with what is asked for")
			}
		})
		time.Sleep(20 * time.Minute)
		if got := n.follows(); len(got) != 0 {
			t.Errorf("more than an hour after the last question: %q", got)
		}
	})
}

// What there is none of is not waited for: a set that the server does not have, an address of nobody.
func TestWhatDoesNotExistIsNotWaitedFor(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(stateOf(elsewhere(10, true), 0, 3))
		synctest.Wait()
		for name, f := range map[string]func() error{
			"a set":      func() error { return n.asks().Follow(t.Context(), spec.SetRef{Namespace: "default", Name: "no"}) },
			"an address": func() error { return n.asks().FollowAddress(t.Context(), netip.MustParseAddr("10.88.0.1")) },
		} {
			if err := f(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		done := make(chan error, 1)
		go func() { done <- n.asks().Follow(t.Context(), other) }()
		synctest.Wait()
		gone := records.Snapshot{Sequence: spec.Sequence{Epoch: 1, Rev: 11}, Ref: other, Gone: true}
		n.script.say(stateOf(gone, 0, 4))
		if err := <-done; err != nil {
			t.Errorf("a set that went: %v", err)
		}
	})
}

// DNS is given nothing before anything is known of sets: it would deny all of them. That there is none is
// known from a server.
func TestNothingIsDeniedBeforeAServerSaidWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.run()
		given := func() (times int) {
			synctest.Wait()
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.given
		}
		if given() != 0 {
			t.Error("DNS was given sets before a server sent any")
		}
		n.script.say(&proto.ToNode{Kind: &proto.ToNode_Pictures{Pictures: &proto.Pictures{Sequence: wire.Sequence(spec.Sequence{Epoch: 1, Rev: 10}), Full: true}}})
		if given() != 1 {
			t.Error("DNS was not given that there is no set")
		}
	})
}
