package main

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/engine"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store/memstore"
)

func TestEveryLostServerIsNamed(t *testing.T) {
	members := []stores.StoreMember{{Name: "s1"}, {Name: "s2"}, {Name: "s3"}, {Learner: true}}
	for lost, says := range map[string]string{
		"s2,s3": "", "s2": "s2, s3", "s2,s3,s4": "s2, s3", "s1,s2,s3": "s2, s3", "s9": "s2, s3",
	} {
		_, err := othersOf(members, "s1", strings.Split(lost, ","))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("--lost %s: got %v", lost, err)
		}
	}
	if _, err := othersOf(members, "host", []string{"s2", "s3"}); err == nil || !strings.Contains(err.Error(), "--name") {
		t.Errorf("under another name: %v", err)
	}
}

func TestNoServerIsRecoveredWhileALostOneAnswers(t *testing.T) {
	s := memstore.New()
	if _, _, err := engine.Init(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	key, err := seal.Ensure(filepath.Join(t.TempDir(), "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := access.OpenAuthority(t.Context(), access.AuthorityConfig{Store: s, Key: key, Server: "s1", Addresses: []string{"127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", a.TLS())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := silent.Addr().String()
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	none := []stores.StoreMember{{Name: "s2", Peer: gone}}
	if err := noneAnswers(t.Context(), a, none); err != nil {
		t.Errorf("nobody answers: %v", err)
	}
	if err := noneAnswers(t.Context(), a, append(none, stores.StoreMember{Name: "s3", Peer: at})); err == nil || !strings.Contains(err.Error(), "server s3 answers at "+at) {
		t.Errorf("one answers: %v", err)
	}
}
