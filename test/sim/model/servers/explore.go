package servers

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/quorum"
	"github.com/stead-project/stead/test/sim/model/states"
)

// Plant is a guard that is left out on purpose; the zero Plant leaves out none.
type Plant struct {
	Name           string
	NamesByRecord  bool // a member that never started is named by its record alone
	ComparesNoLogs bool // of raft, to see that the judge bites
	TakesNames     bool // the record of a name is not compared
	KeepsAtOnce    bool // what was seen is kept with the same look
	ForgetsSilent  bool // of members that do not answer nothing is kept
	AsksNoLeader   bool // what was acknowledged to the leader is not asked
	SaysNotRemoved bool // nobody says that a member was removed
	AliveByAddress bool // who answers at a member's address is the member
	MarksNothing   bool // a store that is made of another one is not held
	SeesNoGap      bool // what servers and nodes knew is not compared
	Join           func(*records.Server, []stores.StoreMember, records.Server) quorum.JoinStep
	MayRemove      func([]stores.StoreMember, map[string]bool, string) string
	SetBack        func(stores.Mark, stores.Mark, []stores.Mark) string
}

// Explorer visits the states of a model.
type Explorer struct {
	Plant Plant
	// Counts is how often things happened, by what they are.
	Counts map[string]int
	bounds Bounds
	wrong  string // of the move being made
}

var _ states.Model[State] = (*Explorer)(nil)

