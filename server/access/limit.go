package access

import (
	"net/netip"
	"sync"
)

// limit bounds what is held at once, in all and by each host.
type limit struct {
	all, each int

	mu   sync.Mutex
	held map[string]int
	sum  int
}

func newLimit(all, each int) *limit {
	return &limit{all: all, each: each, held: map[string]int{}}
}

// take counts one more of host until release is called, which counts once; nil: the limit is
// reached. An IPv6 host has a network of 64 bits to choose its address from, so that counts
// as one.
func (l *limit) take(host string) (release func()) {
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap().WithZone("")
		if ip.Is6() {
			net, _ := ip.Prefix(64) // 64 is always right
			host = net.String()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sum >= l.all || l.held[host] >= l.each {
		return nil
	}
	l.sum++
	l.held[host]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sum--
		l.held[host]--
		if l.held[host] == 0 {
			delete(l.held, host)
		}
	})
}
