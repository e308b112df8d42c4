package move

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/agent/move/step"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/test/sim/model/states"
)

// Plant is a guard that is left out on purpose; the zero Plant leaves out none.
type Plant struct {
	Name string
	// Of the servers.
	HoldsNoStarts     bool   // a move that begins to hold its member does not write its identity
	UnsealsInAnyEpoch bool   // a source may break its seal though the store went back since the move began
	Uncompared        string // a key that no write compares
	RestoreKeepsEpoch bool   // a restore begins no new epoch
	See               func(*plan.World)
	Say               func(plan.World, *plan.Plan)
	// Of the agents.
	UsesSealed      bool // a life gets what is sealed
	SealsUnderALife bool // nobody looks whether a life is open
	SaysSumsUnread  bool // a target says the sums of its source, whatever it has
	Choose          func(step.Situation, *step.Next)
}

type (
	told struct {
		picture
		node uint8
	}
	asked struct {
		picture
		request
	}
)

// Explorer visits the states of a model.
type Explorer struct {
	Plant Plant
	// Counts is how often things happened, by what they are.
	Counts   map[string]int
	bounds   Bounds
	plans    map[picture][]plan.Action
	orders   map[told]order
	refusals map[asked]bool
	wrong    string // of the move being made
}

var _ states.Model[State] = (*Explorer)(nil)

// New makes an explorer of a model with these bounds.
func New(b Bounds, p Plant) *Explorer {
	return &Explorer{Plant: p, Counts: map[string]int{}, bounds: b, plans: map[picture][]plan.Action{}, orders: map[told]order{}, refusals: map[asked]bool{}}
}

// Explore visits states until none is left, most were visited, or the time is over.
func (e *Explorer) Explore(mostStates int, limit time.Duration) states.Result {
	return states.Explore(e, mostStates, limit)
}

func (e *Explorer) violate(format string, args ...any) {
	if e.wrong == "" {
		e.wrong = fmt.Sprintf(format, args...)
	}
}

func (e *Explorer) count(what string) { e.Counts[what]++ }

// Wrong implements states.Model.
func (e *Explorer) Wrong() string { return e.wrong }

// Begin implements states.Model: the member runs on n0 and is ready.
func (e *Explorer) Begin() State {
	s := State{left: e.bounds, writes: 1}
	t := tok(1, 1)
	s.st.epoch, s.st.want = 1, 1
	s.st.life = life{tok: t, goal: run, rtok: t, rphase: ready, last: t}
	h := &s.host[0]
	h.otok, h.ogoal, h.newest, h.open, h.alive = t, run, t, t, t
	h.place = place{any: true, content: 1}
	for n := range uint8(nodes) {
		i := uint8(0)
		if e.bounds.Apart == n+1 {
			i = 1
		}
		e.hello(&s, n, i)
		s.host[n].epoch = 1
	}
	s.st.life.rphase = ready
	s.old = s.st
	e.Canon(&s)
	return s
}

// Canon implements states.Model: what nobody will look at is zero.
func (e *Explorer) Canon(s *State) {
	if s.old.life.written != s.st.life.written {
		s.old.life.written = 1
	} else {
		s.old.life.written = 0
	}
	s.st.life.written, s.back.life.written = 0, 0
	if s.left.Restores == 0 {
		s.back = stored{}
	}
	if e.bounds.Behind == 0 {
		s.old = stored{}
	}
}

// Moves implements states.Model.
func (e *Explorer) Moves(s *State, yield func(State, string)) {
	for n := range uint8(nodes) {
		e.hostMoves(s, n, yield)
		e.streamMoves(s, n, yield)
	}
	for i := range uint8(servers) {
		e.serverMoves(s, i, yield)
	}
	e.userMoves(s, yield)
	e.restoreMoves(s, yield)
}

func (e *Explorer) serverMoves(s *State, i uint8, yield func(State, string)) {
	if i == 1 && s.left.Behind > 0 && s.old != s.st {
		next := *s
		next.left.Behind--
		next.old = s.st
		yield(next, "s1 knows the newest of the store")
	}
	v := s.view(i)
	if v.epoch == 0 || i == 1 && s.old == s.st {
		return // it does what the other does
	}
	for _, a := range e.decide(s.picture(v)) {
		next := *s
		if what := e.commit(&next, v, a); what != "" {
			if i == 1 {
				e.count("a server with an old view writes")
			}
			yield(next, fmt.Sprintf("s%d %s", i, what))
		}
	}
}

// userMoves are what a user asks, as control lets them, which knows the newest of the store.
func (e *Explorer) userMoves(s *State, yield func(State, string)) {
	if s.left.Edits > 0 {
		next := *s
		next.left.Edits--
		next.st.want = 1 - s.st.want
		yield(next, fmt.Sprintf("the user asks for %d members", next.st.want))
	}
	if s.st.asked.verb != 0 {
		return
	}
	ask := func(q request, what string) {
		if e.refused(s.picture(&s.st), q) {
			return
		}
		next := *s
		next.st.asked = q
		if q.verb == abort {
			next.left.Aborts--
		}
		e.count(what)
		yield(next, what)
	}
	if s.left.Moves > 0 {
		ask(request{verb: begin, to: 1 - s.st.vol.node}, "the user asks for a move")
	}
	if e.bounds.AbortsLater && s.left.Restores > 0 {
		return
	}
	for m := uint8(1); s.left.Aborts > 0 && m <= s.begun; m++ {
		what := "the user gives up the move"
		if s.st.move.id == 0 {
			what = "the user gives up an unknown move"
		}
		ask(request{verb: abort, move: m}, what)
	}
}

// restoreMoves are a backup and the restore of it, with a new epoch.
func (e *Explorer) restoreMoves(s *State, yield func(State, string)) {
	if s.left.Backups > 0 {
		next := *s
		next.left.Backups--
		next.back = s.st
		yield(next, "a backup is made")
	}
	if s.left.Restores == 0 || s.back.epoch == 0 {
		return
	}
	next := *s
	next.left.Restores--
	next.st, next.back = s.back, stored{}
	next.st.epoch = s.st.epoch + 1
	if e.Plant.RestoreKeepsEpoch {
		next.st.epoch = s.st.epoch
	}
	for n := range uint8(nodes) {
		next.st.node[n].sess = false
		next.host[n].breakStream()
	}
	next.old = next.st
	yield(next, "the backup is restored")
}
