package access

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/trust"
)

// The token of a server gives away the cluster's key: to one receiver, of that server only.
func TestATokenForAServerLetsThatServerInAndNobodyElse(t *testing.T) {
	r := newRig(t)
	a := r.open()
	if _, err := a.CreateServerToken(t.Context(), 2*time.Hour, "s2"); !errors.Is(err, ErrRequest) {
		t.Errorf("a token for two hours: %v", err)
	}
	token, err := a.CreateServerToken(t.Context(), time.Hour, "s2")
	must(t, err)
	ours, err := seal.NewReceiver()
	must(t, err)
	other, err := seal.NewReceiver()
	must(t, err)
	_, csr := request(t)
	if _, err := a.Enroll(t.Context(), Enrollment{Token: token.ID, Secret: token.Secret, Node: "s2", UID: "u1", Request: csr}); !errors.Is(err, ErrToken) {
		t.Errorf("a node joins by it: %v", err)
	}
	enter := func(tok trust.JoinToken, secret []byte, name string, by seal.Receiver) error {
		sealed, err := a.EnrollServer(t.Context(), tok.ID, secret, name, by.Public(), "h")
		if err == nil {
			_, err = by.Take(sealed, filepath.Join(t.TempDir(), "k"))
		}
		return err
	}
	nodes := r.token(a, "")
	for name, err := range map[string]error{
		"a wrong secret":      enter(token, []byte("wrong"), "s2", ours),
		"another server":      enter(token, token.Secret, "s3", ours),
		"a token of a node":   enter(nodes, nodes.Secret, "s2", ours),
		"the nameless server": enter(nodes, nodes.Secret, "", ours),
	} {
		if !errors.Is(err, ErrToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, enter(token, token.Secret, "s2", ours))
	must(t, enter(token, token.Secret, "s2", ours)) // the answer was lost
	if err := enter(token, token.Secret, "s2", other); !errors.Is(err, ErrToken) {
		t.Errorf("another receiver after it was used: %v", err)
	}
}

// The port of the store's peers is for servers of the cluster: a node, a client and who has no
// certificate reach nothing behind it.
func TestThePeerPortIsForServersOnly(t *testing.T) {
	r := newRig(t)
	a := r.open()
	dir, err := os.MkdirTemp("", "stead") // socket paths are short
	must(t, err)
	defer os.RemoveAll(dir)
	inner, err := net.Listen("unix", filepath.Join(dir, "s"))
	must(t, err)
	defer inner.Close()
	go func() {
		for {
			c, err := inner.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "raft")
			_ = c.Close()
		}
	}()
	id := a.Identity("u")
	self, err := id.Open(AuthorityConfig{Key: a.cfg.Key, Server: "s1", Peer: "127.0.0.1:1"})
	must(t, err)
	port, err := OpenPeerPort(t.Context(), self, "127.0.0.1:0", filepath.Join(dir, "s"), dir, slog.New(slog.DiscardHandler))
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); port.Run(ctx) }()
	defer func() { cancel(); <-done }()
	at := port.lis.Addr().String()
	hear := func(config *tls.Config) string {
		t.Helper()
		conn, err := tls.Dial("tcp", at, config)
		if err != nil {
			return ""
		}
		defer conn.Close()
		must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		b, _ := io.ReadAll(conn)
		return string(b)
	}
	server, err := self.CallTLS(at)
	must(t, err)
	if got := hear(server); got != "raft" {
		t.Errorf("a server hears %q", got)
	}
	ca, file := PeerFiles(dir)
	if pair, err := tls.LoadX509KeyPair(file, file); err != nil || len(pair.Certificate) == 0 {
		t.Errorf("the file by which the store calls its peers: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", ca, info, err)
	}
	for _, who := range []trust.Subject{{Role: trust.RoleNode, Name: "n1", UID: "u1"}, {Role: trust.RoleAdmin, Name: "ann", UID: "u2"}} {
		mine, err := trust.NewCredential([]string{at})
		must(t, err)
		csr, err := mine.Request()
		must(t, err)
		der, err := a.Issue(csr, who, time.Hour)
		must(t, err)
		must(t, mine.Take(der, a.Certificate()))
		config, err := mine.TLS(at)
		must(t, err)
		if got := hear(config); got != "" {
			t.Errorf("%s hears %q", who, got)
		}
	}
	if got := hear(&tls.Config{InsecureSkipVerify: true}); got != "" {
		t.Errorf("somebody without a certificate hears %q", got)
	}
}
