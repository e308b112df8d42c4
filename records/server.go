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

// StoreHealth is how one member of the store is.
type StoreHealth struct {
	// Term and Index are raft's: Index is that of the last write that the member has applied.
	Term, Index uint64
	// Bytes is the size of its data file, UsedBytes that of the data in it.
	Bytes, UsedBytes int64
	Alarms           []string // as NOSPACE
}

// StoreMark is how far a member of the store has come: what it has voted and acknowledged is of no later term and index.
type StoreMark struct {
	Term  uint64 `json:"term"`
	Index uint64 `json:"index"`
}

// Or is the later of both, each by itself.
func (m StoreMark) Or(o StoreMark) StoreMark {
	return StoreMark{Term: max(m.Term, o.Term), Index: max(m.Index, o.Index)}
}
