package servers

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// forcedMoves are what a person does when a store is lost, or goes on elsewhere (SAFETY S8).
func (e *Explorer) forcedMoves(s *State, do func(string, func(*State) bool)) {
	if s.left.Backups > 0 {
		if l := s.leader(0); l >= 0 {
			do("a backup is made", func(next *State) bool {
				next.left.Backups--
				next.saved = s.content(&s.srv[l].data)
				return true
			})
		}
	}
	if e.bounds.Ends > 0 {
		if l := s.leader(0); l >= 0 && !s.base[1].there() {
			if c := s.content(&s.srv[l].data); !c.held && s.left.Ends > 0 {
				do("the store is ended", func(next *State) bool {
					next.left.Ends--
					_, at := e.append(next, uint8(l), end, 0, 0)
					return at != 0
				})
			} else if c.ended == 1 {
				do("the last backup is made of the store that was ended", func(next *State) bool {
					next.saved = c
					return next.saved != s.saved
				})
			}
		}
	}
	for h := range uint8(hosts) {
		x := &s.srv[h]
		if x.up || s.base[1].there() || s.left.Forces == 0 || e.bounds.Struck == h+1 {
			continue
		}
		if c := s.content(&x.data); x.data.id != 0 && x.data.store == 0 && s.noneAnswers(&c, h) {
			do(fmt.Sprintf("h%d goes on alone", h), func(next *State) bool {
				next.left.Forces--
				e.makes(next, h, c)
				return true
			})
		}
		if x.data.id == 0 && s.saved.there() {
			do(fmt.Sprintf("a backup is unpacked on h%d", h), func(next *State) bool {
				next.left.Forces--
				y := &next.srv[h]
				y.directory = directory{uid: next.nextUID}
				next.nextUID++
				e.makes(next, h, s.saved)
				return true
			})
		}
	}
	for h := range s.srv {
		l := uint8(h)
		if !s.confirmed(l) {
			continue
		}
		x := &s.srv[l]
		c := s.content(&x.data)
		if !x.begun {
			do(fmt.Sprintf("h%d judges the store by what it knew", l), func(next *State) bool { return e.begins(next, l) })
			continue
		}
		do(fmt.Sprintf("the node connects with h%d", l), func(next *State) bool { return e.connects(next, l) })
		if c.held && x.data.store == 1 && x.data.n == x.data.commit {
			do(fmt.Sprintf("a person declares a restore on h%d", l), func(next *State) bool {
				epoch := max(c.epoch, x.epoch) + 1
				if next.node.store == x.data.store+1 {
					epoch = max(epoch, next.node.epoch+1)
				}
				_, at := e.append(next, l, declare, epoch, 0)
				e.count("a restore is declared")
				return at != 0
			})
		}
		if s.node.store == x.data.store+1 && s.node.epoch == c.epoch && !c.held {
			do(fmt.Sprintf("h%d decides", l), func(next *State) bool { return e.decides(next, l) })
		}
	}
}

func (c *content) there() bool { return c.epoch != 0 }

// noneAnswers: no other member of the store that the one on h knows.
func (s *State) noneAnswers(c *content, h uint8) bool {
	for _, m := range c.members {
		if m.host != 0 && m.host != h+1 && s.srv[m.host-1].up {
			return false
		}
	}
	return c.voters() > 1
}

// makes makes the other store, with one member on h.
func (e *Explorer) makes(s *State, h uint8, c content) {
	x := &s.srv[h]
	x.keep()
	id := s.nextID
	s.nextID = min(s.nextID+1, ids)
	for i, m := range c.members {
		if m.host != 0 {
			c.members[i] = member{}
		}
	}
	c.gone = [ids + 1]bool{}
	c.members[id] = member{host: h + 1, votes: true, named: true}
	s.base[1] = c
	x.data, x.back, x.unpacked = data{id: id, store: 1, term: 1}, false, !e.Plant.MarksNothing
	s.started[id] = true
	e.count("a store is made of another one")
}

// knows is what a message says of the store, for the memory of servers and nodes.
func (s *State) knows(x *server) records.Known {
	c := s.content(&x.data)
	return records.Known{Cluster: "c", Origin: idText(x.data.store + 1), At: spec.Sequence{Epoch: int64(c.epoch), Rev: int64(x.data.commit)}}
}

func remembered(origin, epoch, rev uint8) records.Known {
	if epoch == 0 {
		return records.Known{}
	}
	return records.Known{Cluster: "c", Origin: idText(origin), At: spec.Sequence{Epoch: int64(epoch), Rev: int64(rev)}}
}

// gap asks the real rule whether a store is not the one that was known.
func (e *Explorer) gap(was, now records.Known) bool {
	return was.Gap(now, records.Chain{}) != "" && !e.Plant.SeesNoGap
}

// begins has a server judge the store before it does anything with it.
func (e *Explorer) begins(s *State, h uint8) bool {
	x := &s.srv[h]
	c := s.content(&x.data)
	if !c.held && (x.unpacked || e.gap(remembered(x.origin, x.epoch, x.rev), s.knows(x))) {
		e.count("a server holds the store")
		if s.holding(x) {
			return false
		}
		_, at := e.append(s, h, hold, 0, 0)
		return at != 0
	}
	x.begun, x.unpacked = true, false
	if !c.held {
		x.origin, x.epoch, x.rev = x.data.store+1, c.epoch, x.data.commit
	}
	return true
}

// holding: a hold is written and not confirmed.
func (s *State) holding(x *server) bool {
	for _, n := range x.data.e[x.data.commit:x.data.n] {
		if n.kind() == hold {
			return true
		}
	}
	return false
}

// connects has the node say what it knows, and hear what the store says.
func (e *Explorer) connects(s *State, h uint8) bool {
	x := &s.srv[h]
	c := s.content(&x.data)
	s.node.store = x.data.store + 1
	was := remembered(s.node.origin, s.node.epoch, s.node.rev)
	switch {
	case c.held:
	case e.gap(was, s.knows(x)):
		e.count("a node that knows more holds the store")
		if s.holding(x) {
			return false
		}
		_, at := e.append(s, h, hold, 0, 0)
		return at != 0
	default:
		s.node.origin, s.node.epoch, s.node.rev = x.data.store+1, c.epoch, x.data.commit
	}
	return true
}

// decides has the store begin or end something on the node.
func (e *Explorer) decides(s *State, h uint8) bool {
	x := &s.srv[h]
	if s.acted > x.data.store+1 {
		e.violate("the old store decides, and another one goes on with what it had")
	}
	if x.data.store == 1 {
		e.count("the other store decides")
	}
	s.acted = max(s.acted, x.data.store+1)
	return true
}
