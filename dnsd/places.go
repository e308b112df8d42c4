package dnsd

import (
	"net/netip"
	"sync"
)

// places bound the questions under way: in all, and of each asker, so that one who asks
// without end leaves some to others.
type places struct {
	most, each int

	mu   sync.Mutex
	used int
	by   map[netip.Addr]int // those that have any
}

func newPlaces(most, each int) *places {
	return &places{most: most, each: each, by: map[netip.Addr]int{}}
}

// take gives a place to asker; false: there is none. Whoever has one leaves.
func (p *places) take(asker netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used >= p.most || p.by[asker] >= p.each {
		return false
	}
	p.used++
	p.by[asker]++
	return true
}

func (p *places) leave(asker netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used--
	if p.by[asker]--; p.by[asker] == 0 {
		delete(p.by, asker)
	}
}
