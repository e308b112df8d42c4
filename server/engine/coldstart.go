package engine

import (
	"sync"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// coldStart holds the leader of a process that has just started: it decides nothing before every node
// has connected to a server since, or a while has passed. The store may have gone back in a
// way that only a node knows, and that node must have the chance to say so (SAFETY S8).
// Safe for concurrent use.
type coldStart struct {
	mu        sync.Mutex
	startedAt time.Time
	rev       store.Rev // of the store then
	over      bool
}

// start starts the wait.
func (c *coldStart) start(v cache.View, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startedAt, c.rev = now, v.Rev()
}

// missing are the nodes that are waited for, and for how long still; none: it is over, for
// as long as the process lives.
func (c *coldStart) missing(v cache.View, now time.Time, limit time.Duration) (nodes []spec.NodeName, left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left = limit - now.Sub(c.startedAt)
	if c.over || left <= 0 {
		c.over = true
		return nil, 0
	}
	for _, n := range v.Nodes() {
		if n.Node == nil {
			continue
		}
		// A session of before may be in a backup, with a lease that its restore has renewed.
		if v.ModRev(store.SessionKey(n.Node.Name)) <= c.rev {
			nodes = append(nodes, n.Node.Name)
		}
	}
	c.over = len(nodes) == 0
	return nodes, left
}
