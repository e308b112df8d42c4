package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// authorityOf makes an authority whose certificate is as an earlier release made it: nothing below it signs.
func earlierAuthority(t *testing.T, key *seal.Key) sealing.Authority {
	t.Helper()
	mine, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := newTemplate(authorityLife)
	template.Subject.CommonName = "Stead cluster " + cluster
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero, template.KeyUsage = true, true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, mine.Public(), mine)
	must(t, err)
	plain, err := x509.MarshalPKCS8PrivateKey(mine)
	must(t, err)
	return sealing.Authority{Certificate: der, Sealed: key.SealAt(store.AuthorityKey, plain)}
}

// change writes the authority's record as change makes it of the present one.
func (r *rig) change(change func(*sealing.Authority)) {
	r.t.Helper()
	_, kvs, err := r.store.Get(r.t.Context(), store.AuthorityKey)
	must(r.t, err)
	record, err := store.Decode[sealing.Authority](kvs[store.AuthorityKey])
	must(r.t, err)
	change(&record)
	r.put(store.Put(store.AuthorityKey, store.Encode(record)))
}

// follow has a be as the store has it.
func (r *rig) follow(a *Authority) {
	r.t.Helper()
	_, _, err := a.fresh(r.t.Context())
	must(r.t, err)
}

// shake connects two sides, and returns what each says.
func shake(t *testing.T, server, client *tls.Config) (fromServer, fromClient error) {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	done := make(chan error, 1)
	go func() {
		c := tls.Server(here, server)
		err := c.HandshakeContext(t.Context())
		if err == nil {
			_, err = c.Write([]byte{1})
		} else {
			_ = here.Close()
		}
		done <- err
	}()
	c := tls.Client(there, client)
	err := c.HandshakeContext(t.Context())
	if err == nil { // a server that refuses says so after the client's handshake
		_, err = c.Read(make([]byte, 1))
	}
	_ = there.Close()
	return <-done, err
}

// holder is a node with a certificate, as it keeps both.
func (r *rig) holder(a *Authority, name string) *tls.Config {
	r.t.Helper()
	c, csr := request(r.t)
	der, err := a.Issue(csr, trust.Subject{Role: trust.RoleNode, Name: name, UID: spec.UID("u-" + name)}, time.Hour)
	must(r.t, err)
	must(r.t, c.Take(der, a.standing.Load().certificateOf(der)))
	config, err := c.TLS("127.0.0.1:1")
	must(r.t, err)
	return config
}

// TestWhoKnowsWhomInARotation: each state of a rotation, beside each who may come. The store of another server knows this one by what it
// read when it was started: before the rotation, in it, or after it.
func TestWhoKnowsWhomInARotation(t *testing.T) {
	for name, first := range map[string]func(*rig){
		"of this release":   func(*rig) {},
		"of an earlier one": func(r *rig) { r.put(store.Put(store.AuthorityKey, store.Encode(earlierAuthority(r.t, r.key)))) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			first(r)
			a := r.open()
			rooms := func() *tls.Config { // as the store of a server that starts now calls this one
				p := &PeerPort{authority: a, dir: t.TempDir()}
				must(t, p.writeAuthorities())
				ca, _ := PeerFiles(p.dir)
				text, err := os.ReadFile(ca)
				must(t, err)
				roots := x509.NewCertPool()
				if !roots.AppendCertsFromPEM(text) {
					t.Fatal("no authority is written")
				}
				mine, err := a.calling.at(a.standing.Load())
				must(t, err)
				return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "127.0.0.1", RootCAs: roots, Certificates: []tls.Certificate{*mine}}
			}
			calls := func() *tls.Config {
				c, err := a.CallTLS("127.0.0.1:1")
				must(t, err)
				return c
			}
			pin := func() *tls.Config { return trust.PinOf(a.standing.Load().now.cert).TLS("127.0.0.1") }
			check := func(state string, want map[string]bool, who map[string]*tls.Config) {
				t.Helper()
				for name, config := range who {
					server := a.TLS("h2")
					if strings.HasPrefix(name, "the store") {
						server = (&PeerPort{authority: a}).tls()
					}
					if served, err := shake(t, server, config); (err == nil && served == nil) != want[name] {
						t.Errorf("%s: %s: the server says %v, the client %v; want it to be accepted: %v", state, name, served, err, want[name])
					}
				}
			}
			who := map[string]*tls.Config{"a node of A": r.holder(a, "n1"), "a server of A": calls(), "the store before": rooms(), "a token before": pin()}
			all := map[string]bool{"a node of A": true, "a server of A": true, "the store before": true, "a token before": true}
			check("before", all, who)
			old := a.standing.Load()

			next, err := a.Next(nil)
			must(t, err)
			r.change(func(now *sealing.Authority) { now.Next = next })
			r.follow(a)
			who["a token in it"] = pin()
			all["a token in it"] = true
			check("both are trusted", all, who)
			if a.Signs() != idOf(old.now.cert) {
				t.Error("the next one signs before all trust it")
			}

			r.change(func(now *sealing.Authority) { now.Next.Issuing = true })
			r.follow(a)
			who["a node of B"], who["a server of B"], who["the store in it"] = r.holder(a, "n2"), calls(), rooms()
			all["a node of B"], all["a server of B"], all["the store in it"] = true, true, true
			who["a token of B"] = trust.PinOf(a.standing.Load().next.cert).TLS("127.0.0.1")
			all["a token of B"] = true
			check("the next one signs", all, who)
			shown, err := a.serving.at(a.standing.Load())
			must(t, err)

			// Who has the key of A, and saw what servers showed, signs for himself.
			stolen := func() *tls.Config {
				thief := &Authority{cfg: a.cfg, cluster: cluster}
				c, err := thief.sign(old.now)
				must(t, err)
				c.Certificate = append(c.Certificate, shown.Certificate[1:]...)
				return &tls.Config{ServerName: "127.0.0.1", InsecureSkipVerify: true, Certificates: []tls.Certificate{*c}}
			}
			who["a thief of A"], who["the store of a thief of A"] = stolen(), stolen()

			record := a.standing.Load().record
			after, err := a.Retire(record)
			must(t, err)
			r.change(func(now *sealing.Authority) { *now = after })
			r.follow(a)
			who["the store after"], who["a token after"], who["a node of B renewed"] = rooms(), pin(), r.holder(a, "n3")
			check("it is retired", map[string]bool{
				"a node of B": true, "a node of B renewed": true, "a server of B": true, "a token of B": true, "a token after": true,
				"the store in it": true, "the store after": true,
			}, who)
			if _, err := shake(t, a.TLS("h2"), who["a node of A"]); !trust.Foreign(err) {
				t.Errorf("a node of the retired authority is not told why: %v", err)
			}
			if after.Next != nil || strings.Contains(string(store.Encode(after)), string(store.Encode(record.Sealed))) {
				t.Error("the key of the retired authority is still there")
			}

			// The store of a server that was started before the rotation calls with the certificate that is in its file now.
			mine, err := a.calling.at(a.standing.Load())
			must(t, err)
			before := who["the store before"].Clone()
			before.Certificates = []tls.Certificate{*mine}
			check("it is retired", map[string]bool{"the store before": true}, map[string]*tls.Config{"the store before": before})
		})
	}
}

