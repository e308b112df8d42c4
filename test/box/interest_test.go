package box

import (
	"context"
	"slices"
	"testing"
	"time"
)

// A set without a member on a node is known there by its names. Once it is asked for it is all there, follows
// readiness, and stays so when another server takes over.
func TestASetElsewhereIsFollowedWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, inMemory(t), "a", "b")
		c.written(shape{name: "db", replicas: 1}, 1)
		c.until("the set is complete", func() bool { return c.on(1) })
		here := c.host("db-0")
		there := c.nodes["a"]
		if there == here {
			there = c.nodes["b"]
		}
		c.until("its name is known", func() bool {
			s, ok := there.picture("db")
			return ok && s.Brief && len(s.Peers) == 1 && s.Peers[0].Address.IsValid() && len(s.Names) == 1
		})
		if s, _ := here.picture("db"); s.Brief || !s.Peers[0].Ready {
			t.Errorf("where its member is: %+v", s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := there.asks().Follow(ctx, ref("db")); err != nil {
			t.Errorf("it is asked for: %v", err)
		}
		if got := there.readyPeers("db"); !slices.Equal(got, []string{"db-0"}) {
			t.Errorf("then DNS has %q", got)
		}
		c.current().crash()
		c.startServer()
		here.crash()
		c.until("its node is silent", func() bool { return len(there.readyPeers("db")) == 0 })
		here.restart()
		c.until("it is ready", func() bool { return len(there.readyPeers("db")) == 1 })
	})
}
