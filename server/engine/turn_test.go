package engine

import (
	"bytes"
	"log/slog"
	"net/netip"

	"github.com/stead-project/stead/store"
)

// leads begins a term that the test works by hand, with the cluster's cache; what it logs
// is returned, too.
func (c *cluster) leads(s store.Store) (*leader, *bytes.Buffer) {
	c.t.Helper()
	rev := c.commit(store.Put(store.LeaderKey, []byte("a")))
	var log bytes.Buffer
	e, err := New(Config{
		Store: s, World: c.cache, ID: "a", CIDR: netip.MustParsePrefix("10.88.0.0/24"),
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err == nil {
		err = c.cache.Wait(c.t.Context(), rev)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	l := e.leader(store.Leadership{Value: "a", Created: rev})
	l.begin()
	return l, &log
}
