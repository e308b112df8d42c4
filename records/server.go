package records

import (
	"time"

	"github.com/stead-project/stead/spec"
)

// Server is servers/<name>: a server whose embedded store has, or is to have, a member of the
// cluster's store. Only writer: server/quorum's caller, server/peers.
type Server struct {
	Name string `json:"name"`
	// UID is made with the server's data directory: a server of this name with another one has
	// lost its data, and must not continue as the same member (SAFETY S8).
	UID spec.UID `json:"uid"`
	// Peer is where other servers reach its member of the store, host:port.
	Peer string `json:"peer"`
	// Addresses are those at which agents, clients and servers reach it, host:port.
	Addresses []string `json:"addresses,omitempty"`
	// At is when it was written first; for people only.
	At time.Time `json:"at"`
}

// StoreMember is one member of the store, as the store's own list has it.
type StoreMember struct {
	// ID is the member's, in hex. Of one that was removed it never comes back.
	ID string
	// Name is what it gave itself at its first start: its server's. "": it never started.
	Name string
	// Peer is where others reach it, host:port; "": nobody does, for it is alone.
	Peer string
	// Learner: it gets all writes and does not vote yet.
	Learner bool
}
