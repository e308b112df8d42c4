package servers

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/quorum"
)

// What a person has done, in steps.
const (
	joining uint8 = iota + 1
	removing
	replacing
)

// truthOf is what was confirmed in a store.
func (s *State) truthOf(store uint8) content {
	c := s.base[store]
	for _, e := range s.truth[store].e[:s.truth[store].n] {
		c.apply(e)
	}
	return c
}

// leader is the host of one that can do what is asked; -1: none.
func (s *State) leader(store uint8) int {
	for h := range s.srv {
		if s.srv[h].data.store == store && s.confirmed(uint8(h)) {
			return h
		}
	}
	return -1
}

// waits: the entry of the present step is neither confirmed nor lost.
func (s *State) waits(t task) (done, lost bool) {
	if t.index == 0 {
		return true, false
	}
	l := &s.truth[t.store]
	if l.n < t.index {
		return false, false
	}
	return l.e[t.index-1] == t.entry, l.e[t.index-1] != t.entry
}

// propose has the leader write an entry for the task; a change of the members only when no other one is under way.
func (e *Explorer) propose(s *State, h, kind, a, b uint8) bool {
	x := &s.srv[h]
	if enter(0, kind, a, b).changes() && s.changing(x) {
		return false
	}
	store := x.data.store
	n, at := e.append(s, h, kind, a, b)
	if at == 0 {
		return false
	}
	s.task.entry, s.task.index, s.task.store = n, at, store
	return true
}

// changing: a change of the members is under way.
func (s *State) changing(x *server) bool {
	for _, n := range x.data.e[x.data.commit:x.data.n] {
		if n.changes() {
			return true
		}
	}
	return false
}

// joins does the next step of a server that joins: as server/peers does when it is asked to add it.
func (e *Explorer) joins(s *State, t *task) (string, bool) {
	x := &s.srv[t.host]
	l := s.leader(x.data.store)
	if l < 0 || x.uid == 0 {
		return "", false
	}
	c := s.content(&s.srv[l].data)
	name := nameOf(t.host)
	self := serverRecord(t.host, x.uid)
	switch t.step {
	case 0:
		var known *records.Server
		if r, ok := c.known()[nameText(name)]; ok {
			known = &r
		}
		step, _ := quorum.Join(known, c.list(), self)
		if e.Plant.Join != nil {
			step = e.Plant.Join(known, c.list(), self)
		}
		switch step {
		case quorum.Refuse:
			e.count("a server is refused that joins")
			*t = task{}
			return fmt.Sprintf("h%d may not join", t.host), true
		case quorum.Start:
			e.count("a server that was added already starts")
			return e.starts(s, t, &c)
		}
		t.step = 1
		return fmt.Sprintf("h%d is to be added", t.host), true
	case 1:
		// The record is compared with what it is now.
		if c.uid[name] != 0 && c.uid[name] != x.uid && !e.Plant.TakesNames {
			*t = task{}
			return fmt.Sprintf("another directory took the name of h%d meanwhile", t.host), true
		}
		t.step = 2
		return fmt.Sprintf("the record of h%d is written", t.host), e.propose(s, uint8(l), record, t.host, x.uid)
	case 2:
		for _, m := range c.members {
			if m.host != 0 && (!m.votes || m.host == t.host+1) {
				return "", false // another one is joining, or has the address
			}
		}
		if s.nextID > ids {
			return "", false
		}
		t.step, t.id = 3, s.nextID
		s.nextID++
		e.count("a server is added")
		return fmt.Sprintf("h%d is added as member %d", t.host, t.id), e.propose(s, uint8(l), add, t.id, t.host)
	}
	return e.starts(s, t, &c)
}

