package access

import (
	"sync"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/spec"
)

// bySocket is in place of an authority for a node on this server's host, which needs no certificate.
const bySocket = sealing.AuthorityID("socket")

// Arrivals are the nodes that came to this process, and by whose certificates. It is safe for concurrent use.
type Arrivals struct {
	fresh *notify.Signal

	mu  sync.Mutex
	all map[arrival]bool
}

// arrival is a node, and by whose certificate it came.
type arrival struct {
	node spec.NodeName
	uid  spec.UID
	by   sealing.AuthorityID
}

func newArrivals() *Arrivals { return &Arrivals{fresh: notify.New(), all: map[arrival]bool{}} }

// C is notified when a node came by another certificate than before.
func (c *Arrivals) C() <-chan struct{} { return c.fresh.C() }

// Note notes that a node came with a certificate of an authority.
func (c *Arrivals) Note(node spec.NodeName, uid spec.UID, by sealing.AuthorityID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := (arrival{node, uid, by}); !c.all[a] {
		c.all[a] = true
		c.fresh.Notify()
	}
}

// Has reports whether a node came with a certificate of an authority.
func (c *Arrivals) Has(node spec.NodeName, uid spec.UID, by sealing.AuthorityID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[arrival{node, uid, by}]
}

// BySocket reports whether a node came over the socket, for which it needs no certificate.
func (c *Arrivals) BySocket(node spec.NodeName, uid spec.UID) bool { return c.Has(node, uid, bySocket) }
