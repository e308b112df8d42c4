package rotation

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/spec"
)

// said is what a server says that trusts these, and calls by the last one.
func said(trusts ...sealing.AuthorityID) *sealing.ServerAuthorities {
	return &sealing.ServerAuthorities{Trusts: trusts, Calls: trusts[len(trusts)-1]}
}

type saying = map[string]*sealing.ServerAuthorities

// SAFETY S24.
func TestTheNextStepOfAnAuthoritysRotation(t *testing.T) {
	for _, tt := range []struct {
		name  string
		w     AuthorityWorld
		issue bool
		wait  string
	}{
		{name: "it is not rotated", w: AuthorityWorld{Now: "a", Servers: []string{"s1"}, Settled: true}},
		{name: "a server that is known trusts the old one alone",
			w: AuthorityWorld{Now: "a", Next: "b", Servers: []string{"s1", "s2"}, Said: saying{"s1": said("a", "b"), "s2": said("a")}, Settled: true}, wait: "waits for s2: start"},
		{name: "a server of an earlier release says nothing",
			w: AuthorityWorld{Now: "a", Next: "b", Servers: []string{"s1", "s2"}, Said: saying{"s1": said("a", "b")}, Settled: true}, wait: "an earlier release must be upgraded"},
		{name: "servers that are not known have a moment", w: AuthorityWorld{Now: "a", Next: "b", Servers: []string{"s1"}, Said: saying{"s1": said("a", "b")}}, wait: "moment"},
		{name: "all trust it", w: AuthorityWorld{Now: "a", Next: "b", Servers: []string{"s1"}, Said: saying{"s1": said("a", "b")}, Settled: true}, issue: true},
		{name: "a server that is not waited for",
			w: AuthorityWorld{Now: "a", Next: "b", Without: []string{"s2"}, Servers: []string{"s1", "s2"}, Said: saying{"s1": said("a", "b")}, Settled: true}, issue: true},
		{name: "it signs already", w: AuthorityWorld{Now: "a", Next: "b", Issuing: true, Servers: []string{"s9"}, Settled: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			issue, wait := NextAuthority(tt.w)
			if issue != tt.issue || !strings.Contains(wait, tt.wait) || (wait == "") != (tt.wait == "") {
				t.Errorf("got %v, %q; want %v, %q", issue, wait, tt.issue, tt.wait)
			}
		})
	}
}

func TestWhenAnAuthorityMayBeRetired(t *testing.T) {
	moved := AuthorityWorld{Now: "a", Next: "b", Issuing: true, Servers: []string{"s1"}, Said: saying{"s1": said("a", "b")},
		Nodes: []CertifiedNode{{"n1", "b"}}, Clients: []CertifiedClient{{"ann", "1f", "b"}}}
	with := func(change func(*AuthorityWorld)) AuthorityWorld {
		w := moved
		change(&w)
		return w
	}
	twoNodes := with(func(w *AuthorityWorld) { w.Nodes = []CertifiedNode{{"n1", "b"}, {"n2", ""}, {"n3", "z"}} })
	oldClient := with(func(w *AuthorityWorld) { w.Clients = []CertifiedClient{{"ann", "1f", ""}, {"bob", "2e", "b"}} })
	awayServer := with(func(w *AuthorityWorld) { w.Servers = []string{"s1", "s2"} })
	for _, tt := range []struct {
		name  string
		w     AuthorityWorld
		leave Leave
		says  []string // none: it may be
		not   string
	}{
		{name: "nobody depends on it", w: moved},
		{name: "there is no other", w: AuthorityWorld{Now: "a"}, says: []string{"no rotation is under way"}},
		{name: "the other does not sign yet", w: with(func(w *AuthorityWorld) { w.Issuing, w.Said = false, nil }), says: []string{"does not sign yet", "waits for s1"}},
		{name: "nodes have not moved", w: twoNodes, says: []string{"nodes n2, n3 have", "--without-node"}, not: "n1"},
		{name: "one of them is not waited for", w: twoNodes, leave: Leave{Nodes: []spec.NodeName{"n2"}}, says: []string{"nodes n3 have"}, not: "n2"},
		{name: "none of them is", w: twoNodes, leave: Leave{Nodes: []spec.NodeName{"n2", "n3"}}},
		{name: "a client has an old file", w: oldClient, says: []string{"ann (1f)", "--end-clients"}, not: "bob"},
		{name: "it ends", w: oldClient, leave: Leave{Clients: true}},
		{name: "a server was not there", w: awayServer, says: []string{"s2 still call"}, not: "s1"},
		{name: "it is not waited for", w: with(func(w *AuthorityWorld) { w.Servers, w.Without = []string{"s1", "s2"}, []string{"s2"} })},
		{name: "a server trusts both, and does not use the new one yet", w: with(func(w *AuthorityWorld) {
			w.Said = saying{"s1": {Trusts: []sealing.AuthorityID{"a", "b"}, Calls: "a"}}
		}), says: []string{"s1 still call"}},
		{name: "all at once", w: with(func(w *AuthorityWorld) {
			w.Said, w.Nodes, w.Clients = nil, twoNodes.Nodes, oldClient.Clients
		}), says: []string{"s1 still call", "n2, n3", "ann (1f)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := RetireAuthority(tt.w, tt.leave)
			if (err == nil) != (len(tt.says) == 0) {
				t.Fatalf("got %v; want %q", err, tt.says)
			}
			for _, text := range tt.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
			if err != nil && tt.not != "" && strings.Contains(err.Error(), tt.not) {
				t.Errorf("%q names %s", err, tt.not)
			}
		})
	}
}

func TestWhenAnAuthorityMayBeRotated(t *testing.T) {
	old := AuthorityWorld{Now: "b", Servers: []string{"s1", "s2", "s3"}, Said: saying{
		"s1": {Store: []sealing.AuthorityID{"a"}}, "s2": {Store: []sealing.AuthorityID{"a", "b"}}, "s3": {}}}
	if err := RotateAuthority(AuthorityWorld{Now: "a", Servers: []string{"s1"}}, nil); err != nil {
		t.Errorf("the first time: %v", err)
	}
	if err := RotateAuthority(AuthorityWorld{Now: "a", Next: "b"}, nil); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("a second rotation begins beside one: %v", err)
	}
	if err := RotateAuthority(old, nil); err == nil || !strings.Contains(err.Error(), "the store of s1 knows") {
		t.Errorf("a store that would know nobody: %v", err)
	}
	if err := RotateAuthority(old, []string{"s1"}); err != nil {
		t.Errorf("its server is not waited for: %v", err)
	}
}
