// Package stores is what is known of the members of the store that servers share.
package stores

import (
	"errors"
	"time"
)

// ErrRemoved: the member in the directory was removed from its cluster, and never comes back.
var ErrRemoved = errors.New("this server was removed from the cluster, or replaced; to use the host again, move its data directory away, and let it join with a new token")

// NoMajority begins what is said of a store of which most members cannot be reached.
const NoMajority = "the store has no majority"

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
	// Aside is what a recovery has left beside it.
	Aside Aside
}

// Aside is what a member had before its server went on alone with it.
type Aside struct {
	Bytes int64 // 0: there is nothing
	At    time.Time
}

// Mark is how far a member of the store has come: what it has voted and acknowledged is of no later term and index.
type Mark struct {
	Term  uint64 `json:"term"`
	Index uint64 `json:"index"`
}

// Or is the later of both, each by itself.
func (m Mark) Or(o Mark) Mark {
	return Mark{Term: max(m.Term, o.Term), Index: max(m.Index, o.Index)}
}
