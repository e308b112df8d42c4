package access

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// A machine that was let in is known from that moment: it can be seen, revoked and removed,
// and only a node that is known gets its next certificate.
func TestAMachineIsKnownWhenItIsLetIn(t *testing.T) {
	r := newRig(t)
	a := r.open()
	enter := func(node spec.NodeName, uid spec.UID, by spec.UID) error {
		token, err := a.CreateToken(t.Context(), time.Hour, "", by)
		must(t, err)
		_, csr := request(t)
		_, err = a.Enroll(t.Context(), Enrollment{Token: token.ID, Secret: token.Secret, Node: node, UID: uid, Request: csr})
		return err
	}
	must(t, enter("n1", "u1", "ann1"))
	_, kvs, err := r.store.Get(t.Context(), store.NodeKey("n1"))
	must(t, err)
	node, err := store.Decode[records.Node](kvs[store.NodeKey("n1")])
	must(t, err)
	if node.Name != "n1" || node.UID != "u1" || node.EnrolledBy != "ann1" {
		t.Errorf("the record is %+v", node)
	}
	token := r.token(a, "")
	_, csr := request(t)
	_, err = a.Enroll(t.Context(), Enrollment{Token: token.ID, Secret: []byte("wrong"), Node: "n2", UID: "u2", Request: csr})
	if _, kvs, _ := r.store.Get(t.Context(), store.NodeKey("n2")); !errors.Is(err, ErrToken) || len(kvs) > 0 {
		t.Errorf("who was refused is known: %v", err)
	}
	renew := func(name string, uid spec.UID) error {
		_, csr := request(t)
		_, err := a.Renew(t.Context(), csr, trust.Subject{Role: trust.RoleNode, Name: name, UID: uid})
		return err
	}
	must(t, renew("n1", "u1"))
	for _, c := range []struct {
		name string
		uid  spec.UID
	}{{"n1", "u2"}, {"n9", "u1"}} {
		if err := renew(c.name, c.uid); !errors.Is(err, ErrForgotten) {
			t.Errorf("%s %s: got %v", c.name, c.uid, err)
		}
	}
	r.put(store.Del(store.NodeKey("n1")))
	if err := renew("n1", "u1"); !errors.Is(err, ErrForgotten) {
		t.Errorf("a node that was removed: got %v", err)
	}
}

// With a client goes what it could let in, also what it makes at this moment.
func TestJoinTokensEndWithTheClientThatMadeThem(t *testing.T) {
	r := newRig(t)
	a, b := r.open(), r.open()
	make := func(by spec.UID) trust.JoinToken {
		t.Helper()
		token, err := a.CreateToken(t.Context(), time.Hour, "", by)
		must(t, err)
		return token
	}
	enter := func(token trust.JoinToken, node string) error {
		_, csr := request(t)
		_, err := a.Enroll(t.Context(), Enrollment{Token: token.ID, Secret: token.Secret, Node: spec.NodeName(node), UID: spec.UID("u-" + node), Request: csr})
		return err
	}
	if _, err := a.CreateToken(t.Context(), time.Hour+time.Second, "", "ann"); !errors.Is(err, ErrRequest) {
		t.Errorf("a client's token of more than an hour: %v", err)
	}
	if _, err := a.CreateToken(t.Context(), maxTokenTTL, "", ""); err != nil {
		t.Errorf("root's token of a week: %v", err)
	}
	used, unused, bobs, roots := make("ann"), make("ann"), make("bob"), make("")
	must(t, enter(used, "n1"))
	gone, _, err := a.RevokeClient(t.Context(), "ann", false)
	must(t, err)
	if !slices.Equal(gone.Tokens, []string{unused.ID}) || !slices.Equal(gone.Nodes, []Admitted{{Name: "n1", UID: "u-n1"}}) {
		t.Errorf("ended %+v", gone)
	}
	for name, token := range map[string]trust.JoinToken{"n2": used, "n3": unused} {
		if err := enter(token, name); !errors.Is(err, ErrToken) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	must(t, enter(bobs, "n4"))
	must(t, enter(roots, "n5"))
	if _, err := a.CreateToken(t.Context(), time.Minute, "", "ann"); !errors.Is(err, ErrRevoked) {
		t.Errorf("it makes another: %v", err)
	}

	// The revocation comes while a machine is let in by a token that the list did not show.
	late := make("carl")
	r.between(func() { must(t, b.Revoke(t.Context(), "carl")) })
	if err := enter(late, "n6"); !errors.Is(err, ErrToken) {
		t.Errorf("at the same moment: got %v", err)
	}
	r.between(func() { must(t, b.Revoke(t.Context(), "dora")) })
	if _, err := a.CreateToken(t.Context(), time.Minute, "", "dora"); !errors.Is(err, ErrRevoked) {
		t.Errorf("made at the same moment: got %v", err)
	}
}
