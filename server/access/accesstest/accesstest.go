// Package accesstest makes authorities and credentials for tests.
package accesstest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// NewAuthority makes s a store of a new cluster, and returns its authority.
func NewAuthority(t testing.TB, s store.Store) *access.Authority {
	t.Helper()
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(store.ClusterKey, []byte("0123456789abcdef"))}}); err != nil {
		t.Fatal(err)
	}
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return Open(t, s, key)
}

// Open is the authority of the cluster whose store s is, at another server of it.
func Open(t testing.TB, s store.Store, key *seal.Key) *access.Authority {
	t.Helper()
	a, err := access.OpenAuthority(t.Context(), access.AuthorityConfig{
		Store: s, Key: key, Server: "test", Addresses: []string{"127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Credential is one that a signed for this subject, for so long.
func Credential(t testing.TB, a *access.Authority, s trust.Subject, life time.Duration) *trust.Credential {
	t.Helper()
	c, err := trust.NewCredential(nil)
	if err != nil {
		t.Fatal(err)
	}
	request, err := c.Request()
	if err != nil {
		t.Fatal(err)
	}
	der, err := a.Issue(request, s, life)
	if err == nil {
		err = c.Take(der, a.Certificate())
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}
