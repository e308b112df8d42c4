package dnsd

import (
	"net/netip"
	"sync"
)

// quota limits the forwards in progress, in all and for each client, so that a client that
// sends endless queries leaves some to others.
type quota struct {
	most, each int

	mu   sync.Mutex
	used int
	by   map[netip.Addr]int // clients with forwards in progress
}

func newQuota(most, each int) *quota {
	return &quota{most: most, each: each, by: map[netip.Addr]int{}}
}

// acquire counts one more forward of client; false: the quota is used up. Whoever gets true
// must release it.
func (q *quota) acquire(client netip.Addr) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used >= q.most || q.by[client] >= q.each {
		return false
	}
	q.used++
	q.by[client]++
	return true
}

func (q *quota) release(client netip.Addr) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used--
	q.by[client]--
	if q.by[client] == 0 {
		delete(q.by, client)
	}
}