// New makes an explorer of a model with these bounds.
func New(b Bounds, p Plant) *Explorer {
	return &Explorer{Plant: p, Counts: map[string]int{}, bounds: b}
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

func number(id string) uint8 {
	n, err := strconv.Atoi(id)
	if err != nil {
		panic(err)
	}
	return uint8(n)
}

// Begin implements states.Model: the first servers are up, and the first one leads.
func (e *Explorer) Begin() State {
	var s State
	s.left = e.bounds
	n := e.bounds.Servers
	c := &s.base[0]
	c.epoch = 1
	for h := range n {
		c.members[h+1] = member{host: h + 1, votes: true, named: true}
		c.uid[nameOf(h)], c.at[nameOf(h)] = h+1, h
		s.started[h+1] = true
	}
	s.nextID, s.nextUID = n+1, n+1
	for h := range n {
		x := &s.srv[h]
		x.uid, x.up, x.serves = h+1, true, true
		x.data = data{id: h + 1, term: 1, vote: 1}
		x.origin, x.epoch = 1, 1
		s.voted[1][h+1] = 1
	}
	s.srv[0].leads, s.srv[0].begun = true, true
	e.append(&s, 0, noop, 0, 0)
	for h := uint8(1); h < n; h++ {
		e.send(&s, 0, h, false)
	}
	for h := uint8(1); h < n; h++ {
		e.send(&s, 0, h, false)
	}
	s.node = node{store: 1, origin: 1, epoch: 1}
	if e.bounds.Down {
		for h := range n {
			s.ends(h)
		}
	}
	e.Canon(&s)
	return s
}

// Canon implements states.Model: what nobody will look at is zero.
func (e *Explorer) Canon(s *State) {
	if e.bounds.Putbacks == 0 && e.bounds.Losses == 0 {
		s.voted = [6][ids + 1]uint8{}
	}
	if e.bounds.Putbacks == 0 && e.bounds.Loose == 0 && e.bounds.Looks == 0 {
		for h := range s.srv {
			s.srv[h].newest = data{}
		}
	}
	if e.bounds.Forces == 0 {
		s.node = node{}
		for h := range s.srv {
			x := &s.srv[h]
			x.begun, x.origin, x.epoch, x.rev = false, 0, 0, 0
		}
	}
	if e.bounds.Struck > 0 && e.bounds.Loose == 0 {
		for h := range s.srv {
			s.srv[h].only(s.srv[e.bounds.Struck-1].data.id)
		}
	}
	if s.left.Putbacks == 0 {
		for h := range s.srv {
			s.srv[h].old = directory{}
		}
	}
}

// only leaves of what a server knows of members what it knows of one, for the data of no other goes back.
func (x *server) only(id uint8) {
	for i := range x.marks {
		if uint8(i) != id {
			x.marks[i], x.last[i], x.told[0][i], x.told[1][i] = mark{}, mark{}, mark{}, mark{}
		}
	}
}

// Moves implements states.Model.
func (e *Explorer) Moves(s *State, yield func(State, string)) {
	if s.beyond {
		return
	}
	all := uint8(hosts)
	if !e.bounds.Spare {
		all--
	}
	known := e.wrong != ""
	do := func(what string, change func(*State) bool) {
		next := *s
		if change(&next) && next != *s || e.wrong != "" && !known {
			yield(next, what)
		}
	}
	says := func(change func(*State) (string, bool)) {
		next := *s
		if what, ok := change(&next); ok && next != *s || e.wrong != "" && !known {
			yield(next, what)
		}
	}
	for h := range all {
		x := &s.srv[h]
		e.diskMoves(s, h, func(what string, change func(*State, *server) bool) {
			do(what, func(next *State) bool { return change(next, &next.srv[h]) })
		})
		if x.up && x.leads {
			for to := range all {
				says(func(next *State) (string, bool) { return e.send(next, h, to, false) })
				if s.left.Loose > 0 {
					says(func(next *State) (string, bool) { return e.send(next, h, to, true) })
				}
			}
			if s.left.Writes > 0 {
				do(fmt.Sprintf("h%d writes %d", h, s.writes+1), func(next *State) bool {
					next.left.Writes--
					next.writes++
					_, at := e.append(next, h, write, next.writes, 0)
					return at != 0
				})
			}
		} else if x.up {
			for asked := range uint8(1) << all {
				says(func(next *State) (string, bool) { return e.elect(next, h, asked) })
			}
		}
		e.memberMoves(s, h, says)
	}
	e.taskMoves(s, all, do, says)
	if s.left.Looks > 0 {
		do("all look how far they have come", e.looks)
	}
	if e.bounds.Forces > 0 {
		e.forcedMoves(s, do)
	}
}

// memberMoves are what a new member asks of the leader: that its name be known, and that it may vote.
func (e *Explorer) memberMoves(s *State, h uint8, says func(func(*State) (string, bool))) {
	x := &s.srv[h]
	if !x.up || !x.serves {
		return
	}
	l := s.leader(x.data.store)
	if l < 0 {
		return
	}
	y := &s.srv[l]
	c := s.content(&y.data)
	m := c.members[x.data.id]
	if m.host != h+1 || m.votes || y.data.commit != y.data.n {
		return
	}
	says(func(next *State) (string, bool) {
		if !m.named {
			_, at := e.append(next, uint8(l), publish, x.data.id, 0)
			return fmt.Sprintf("h%d has started", h), at != 0
		}
		if y.match[x.data.id] < y.data.n {
			return "", false
		}
		e.count("a learner becomes a voter")
		_, at := e.append(next, uint8(l), promote, x.data.id, 0)
		return fmt.Sprintf("h%d becomes a voter", h), at != 0
	})
}

// taskMoves are what a person asks, and its next steps.
func (e *Explorer) taskMoves(s *State, all uint8, do func(string, func(*State) bool), says func(func(*State) (string, bool))) {
	if t := s.task; t.verb != 0 {
		if s.left.Drops > 0 {
			do("nobody knows what became of that", func(next *State) bool {
				next.left.Drops--
				next.task = task{}
				return true
			})
		}
		done, lost := s.waits(t)
		if lost {
			do("that was lost", func(next *State) bool { next.task = task{}; return true })
		}
		if done {
			says(func(next *State) (string, bool) {
				next.task.index, next.task.entry = 0, 0
				if t.verb == joining {
					return e.joins(next, &next.task)
				}
				return e.leaves(next, &next.task)
			})
		}
		return
	}
	for h := range all {
		x := &s.srv[h]
		for store := range uint8(lives) {
			if x.up || x.data.id != 0 || s.left.Joins == 0 || !s.base[store].there() {
				continue
			}
			do(fmt.Sprintf("h%d joins", h), func(next *State) bool {
				next.left.Joins--
				y := &next.srv[h]
				if y.uid == 0 {
					y.uid = next.nextUID // a person made a token for its name
					next.nextUID++
				}
				y.data.store = store
				next.task = task{verb: joining, host: h, store: store}
				return true
			})
		}
	}
	if s.left.Removals == 0 {
		return
	}
	for n := range uint8(names) {
		if e.bounds.Struck != 0 && nameOf(e.bounds.Struck-1) != n {
			continue
		}
		for store := range uint8(lives) {
			if !s.base[store].there() || s.leader(store) < 0 {
				continue
			}
			for _, verb := range []uint8{removing, replacing} {
				do(fmt.Sprintf("s%d is to be removed (replaced: %v)", n, verb == replacing), func(next *State) bool {
					next.left.Removals--
					next.task = task{verb: verb, host: n, store: store}
					return true
				})
			}
		}
	}
}
