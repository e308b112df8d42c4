package model

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/test/sim/model/states"
)

// Plant is a fault put in on purpose; the zero Plant is none.
type Plant struct {
	Name              string
	StaleLeaderWrites bool // the leader key is not compared
	RestoreKeepsEpoch bool // a restore does not begin a new epoch
	HidesPending      bool // a hello names open tokens alone
	JoinsUncompared   bool // a report that is stored with what follows from it is not compared with the store
	JoinsOtherLife    bool // and is taken for one of the present life
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
type Result = states.Result

// New makes an explorer of a model with these bounds.
func New(b Bounds, p Plant) *Explorer {
	return &Explorer{Plant: p, bounds: b, plans: map[picture][]deed{}}
}

func (e *Explorer) violate(format string, args ...any) {
	if e.wrong == "" {
		e.wrong = fmt.Sprintf(format, args...)
	}
}

// Begin is the first state: both nodes have a session with the first server, which
// leads, and the user has asked for all members.
func (e *Explorer) Begin() State {
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

// Explore visits states until none is left, most were visited, or the time is over.
func (e *Explorer) Explore(most int, limit time.Duration) Result {
	return states.Explore(e, most, limit)
}

// Moves implements states.Model.
func (e *Explorer) Moves(s *State, yield func(State, string)) { e.moves(s, yield) }

// Canon implements states.Model.
func (*Explorer) Canon(s *State) { s.canon() }

// Wrong implements states.Model.
func (e *Explorer) Wrong() string { return e.wrong }
