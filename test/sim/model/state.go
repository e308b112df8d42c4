// Package model explores every interleaving of a very small cluster: two servers, two
// nodes, one set of one or two members, with the real planner (plan.Next) and the real
// decisions of agents (step.Choose, step.Next). All else is as small as may be: the
// store is a record that is compared as a whole, a cache is an older copy of it, a
// stream holds one message each way.
//
// Breadth first, so that what it finds is told by the shortest trace. States are
// values; two that are equal are one. Guarded lives have time in them: ticks, which age
// the last ping that was answered, the one under way, and what a leader saw as silent.
package model

import "fmt"

// Members is how many ordinals the state has room for.
const Members = 2

const (
	servers = 2
	nodes   = 2
)

// token is epoch and number; 0: none.
type token uint8

func tok(epoch, number uint8) token { return token(epoch<<4 | number) }
func (t token) epoch() uint8        { return uint8(t) >> 4 }
func (t token) number() uint8       { return uint8(t) & 15 }
func (t token) String() string      { return fmt.Sprintf("%d.%d", t.epoch(), t.number()) }

// The goals and what a report says.
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

// slot is what the store has of one identity.
type slot struct {
	tok              token // the member's life; 0: no member
	node, boot, goal uint8
	rtok             token // of the report; 0: none
	rphase           uint8
	last             token // of the identity
}

// stored is the store at one revision.
type stored struct {
	slots  [Members]slot
	leader uint8        // server+1; 0: nobody
	term   uint8        // counts leaderships: the create-revision of the leader key
	sess   [nodes]uint8 // boot+1 of the live session; 0: silent
	heard  [nodes]uint8 // the epoch of the last hello; 0: never
	stray  [nodes][Members]token
	want   uint8 // replicas
	epoch  uint8
}

// server is one server process.
type server struct {
	cache stored
	term  uint8 // of the leadership that it believes to hold; 0: none
	// gone is for how many ticks it saw a node without session; joined: the node said hello
	// since its cache was read.
	gone   [nodes]uint8
	joined [nodes]bool
}

// local is what a node has of one identity: ledger, orders, and the truth.
type local struct {
	newest, open token
	ends         [2]token // closed, and not known to be stored
	otok         token    // the orders of the agent's process
	ogoal        uint8
	over         token
	box          uint8 // none, made, up
	alive        token // the process
	// rec is the record for killers; ended: it says so; killed: its end was seen once.
	rec           token
	ended, killed bool
	landing       token // a start is under way
}

const (
	made uint8 = iota + 1
	up
)

// order is what a message says of one identity.
type order struct {
	tok  token
	goal uint8
	boot uint8
	over token
}

// letter is a report under way.
type letter struct {
	tok   token
	phase uint8
}

// host is one node with its agent.
type host struct {
	boot  uint8
	epoch uint8 // the newest that a list named
	sess  uint8 // server+1; 0: no stream
	local [Members]local
	down  [Members]order // the message under way to it
	told  bool           // there is one
	up    [Members]letter
	// confirmed is how many ticks ago the ping was sent that a server answered last, and
	// one more; 0: never since boot. asked is so of the ping that is under way.
	confirmed, asked uint8
	answered         bool // the ping is
	// listed: the first list of the session was taken, before which there is no answer.
	listed bool
}

// State is all of it.
type State struct {
	st    stored
	srv   [servers]server
	host  [nodes]host
	back  stored             // a backup; epoch 0: none
	first [Members][16]uint8 // on which node+1 a life was first started, by epoch and number
	left  Bounds             // what may still happen
}

// Bounds say how often what would never end may happen.
type Bounds struct {
	Edits, Reboots, Crashes, Terms, Cuts, Backups, Restores uint8
	// Lags is how often a node's clock may miss a tick, Landings how many starts may be slow.
	Lags, Landings uint8
	// Bound, when not 0, has all lives guarded, with a bound of so many ticks.
	Bound uint8
	// Apart: the first node's session is with the server that does not lead.
	Apart bool
	// Numbers is the highest number a token gets.
	Numbers uint8
	// Members is how many ordinals are used; OrderedReady instead of Parallel.
	Members uint8
	Ordered bool
}

func (s *State) firstOf(o int, t token) *uint8 { return &s.first[o][(t.epoch()-1)&1<<3|t.number()&7] }
