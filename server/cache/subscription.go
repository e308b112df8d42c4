package cache

import (
	"maps"
	"sync"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/spec"
)

// Subscription gathers what changed between two calls of Take, and never loses a wake-up.
type Subscription struct {
	cache   *Cache
	changed *notify.Signal // notified while gathered is not empty

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
func (s *Subscription) add(ch *Changes) {
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
	s.changed.Notify()
}

// C receives when there is something to Take.
func (s *Subscription) C() <-chan struct{} { return s.changed.C() }

// Take returns what changed since the last Take, and starts anew. It does not block; when
// nothing changed it returns empty Changes.
func (s *Subscription) Take() Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := *s.gathered
	s.gathered = newChanges(0)
	return ch
}

// Close ends it: nothing is gathered any more.
func (s *Subscription) Close() {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	delete(s.cache.subs, s)
}
