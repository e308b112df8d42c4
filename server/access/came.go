package access

import (
	"sync"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// bySocket is in place of an authority for a node on this server's host, which needs no certificate.
const bySocket = records.AuthorityID("socket")

// arrival is a node, and by whose certificate it came.
type arrival struct {
	node spec.NodeName
	uid  spec.UID
	by   records.AuthorityID
}

// came is which nodes came to this process by whose certificates.
type came struct {
	fresh *notify.Signal

	mu  sync.Mutex
	all map[arrival]bool
}

func newCame() came { return came{fresh: notify.New(), all: map[arrival]bool{}} }

func (c *came) note(node spec.NodeName, uid spec.UID, by records.AuthorityID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := (arrival{node, uid, by}); !c.all[a] {
		c.all[a] = true
		c.fresh.Notify()
	}
}

func (c *came) has(a arrival) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[a]
}

// NoteArrival notes that a node came with a certificate of an authority.
func (a *Authority) NoteArrival(node spec.NodeName, uid spec.UID, by records.AuthorityID) {
	a.came.note(node, uid, by)
}

// Came reports whether a node came to this process with a certificate of an authority.
func (a *Authority) Came(node spec.NodeName, uid spec.UID, by records.AuthorityID) bool {
	return a.came.has(arrival{node, uid, by})
}

// CameBySocket reports whether it came over the socket, for which it needs none.
func (a *Authority) CameBySocket(node spec.NodeName, uid spec.UID) bool {
	return a.came.has(arrival{node, uid, bySocket})
}

// Arrivals is notified when a node came by another certificate than before.
func (a *Authority) Arrivals() <-chan struct{} { return a.came.fresh.C() }
