package worker

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// onHost is a life in the network of its host.
func onHost(l *records.Life) {
	l.Template.Spec.HostNetwork = true
	l.Member.HostNetwork, l.Member.Address = true, netip.MustParseAddr("192.0.2.1")
}

// TestALifeInTheNetworkOfItsHostIsNotAttached: its sandbox says so, and the host's namespace is given to no network; what a
// server that does not know of it assigned does not start.
func TestALifeInTheNetworkOfItsHostIsNotAttached(t *testing.T) {
	scenario(t, func(t *testing.T, n *node) {
		calls := n.calls()
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), onHost))
		n.wantReady()
		if boxes, err := n.host.Sandboxes(t.Context()); err != nil || len(boxes) != 1 || !boxes[0].HostNetwork {
			t.Errorf("%+v, %v", boxes, err)
		}
		if list := calls(); slices.ContainsFunc(list, func(c string) bool { return strings.HasPrefix(c, "Attach") }) {
			t.Errorf("it was attached: %v", list)
		}
	})
	scenario(t, func(t *testing.T, n *node) {
		n.run()
		n.w.Tell(with(life(5, records.GoalRun), onHost, func(l *records.Life) { l.Member.HostNetwork = false }))
		n.wantCause(causes.SandboxError, "a server of an earlier version assigned it without its host's address")
	})
}

// It is probed at the address that its host has now.
func TestALifeInTheNetworkOfItsHostIsReachedAtTheHost(t *testing.T) {
	for _, c := range []struct {
		node   string
		onHost bool
		want   string
	}{
		{"192.0.2.9", true, "192.0.2.9"},
		{"", true, "192.0.2.1"},
		{"192.0.2.9", false, "10.88.0.1"},
	} {
		l := with(life(5, records.GoalRun), func(l *records.Life) { l.Member.Address = netip.MustParseAddr("10.88.0.1") })
		if c.onHost {
			onHost(&l)
		}
		w := &subject{mailbox: &mailbox{c: &Config{Node: files.Node{HostIP: c.node}}}, life: &l}
		if got := w.address(); got.String() != c.want {
			t.Errorf("node %q, in its network %v: probed at %s, want %s", c.node, c.onHost, got, c.want)
		}
	}
}
