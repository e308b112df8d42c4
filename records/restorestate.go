package records

import "time"

// RestoreState is how it stands with a store that went back, and with its restore, for
// people.
type RestoreState struct {
	State string `json:"state"` // one of the constants Restore…
	Epoch int64  `json:"epoch"`
	// Cause is what was noticed, of a held store; By and At tell who held it, or declared
	// the restore.
	Cause string    `json:"cause,omitempty"`
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at,omitzero"`
	// Nodes are those of the count. Of a held store: those that a restore would wait for.
	Nodes []RestoreNode `json:"nodes,omitempty"`
	Next  string        `json:"next,omitempty"` // what to do, for people
}

// The states of a restore.
const (
	RestoreNever    = "Never"    // nobody holds the store, and it was never restored
	RestoreHeld     = "Held"     // it went back, and nothing is done before a restore is declared
	RestoreCounting = "Counting" // it was declared, and nodes are waited for
	RestoreComplete = "Complete" // every node was heard or excused
)

// RestoreNode is a node of a count.
type RestoreNode struct {
	CountNode
	State string `json:"state"` // one of the constants Node…
	// Connected: it has a session.
	Connected bool `json:"connected,omitempty"`
}

// The states of a node of a count.
const (
	NodeHeard   = "Heard"   // it has said since the restore what it runs
	NodeWaited  = "Waited"  // it has not
	NodeExcused = "Excused" // it has not, and a person says that it is off
)
