package server

import (
	"net/netip"
	"sync"
)

// places bounds what is held at once, in all and by each host.
type places struct {
	all, each int

	mu   sync.Mutex
	held map[string]int
	sum  int
}

func newPlaces(all, each int) *places {
	return &places{all: all, each: each, held: map[string]int{}}
}

// take gives host a place, which leave gives back, once; nil: there is none. An IPv6 host
// has a network of 64 bits to choose its address from, so that counts as one.
func (p *places) take(host string) (leave func()) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip = ip.Unmap().WithZone(""); ip.Is6() {
			net, _ := ip.Prefix(64) // 64 is always right
			host = net.String()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sum >= p.all || p.held[host] >= p.each {
		return nil
	}
	p.sum++
	p.held[host]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sum--
		if p.held[host]--; p.held[host] == 0 {
			delete(p.held, host)
		}
	})
}
