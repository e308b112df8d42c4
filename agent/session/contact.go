package session

import (
	"sync"
	"time"
)

// contact is how a node stands with the servers.
type contact struct {
	now func() time.Time

	mu           sync.Mutex
	since, heard time.Time // since is zero: there is no session
	ttl          time.Duration
}

func (c *contact) began(ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.heard, c.ttl = c.now(), c.now(), ttl
}

// answered: a server answered a ping.
func (c *contact) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = c.now()
}

func (c *contact) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Time{}
}

// look is the session's age and margin; both are zero when there is none.
func (c *contact) look() (age, margin time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		return 0, 0
	}
	now := c.now()
	return now.Sub(c.since), max(0, c.ttl-now.Sub(c.heard))
}
