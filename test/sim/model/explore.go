package model

import (
	"fmt"
	"hash/maphash"
	"time"

	"github.com/stead-project/stead/server/plan"
)

// Plant is a fault put in on purpose; the zero Plant is none.
type Plant struct {
	Name              string
	StaleLeaderWrites bool // the leader key is not compared
	RestoreKeepsEpoch bool // a restore does not begin a new epoch
	HidesPending      bool // a hello names open tokens alone
	// Of guarded lives.
	ConfirmedByArrival bool // a deadline is moved from when the answer came
	PongFromMemory     bool // a server answers pings by its cache
	ConfirmsFirst      bool // a deadline is moved before what missed it is closed
	KillsOnce          bool // a killer kills once
	PongBeforeList     bool // a ping is answered before the first list was told
	LostUncompared     bool // what follows from a silence does not compare that it goes on
	See                func(*plan.World)
}

// Explorer visits the states of a model.
type Explorer struct {
	Plant  Plant
	bounds Bounds
	plans  map[picture][]deed
	wrong  string // of the move being made
}

// Result is what an exploration found.
type Result struct {
	States, Moves, Depth int
	// Whole: there is no state that was not visited.
	Whole bool
	// Wrong is the promise that was broken, "" none, and Trace the shortest way to it.
	Wrong string
	Trace []string
}

// New makes an explorer of a model with these bounds.
func New(b Bounds, p Plant) *Explorer {
	return &Explorer{Plant: p, bounds: b, plans: map[picture][]deed{}}
}

func (e *Explorer) violate(format string, args ...any) {
	if e.wrong == "" {
		e.wrong = fmt.Sprintf(format, args...)
	}
}

// begin is the first state: both nodes have a session with the first server, which
// leads, and the user has asked for all members.
func (e *Explorer) begin() State {
	var s State
	s.left = e.bounds
	s.st.epoch, s.st.want = 1, e.bounds.Members
	s.st.leader, s.st.term = 1, current
	for n := range uint8(nodes) {
		e.hello(&s, n, 0)
		if e.bounds.Apart && n == 0 {
			e.hello(&s, n, 1)
		}
	}
	s.srv[0] = server{cache: s.st, term: current}
	s.srv[1] = server{cache: s.st}
	for n := range s.host {
		s.host[n].confirmed = 0
		if e.bounds.Bound > 0 {
			s.host[n].confirmed, s.host[n].listed = 1, true
		}
	}
	s.canon()
	return s
}

// way is how a state was reached.
type way struct {
	from int32
	what uint16 // the how-manieth move of from
}

// Explore visits states in the order of their distance until none is left, most were
// visited, or the time is over.
func (e *Explorer) Explore(most int, limit time.Duration) Result {
	var (
		r     Result
		seed  = maphash.MakeSeed()
		known = map[uint64]struct{}{}
		queue = []State{e.begin()}
		ways  = []way{{-1, 0}}
		ends  = time.Now().Add(limit)
		depth = []int32{1} // how many states are at most so far away
	)
	known[maphash.Comparable(seed, queue[0])] = struct{}{}
	for at := 0; at < len(queue); at++ {
		if at == int(depth[len(depth)-1]) {
			depth = append(depth, int32(len(queue)))
		}
		if len(queue) >= most || at%1024 == 0 && time.Now().After(ends) {
			break
		}
		s, k := queue[at], uint16(0)
		e.moves(&s, func(next State, what string) {
			k++
			r.Moves++
			if e.wrong != "" && r.Wrong == "" {
				r.Wrong = e.wrong
				r.Trace = append(e.trace(ways, int32(at)), what)
			}
			next.canon()
			h := maphash.Comparable(seed, next)
			if _, old := known[h]; !old {
				known[h] = struct{}{}
				queue, ways = append(queue, next), append(ways, way{int32(at), k})
			}
		})
		if r.Wrong != "" {
			break
		}
		r.Whole = at == len(queue)-1
	}
	r.States, r.Depth = len(queue), len(depth)
	return r
}

// trace tells the way to a state, by making its moves again.
func (e *Explorer) trace(ways []way, at int32) []string {
	var numbers []uint16
	for ; ways[at].from >= 0; at = ways[at].from {
		numbers = append(numbers, ways[at].what)
	}
	s := e.begin()
	var told []string
	for i := len(numbers) - 1; i >= 0; i-- {
		k, now := uint16(0), s
		e.moves(&now, func(next State, what string) {
			k++
			if k == numbers[i] {
				next.canon()
				s, told = next, append(told, what)
			}
		})
	}
	return told
}
