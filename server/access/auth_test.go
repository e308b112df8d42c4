package access

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
	"github.com/stead-project/stead/trust"
)

const cluster = "0123456789abcdef"

// rig is a store with a cluster, and its key.
type rig struct {
	t     *testing.T
	store *memstore.Store
	key   *seal.Key
}

func newRig(t *testing.T) *rig {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{7}, seal.KeyBytes))
	must(t, err)
	r := &rig{t, memstore.New(), key}
	r.put(store.Put(store.ClusterKey, []byte(cluster)))
	t.Cleanup(func() { _ = r.store.Close() })
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) put(ops ...store.Op) {
	r.t.Helper()
	_, err := r.store.Commit(r.t.Context(), store.Txn{Then: ops})
	must(r.t, err)
}

func (r *rig) config() AuthorityConfig {
	return AuthorityConfig{Store: r.store, Key: r.key, Server: "s1", Addresses: []string{"127.0.0.1:7443", "s1.example:7443"}, Logger: slog.New(slog.DiscardHandler)}
}

func (r *rig) open() *Authority {
	r.t.Helper()
	a, err := OpenAuthority(r.t.Context(), r.config())
	must(r.t, err)
	return a
}

func (r *rig) token(a *Authority, node spec.NodeName) trust.JoinToken {
	r.t.Helper()
	token, err := a.CreateToken(r.t.Context(), time.Hour, node, "")
	must(r.t, err)
	return token
}

// request is a new key and what asks for its certificate.
func request(t *testing.T) (*trust.Credential, []byte) {
	t.Helper()
	c, err := trust.NewCredential(nil)
	must(t, err)
	der, err := c.Request()
	must(t, err)
	return c, der
}

// hides checks that the secret stands in no value of the store, in whatever form.
func (r *rig) hides(secret []byte) {
	r.t.Helper()
	_, kvs, err := r.store.Snapshot(r.t.Context(), "")
	must(r.t, err)
	found := 0
	for _, kv := range kvs {
		var record struct{ Hash, Certificate, Sealed, Key []byte }
		if json.Unmarshal(kv.Value, &record) == nil {
			found++
		}
		for _, b := range [][]byte{kv.Value, record.Hash, record.Certificate, record.Sealed, record.Key} {
			if bytes.Contains(b, secret) || bytes.Contains(b, []byte(base64.RawURLEncoding.EncodeToString(secret))) ||
				bytes.Contains(b, []byte(hex.EncodeToString(secret))) {
				r.t.Errorf("%s shows it", kv.Key)
			}
		}
	}
	if found == 0 {
		r.t.Error("no record was looked at")
	}
}

func TestOneAuthorityWhoeverComesFirst(t *testing.T) {
	r := newRig(t)
	var other *Authority
	r.between(func() { other = r.open() })
	first, again := r.open(), r.open()
	for _, a := range []*Authority{first, other} {
		if !bytes.Equal(a.Certificate(), again.Certificate()) {
			t.Fatal("two servers have two authorities")
		}
	}
	secret, err := again.standing.Load().now.key.Bytes()
	must(t, err)
	r.hides(secret)
	foreign, err := seal.NewKey(bytes.Repeat([]byte{8}, seal.KeyBytes))
	must(t, err)
	c := r.config()
	c.Key = foreign
	if _, err := OpenAuthority(t.Context(), c); !errors.Is(err, seal.ErrKey) {
		t.Fatalf("with another key: got %v", err)
	}
}

func TestAJoinTokenLetsOneMachineInOnce(t *testing.T) { synctest.Test(t, once) }

