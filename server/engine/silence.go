package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// silences measures how long nodes have been without a session, on this process's monotonic clock:
// from when its cache first showed no session key, and from the start of the present leader's
// term at the earliest (SAFETY S18). Its methods are safe for concurrent use.
type silences struct {
	mu        sync.Mutex
	byNode    map[spec.NodeName]silence
	term      store.Rev // of the leader
	termStart time.Time // when its term was first seen
}

// silence is one that goes on as long as absent is the same: see cache.View.
type silence struct {
	absentSince store.Rev
	since       time.Time
}

// measure returns the nodes with how long they were silent at now. What it sees for the
// first time it stamps by clock, and not by now, which may be older than v: a process may
// stand still between the two.
func (s *silences) measure(v cache.View, nodes []plan.Node, now time.Time, clock func() time.Time) []plan.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if term := v.Leader().Created; term != s.term {
		s.term, s.termStart = term, clock()
	}
	out := nodes
	for i := range nodes {
		name := nodes[i].Node.Name
		if nodes[i].Session != nil {
			continue
		}
		since, absent := v.NoSessionSince(name)
		if !absent { // the session is another machine's, or cannot be read
			delete(s.byNode, name)
			continue
		}
		x, known := s.byNode[name]
		if !known || x.absentSince != since {
			x = s.remember(name, silence{since, clock()}, nodes)
		}
		if &out[0] == &nodes[0] {
			out = slices.Clone(nodes)
		}
		out[i].Gone = max(0, min(now.Sub(x.since), now.Sub(s.termStart)))
	}
	return out
}

// remember keeps the start of a silence, and forgets those of nodes that were removed.
func (s *silences) remember(name spec.NodeName, x silence, nodes []plan.Node) silence {
	if s.byNode == nil {
		s.byNode = map[spec.NodeName]silence{}
	}
	s.byNode[name] = x
	if len(s.byNode) > len(nodes) {
		maps.DeleteFunc(s.byNode, func(name spec.NodeName, _ silence) bool {
			return !slices.ContainsFunc(nodes, func(n plan.Node) bool { return n.Node.Name == name })
		})
	}
	return x
}

// withSilence are those of v with how long they were silent at now.
func (e *Engine) withSilence(v cache.View, nodes []plan.Node, now time.Time) []plan.Node {
	return e.cfg.Fencing.Annotate(e.silences.measure(v, nodes, now, e.cfg.Now))
}

// Nodes are those of v with how long each had no session, as this server measured it. It
// does not block, and works on every server.
func (e *Engine) Nodes(v cache.View) []plan.Node { return e.withSilence(v, v.Nodes(), e.cfg.Now()) }

// followSilence measures whenever a node or the leader changed, so that every server knows since
// when a node is silent, until ctx ends.
func (e *Engine) followSilence(ctx context.Context) {
	sub := e.cfg.Cache.Subscribe()
	defer sub.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sub.C():
		}
		if ch := sub.Take(); ch.All || ch.Leadership || len(ch.Nodes) > 0 {
			e.cfg.Cache.Look(func(v cache.View) { e.Nodes(v) })
		}
	}
}

// coldStart holds the leader of a process that has just started: it decides nothing before every
// node has connected to a server since, or a while has passed. The store may have gone back in
// a way that only a node knows (SAFETY S8). Safe for concurrent use.
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
