// Package move explores every interleaving of the moves of one member between two nodes (SAFETY S12), with the real planner
// (plan.Next, plan.MoveRefusal), what nodes are told of moves (plan.MoveOrder), and the real decisions of agents about their
// parts (agent/move/step). The rest is as small as may be. The store is a record that each write compares in parts, as the
// engine does. One server always knows the newest of the store, the other has a view as old as it may be: both decide, write
// and tell nodes, so that no promise here rests on who leads. A life is opened, begins, writes, ends and is closed. A volume
// is the number of the newest write that it has, its place, and its seal; copies are made whole, or overlook what was written.
package move

import "fmt"

const (
	nodes   = 2
	servers = 2
	// most is how many moves a state has room for, from 1; the volume that a move makes has its number, the first one 0.
	most = 2
)

// token is epoch and number; 0: none.
type token uint8

func tok(epoch, number uint8) token { return token(epoch<<4 | number) }
func (t token) epoch() uint8        { return uint8(t) >> 4 }
func (t token) number() uint8       { return uint8(t) & 15 }
func (t token) String() string      { return fmt.Sprintf("%d.%d", t.epoch(), t.number()) }

// Goals, and what a report says of a life.
const (
	none uint8 = iota
	run
	stop
)
const (
	running uint8 = iota + 1
	ready
	over
)

// life is the member's record.
type life struct {
	tok             token // 0: there is none
	node, goal, vol uint8
	rtok            token // of the report; 0: none
	rphase          uint8
	last            token // of the identity
	written         uint8 // counts writes of the identity that changed nothing
}

// volume is the record of the member's.
type volume struct{ id, node uint8 }

// record is that of a move; id 0: there is none.
type record struct {
	id, phase, epoch uint8
	stopped          token
	sum              uint8 // of the sealed source, the number of a write and one more; 0: none
}

// request is what a user asks.
type request struct{ verb, move, to uint8 }

const (
	begin uint8 = iota + 1
	abort
)

// said is what a node says of its part in a move.
type said struct {
	state, sum uint8
	key        bool // with a key for the other node
	unknown    bool // of a seal that no order names
}

// seen is what the store has of a node.
type seen struct {
	sess  bool
	heard uint8 // the epoch of its last hello
	stray token
	said  [most]said
	left  uint8 // the volume that is to be given up there, and one more; 0: none
}

// stored is the store at one revision.
type stored struct {
	epoch, want uint8
	life        life
	vol         volume
	move        record
	asked       request
	node        [nodes]seen
}

// order is what an agent was told of a part.
type order struct {
	phase  uint8 // 0: nothing
	unseal bool
	sum    uint8
	peer   bool // where the other node offers is known
}

// part is what an agent has of a move.
type part struct {
	known, noted, failed, warm bool
	epoch                      uint8 // in which it was named last
	copied, staged             uint8 // the write that the copy has, and one more; 0: none. copied: compared
	order                      order
	sum                        uint8 // of a source; 0: not made
	sealing                    uint8
}

// How far a seal has come.
const (
	looked uint8 = iota + 1 // no life was open
	sealed                  // it is written
)

// place is where the member's volume is on a node.
type place struct {
	any     bool
	vol     uint8
	content uint8 // the newest write that it has
	seal    uint8 // a move; 0: none
}

// letter is what a node says, under way to its server.
type letter struct {
	kind  uint8
	tok   token
	phase uint8
	said  [most]said
}

const (
	ofLife uint8 = iota + 1
	ofMoves
	ofLeft
)

// host is one node with its agent.
type host struct {
	sess  uint8 // server+1; 0: no stream
	epoch uint8 // of the newest list
	// Of its agent's process.
	told   bool  // of moves
	moves  uint8 // the epoch of that list
	otok   token
	ogoal  uint8
	ovol   uint8
	over   token
	left   uint8 // the volume that is to be given up, and one more
	parts  [most]part
	letter letter
	// On its disk, and the truth.
	newest, open token
	ends         [2]token // closed, and not known to be stored
	alive        token
	place        place
	made         [most]bool
}

// State is all of it.
type State struct {
	st     stored
	old    stored // what the second server knows
	back   stored // a backup; epoch 0: none
	host   [nodes]host
	begun  uint8       // moves so far
	from   [most]uint8 // of each
	was    [most]uint8 // the volume that each moves
	writes uint8       // acknowledged
	left   Bounds      // what may still happen
}

// Bounds say how often what would never end may happen.
type Bounds struct {
	Moves, Aborts, Edits, Writes, Crashes, Cuts, Backups, Restores, Overlooks, Fails uint8
	// Numbers is the highest number a token gets.
	Numbers uint8
	// Behind is how often the second server's view is brought up to date; 0: there is no second server.
	Behind uint8
	// Late: what a node says may be long under way.
	Late bool
	// AbortsLater: a move is given up by the user after the restore alone.
	AbortsLater bool
	// Apart, when not 0, is a node and one more that is connected with the second server from the begin.
	Apart uint8
}