func once(t *testing.T) {
	r := newRig(t)
	a := r.open()
	token := r.token(a, "")
	mine, first := request(t)
	enter := func(e Enrollment) error {
		t.Helper()
		der, err := a.Enroll(t.Context(), e)
		if err == nil {
			leaf, err := x509.ParseCertificate(der)
			must(t, err)
			s, err := trust.SubjectOf(leaf)
			must(t, err)
			if want := (trust.Subject{Cluster: cluster, Role: trust.RoleNode, Name: string(e.Node), UID: e.UID}); s != want {
				t.Fatalf("the certificate names %+v, want %+v", s, want)
			}
		}
		return err
	}
	right := Enrollment{Token: token.ID, Secret: token.Secret, Node: "n1", UID: "u1", Request: first}
	forged := right
	forged.Secret = bytes.Repeat([]byte{1}, len(token.Secret))
	unknown := right
	unknown.Token = "000000000000"
	strange := right
	strange.Token = "../secrets"
	for name, e := range map[string]Enrollment{"forged": forged, "unknown": unknown, "strange": strange} {
		if err := enter(e); !errors.Is(err, ErrToken) {
			t.Fatalf("%s: got %v", name, err)
		}
	}
	must(t, enter(right))
	must(t, enter(right)) // the answer may have been lost
	_, second := request(t)
	for name, change := range map[string]func(*Enrollment){
		"another key":  func(e *Enrollment) { e.Request = second },
		"another node": func(e *Enrollment) { e.Node = "n2" },
	} {
		e := right
		change(&e)
		if err := enter(e); !errors.Is(err, ErrToken) {
			t.Fatalf("used by %s: got %v", name, err)
		}
	}
	der, err := a.Enroll(t.Context(), right)
	must(t, err)
	must(t, mine.Take(der, a.Certificate()))
	r.hides(token.Secret)
	time.Sleep(time.Hour - time.Second)
	must(t, enter(right))
	time.Sleep(time.Second)
	synctest.Wait()
	if err := enter(right); !errors.Is(err, ErrToken) {
		t.Fatalf("expired: got %v", err)
	}
}

// between runs f once, when somebody is about to write what he has decided.
func (r *rig) between(f func()) {
	r.store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" {
			r.store.Fail(nil)
			f()
		}
		return memstore.Fault{}
	})
}

