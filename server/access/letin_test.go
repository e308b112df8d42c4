package access

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/people"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// What a client let in is known when it is revoked: machines that were new, and such as came back with its token
// under a name that was there, also when the node's record is gone.
func TestWhatAClientLetInIsKnown(t *testing.T) {
	r := newRig(t)
	a, b := r.open(), r.open()
	enter := func(a *Authority, token trust.JoinToken, node spec.NodeName) {
		t.Helper()
		_, csr := request(t)
		for range 2 { // the answer may be lost
			_, err := a.Enroll(t.Context(), Enrollment{Token: token.ID, Secret: token.Secret, Node: node, UID: spec.UID("u-" + node), Request: csr})
			must(t, err)
		}
	}
	token := func(node spec.NodeName, by spec.UID) trust.JoinToken {
		t.Helper()
		made, err := a.CreateToken(t.Context(), time.Hour, node, by)
		must(t, err)
		return made
	}
	must(t, keepClient(t.Context(), r.store, people.ClientFile{ID: "ann", Name: "Ann", Role: "admin"}))
	enter(a, token("", "ann"), "n1")
	enter(a, token("", ""), "n2")
	enter(a, token("", "bob"), "n3")
	enter(a, token("", ""), "n4")
	enter(a, token("n2", "ann"), "n2") // whoever has the token has n2's name from here on
	anns, carls := token("n4", "ann"), token("n4", "carl")
	r.between(func() { enter(b, carls, "n4") })
	enter(a, anns, "n4") // two at the same moment
	r.put(store.Del(store.NodeKey("n1")), store.Put(store.NodeKey("n8"), store.Encode(records.Node{Name: "n8", UID: "u-n8", EnrolledBy: "old"})))
	unused := token("", "ann")

	all, err := a.Clients(t.Context())
	must(t, err)
	let := []Admitted{{Name: "n1", UID: "u-n1"}, {Name: "n2", UID: "u-n2", Again: true}, {Name: "n4", UID: "u-n4", Again: true}}
	want := map[spec.UID]*LetIn{
		"ann": {Tokens: []string{unused.ID}, Nodes: let}, "bob": {Nodes: []Admitted{{Name: "n3", UID: "u-n3"}}}, "carl": {Nodes: []Admitted{{Name: "n4", UID: "u-n4", Again: true}}}, "old": {Nodes: []Admitted{{Name: "n8", UID: "u-n8"}}},
	}
	if !reflect.DeepEqual(all.LetIn, want) {
		t.Errorf("let in: %+v", *all.LetIn["ann"])
	}
	if len(all.Known) != 1 || !slices.Equal(all.Unrecorded, []spec.NodeName{"n8"}) {
		t.Errorf("known %v, unrecorded %v", all.Known, all.Unrecorded)
	}
	gone, _, err := a.RevokeClient(t.Context(), "ann", false)
	must(t, err)
	if !slices.Equal(gone.Nodes, let) || !slices.Equal(gone.Tokens, []string{unused.ID}) {
		t.Errorf("revoked %+v", gone)
	}
	may := func(node string) error {
		return a.Admit(t.Context(), trust.Subject{Cluster: a.Cluster(), Role: trust.RoleNode, Name: node, UID: spec.UID("u-" + node)})
	}
	must(t, may("n1"))
	gone, _, err = a.RevokeClient(t.Context(), "ann", true)
	must(t, err)
	for _, n := range gone.Nodes {
		if !n.Revoked {
			t.Errorf("%s is told to stay", n.Name)
		}
	}
	for node, revoked := range map[string]bool{"n1": true, "n2": true, "n3": false, "n4": true, "n8": false} {
		if err := may(node); errors.Is(err, ErrRevoked) != revoked {
			t.Errorf("%s: %v", node, err)
		}
	}
}

func TestEntriesOfAMachineAreBounded(t *testing.T) {
	a := people.Admission{UID: "u"}
	for i := range 100 {
		a = a.With(people.TokenUse{Token: string(rune('a' + i)), By: spec.UID(string(rune('a' + i)))})
	}
	if n := len(a.Entries); n != 32 || !a.ByClient("a") || !a.ByClient(spec.UID(string(rune('a'+99)))) || a.ByClient("b") {
		t.Errorf("%d entries: %+v", n, a.Entries)
	}
}

// tokenReads counts how often all join tokens are read.
type tokenReads struct {
	store.Store
	n int
}

func (r *tokenReads) Snapshot(ctx context.Context, prefix string) (store.Rev, []store.KV, error) {
	if kind, _ := store.Kind(prefix); kind == store.KindToken {
		r.n++
	}
	return r.Store.Snapshot(ctx, prefix)
}

// What ends and what is told of it are of one read.
func TestARevocationReadsTheTokensOnce(t *testing.T) {
	a := newRig(t).open()
	_, err := a.CreateToken(t.Context(), time.Hour, "", "ann")
	must(t, err)
	reads := &tokenReads{Store: a.cfg.Store}
	a.cfg.Store = reads
	gone, _, err := a.RevokeClient(t.Context(), "ann", false)
	must(t, err)
	if reads.n != 1 || len(gone.Tokens) != 1 {
		t.Errorf("the tokens were read %d times, and %v ended; want once, and one", reads.n, gone.Tokens)
	}
	if left, err := a.Tokens(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