// TestAServerThatWasAwayThroughARotationIsTold: it knows A alone, by what it keeps on its disk; one that learned of B goes on.
func TestAServerThatWasAwayThroughARotationIsTold(t *testing.T) {
	r := newRig(t)
	a := r.open()
	kept := a.Identity("u")
	next, err := a.Next(nil)
	must(t, err)
	r.change(func(now *sealing.Authority) { now.Next = next; now.Next.Issuing = true })
	r.follow(a)
	knew := a.Identity("u")
	after, err := a.Retire(a.standing.Load().record)
	must(t, err)
	r.change(func(now *sealing.Authority) { *now = after })
	r.follow(a)
	for name, c := range map[string]struct {
		id   ServerIdentity
		want bool
	}{"it knows A alone": {kept, false}, "it knows both": {knew, true}} {
		away, err := c.id.Open(AuthorityConfig{Key: r.key, Server: "s2", Addresses: []string{"127.0.0.1:2"}})
		must(t, err)
		config, err := away.CallTLS("127.0.0.1:1")
		must(t, err)
		_, err = shake(t, a.TLS("h2"), config)
		if (err == nil) != c.want || errors.Is(err, ErrRetired) == c.want || away.Retired() == c.want {
			t.Errorf("%s: got %v, and retired is %v", name, err, away.Retired())
		}
	}
}

// TestWhatIsSignedIsOfTheAuthorityThatTheStoreHas: a server that has not heard of a step asks the store before it signs.
func TestWhatIsSignedIsOfTheAuthorityThatTheStoreHas(t *testing.T) {
	r := newRig(t)
	a, behind := r.open(), r.open()
	token := r.token(a, "")
	next, err := a.Next(nil)
	must(t, err)
	r.change(func(now *sealing.Authority) { now.Next = next; now.Next.Issuing = true })
	_, csr := request(t)
	der, err := behind.Enroll(t.Context(), Enrollment{Token: token.ID, Secret: token.Secret, Node: "n1", UID: "u1", Request: csr})
	must(t, err)
	by := func(der []byte) string {
		leaf, err := x509.ParseCertificate(der)
		must(t, err)
		ca, err := x509.ParseCertificate(next.Certificate)
		must(t, err)
		if leaf.CheckSignatureFrom(ca) == nil {
			return "B"
		}
		return "A"
	}
	if by(der) != "B" {
		t.Error("a node that joins gets a certificate of the old authority")
	}
	behind = r.open()
	behind.standing.Store(mustStanding(t, r.key, sealing.Authority{Certificate: a.standing.Load().record.Certificate, Sealed: a.standing.Load().record.Sealed}))
	der, err = behind.Renew(t.Context(), csr, trust.Subject{Role: trust.RoleNode, Name: "n1", UID: "u1"})
	must(t, err)
	if by(der) != "B" {
		t.Error("a node that renews gets a certificate of the old authority")
	}
	// A token that is made at the moment of the retirement would name an authority that nobody shows.
	r.follow(a)
	after, err := a.Retire(a.standing.Load().record)
	must(t, err)
	r.between(func() { r.change(func(now *sealing.Authority) { *now = after }) })
	if _, err := a.CreateToken(t.Context(), time.Hour, "", ""); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a token of the old authority: %v", err)
	}
	if now := r.token(a, ""); now.Pin != trust.PinOf(a.standing.Load().now.cert) || now.Pin == token.Pin {
		t.Error("the next token is not of the new authority")
	}
}

func mustStanding(t *testing.T, key *seal.Key, record sealing.Authority) *standing {
	t.Helper()
	s, err := openStanding(record, key)
	must(t, err)
	return s
}

// TestThePeersFileHasTheWholeChain: the store shows what is in it, and no more.
func TestThePeersFileHasTheWholeChain(t *testing.T) {
	r := newRig(t)
	p := &PeerPort{authority: r.open(), dir: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	must(t, p.Renew())
	text, err := os.ReadFile(filepath.Join(p.dir, "peer.pem"))
	must(t, err)
	var kinds []string
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		kinds = append(kinds, block.Type)
	}
	if strings.Join(kinds, ", ") != "PRIVATE KEY, CERTIFICATE, CERTIFICATE" {
		t.Errorf("got %v", kinds)
	}
}