// Whatever changes while a machine is let in counts.
func TestOfTwoMachinesWithOneJoinTokenOneGetsIn(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(*rig, *Authority, trust.JoinToken)
		want error
	}{
		{"another machine uses the token", func(r *rig, b *Authority, token trust.JoinToken) {
			_, csr := request(t)
			_, err := b.Enroll(t.Context(), Enrollment{Token: token.ID, Secret: token.Secret, Node: "n2", UID: "u2", Request: csr})
			must(t, err)
		}, ErrToken},
		{"the token is revoked", func(r *rig, b *Authority, token trust.JoinToken) {
			_, err := b.RevokeToken(t.Context(), token.ID)
			must(t, err)
		}, ErrToken},
		{"the uid is revoked", func(r *rig, b *Authority, _ trust.JoinToken) {
			must(t, b.Revoke(t.Context(), "u1"))
		}, ErrRevoked},
		{"another machine joins by this name", func(r *rig, b *Authority, _ trust.JoinToken) {
			r.put(store.Put(store.NodeKey("n1"), store.Encode(records.Node{Name: "n1", UID: "u2"})))
		}, ErrTaken},
	} {
		r := newRig(t)
		a, b := r.open(), r.open()
		token := r.token(a, "")
		r.between(func() { c.then(r, b, token) })
		_, csr := request(t)
		_, err := a.Enroll(t.Context(), Enrollment{Token: token.ID, Secret: token.Secret, Node: "n1", UID: "u1", Request: csr})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestWhoMayJoin(t *testing.T) {
	r := newRig(t)
	a := r.open()
	r.put(store.Put(store.NodeKey("old"), store.Encode(records.Node{Name: "old", UID: "u-old"})))
	must(t, a.Revoke(t.Context(), "u-bad"))
	for _, c := range []struct {
		name     string
		tokenFor spec.NodeName
		node     spec.NodeName
		uid      spec.UID
		want     error
	}{
		{"a new node", "", "new", "u-new", nil},
		{"a new node by a token for it", "next", "next", "u-next", nil},
		{"a node that enrolled and said no hello yet, by any token", "", "new", "u-new", ErrJoined},
		{"another name for it", "", "new2", "u-new", ErrMachine},
		{"another node's token", "other", "new", "u-new", ErrToken},
		{"a name that is another machine's", "", "old", "u-new", ErrTaken},
		{"a name that is another machine's, by a token for it", "old", "old", "u-new", ErrTaken},
		{"a node that joined before, by any token", "", "old", "u-old", ErrJoined},
		{"a node that joined before, by a token for it", "old", "old", "u-old", nil},
		{"a uid that was revoked", "", "bad", "u-bad", ErrRevoked},
		{"another name for a machine that has joined", "", "two", "u-old", ErrMachine},
		{"... by a token for that name", "two", "two", "u-old", ErrMachine},
		{"no name", "", "No/Name", "u-new", ErrRequest},
		{"no uid", "", "new", "u/new", ErrRequest},
	} {
		token := r.token(a, c.tokenFor)
		_, csr := request(t)
		_, err := a.Enroll(t.Context(), Enrollment{Token: token.ID, Secret: token.Secret, Node: c.node, UID: c.uid, Request: csr})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	token := r.token(a, "")
	weak, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	must(t, err)
	short, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, weak)
	must(t, err)
	_, good := request(t)
	broken := bytes.Clone(good)
	broken[len(broken)-1] ^= 1
	for name, csr := range map[string][]byte{"none": nil, "of another curve": short, "not signed by its key": broken} {
		if _, err := a.Enroll(t.Context(), Enrollment{Token: token.ID, Secret: token.Secret, Node: "n", UID: "u", Request: csr}); !errors.Is(err, ErrRequest) {
			t.Errorf("request %s: got %v", name, err)
		}
	}
}

func TestJoinTokensAreShownAndRevoked(t *testing.T) {
	r := newRig(t)
	a := r.open()
	for _, ttl := range []time.Duration{0, time.Millisecond, 8 * 24 * time.Hour} {
		if _, err := a.CreateToken(t.Context(), ttl, "", ""); !errors.Is(err, ErrRequest) {
			t.Errorf("of %s: got %v", ttl, err)
		}
	}
	token := r.token(a, "n1")
	all, err := a.Tokens(t.Context())
	must(t, err)
	if len(all) != 1 || all[0].ID != token.ID || all[0].Node != "n1" || all[0].UsedBy != "" {
		t.Fatalf("got %+v", all)
	}
	for _, want := range []bool{true, false} {
		if there, err := a.RevokeToken(t.Context(), token.ID); err != nil || there != want {
			t.Fatalf("got %v, %v", there, err)
		}
	}
	_, csr := request(t)
	if _, err := a.Enroll(t.Context(), Enrollment{Token: token.ID, Secret: token.Secret, Node: "n1", UID: "u1", Request: csr}); !errors.Is(err, ErrToken) {
		t.Fatalf("revoked: got %v", err)
	}
}

// A token is used up by a write whose outcome nobody learned: the machine asks again.
func TestAMachineWhoseAnswerWasLostAsksAgain(t *testing.T) {
	r := newRig(t)
	a := r.open()
	token := r.token(a, "")
	_, csr := request(t)
	e := Enrollment{Token: token.ID, Secret: token.Secret, Node: "n1", UID: "u1", Request: csr}
	r.store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" {
			return memstore.Fault{Err: store.ErrUnknown, Applied: true}
		}
		return memstore.Fault{}
	})
	if _, err := a.Enroll(t.Context(), e); !errors.Is(err, store.ErrUnknown) {
		t.Fatalf("got %v", err)
	}
	r.store.Fail(nil)
	if _, err := a.Enroll(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func TestTheServersCertificateIsMadeAnewInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a := r.open()
		serial := func() string {
			t.Helper()
			c, err := a.serving.at(a.standing.Load())
			must(t, err)
			roots := x509.NewCertPool()
			roots.AddCert(a.standing.Load().now.cert)
			for _, host := range []string{"127.0.0.1", "s1.example"} {
				if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
					t.Fatal(err)
				}
			}
			return c.Leaf.SerialNumber.String()
		}
		first := serial()
		time.Sleep(DefaultLife/2 + time.Minute)
		if serial() != first {
			t.Error("it was made anew too early")
		}
		time.Sleep(DefaultLife / 4)
		if serial() == first {
			t.Error("it was not made anew")
		}
	})
}