// starts has a server without data start as the member that has its address, by what one of the servers says.
func (e *Explorer) starts(s *State, t *task, c *content) (string, bool) {
	x := &s.srv[t.host]
	for id, m := range c.members {
		if m.host == t.host+1 {
			x.keep()
			x.data = data{id: uint8(id), store: x.data.store}
			x.up, x.back = true, s.started[id]
			s.started[id] = true
			host := t.host
			*t = task{}
			return fmt.Sprintf("h%d starts as member %d, without data", host, id), true
		}
	}
	return "", false
}

// leaves does the next step of a removal.
func (e *Explorer) leaves(s *State, t *task) (string, bool) {
	l := s.leader(t.store)
	if l < 0 {
		return "", false
	}
	c := s.content(&s.srv[l].data)
	switch t.step {
	case 0:
		return e.mayLeave(s, t, &c, uint8(l))
	case 1: // a voter's record goes first, for a server that removes itself ends
		t.step = 2
		return fmt.Sprintf("the record of s%d is removed", t.host), e.propose(s, uint8(l), forget, t.host, 0)
	case 2:
		t.step = 3
		if c.members[t.id].host == 0 {
			return e.left(s, t)
		}
		if s.srv[l].data.id == t.id {
			return e.handsOver(s, t, &c, uint8(l))
		}
		return fmt.Sprintf("member %d is removed", t.id), e.propose(s, uint8(l), remove, t.id, 0)
	}
	return e.left(s, t)
}

func (e *Explorer) left(s *State, t *task) (string, bool) {
	e.count("a server is removed")
	host := t.host
	*t = task{}
	return fmt.Sprintf("s%d is removed", host), true
}

// mayLeave decides a removal by who is reached now.
func (e *Explorer) mayLeave(s *State, t *task, c *content, l uint8) (string, bool) {
	store := s.srv[l].data.store
	members := e.named(c)
	alive := s.alive(c, store, e.Plant.AliveByAddress)
	name := nameText(t.host)
	for _, m := range members {
		if m.Name != name {
			continue
		}
		why := quorum.MayRemove(members, alive, m.ID)
		if e.Plant.MayRemove != nil {
			why = e.Plant.MayRemove(members, alive, m.ID)
		}
		if t.verb == replacing && alive[m.ID] {
			why = "it answers"
		}
		if why != "" {
			e.count("a removal is refused")
			*t = task{}
			return fmt.Sprintf("%s stays: %s", name, why), true
		}
		t.id = number(m.ID)
		after := *c
		after.apply(enter(0, remove, t.id, 0))
		if s.able(c, store) && !s.able(&after, store) {
			e.violate("member %d may be removed, and those that stay are no majority", t.id)
		}
		t.step = 1
		return fmt.Sprintf("member %d may be removed", t.id), true
	}
	t.step = 2 // only its record is there, if at all
	return fmt.Sprintf("%s has no member", name), c.uid[t.host] != 0
}

// alive are the members whose servers answer.
func (s *State) alive(c *content, store uint8, byAddress bool) map[string]bool {
	all := map[string]bool{}
	for id, m := range c.members {
		if m.host == 0 {
			continue
		}
		x := &s.srv[m.host-1]
		all[idText(uint8(id))] = x.up && x.serves && (byAddress || x.data.id == uint8(id) && x.data.store == store)
	}
	return all
}

// handsOver has the leader that removes itself give up the lead to the next voter, which has all that it has then.
func (e *Explorer) handsOver(s *State, t *task, c *content, l uint8) (string, bool) {
	to := quorum.Next(e.named(c), s.alive(c, s.srv[l].data.store, false), idText(t.id))
	if to == "" {
		return fmt.Sprintf("member %d is removed", t.id), e.propose(s, l, remove, t.id, 0)
	}
	at := s.runs(c, number(to), s.srv[l].data.store)
	if at < 0 {
		return "", false
	}
	if _, ok := e.send(s, l, uint8(at), false); !ok {
		return "", false
	}
	what, ok := e.elect(s, uint8(at), 1<<l)
	t.step = 2
	e.count("a leader hands over before it is removed")
	return what + ", for the leader is to be removed", ok
}
