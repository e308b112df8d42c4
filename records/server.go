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
