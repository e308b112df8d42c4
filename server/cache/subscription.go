package cache

import (
	"maps"
	"sync"

	"github.com/stead-project/stead/spec"
)

// subscription gathers changes between two calls of Take.
type subscription struct {
	cache *Cache
	wake  chan struct{} // holds one token while gathered is not empty

	mu       sync.Mutex
	gathered *Changes
}

func newChanges(rev revision) *Changes {
	return &Changes{
		Sets: map[spec.SetRef]bool{}, Nodes: map[spec.NodeName]bool{},
		Services: map[spec.Namespace]bool{}, Files: map[string]bool{}, Rev: rev,
	}
}

// add merges ch and wakes the reader.
func (s *subscription) add(ch *Changes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gathered
	g.All = g.All || ch.All
	g.Leadership = g.Leadership || ch.Leadership
	g.Room = g.Room || ch.Room
	g.Rev = max(g.Rev, ch.Rev)
	maps.Copy(g.Sets, ch.Sets)
	maps.Copy(g.Nodes, ch.Nodes)
	maps.Copy(g.Services, ch.Services)
	maps.Copy(g.Files, ch.Files)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// C implements Subscription.
func (s *subscription) C() <-chan struct{} { return s.wake }

// Take implements Subscription. It does not block; a Take that nothing preceded
// returns empty Changes.
func (s *subscription) Take() Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := *s.gathered
	s.gathered = newChanges(0)
	return ch
}

// Close implements Subscription.
func (s *subscription) Close() {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	delete(s.cache.subs, s)
}
