package servers

import (
	"fmt"
	"strconv"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/quorum"
	"github.com/stead-project/stead/spec"
)

func idText(id uint8) string {
	if id == 0 {
		return ""
	}
	return strconv.Itoa(int(id))
}

func nameText(name uint8) string { return "s" + strconv.Itoa(int(name)) }

func addressOf(host uint8) string { return "h" + strconv.Itoa(int(host)) + ":1" }

// list is the store's own list of its members.
func (c *content) list() (out []stores.StoreMember) {
	for id, m := range c.members {
		if m.host == 0 {
			continue
		}
		x := stores.StoreMember{ID: idText(uint8(id)), Peer: addressOf(m.host - 1), Learner: !m.votes}
		if m.named {
			x.Name = nameText(nameOf(m.host - 1))
		}
		out = append(out, x)
	}
	return out
}

// named is the list with names, as it is shown.
func (e *Explorer) named(c *content) []stores.StoreMember {
	list := quorum.Named(c.list(), c.known())
	for i, m := range list {
		if m.Name == m.Peer && e.Plant.NamesByRecord {
			list[i].Name = ""
		}
	}
	return list
}

// serverRecord is that of a directory on a host.
func serverRecord(host, uid uint8) records.Server {
	return records.Server{Name: nameText(nameOf(host)), UID: spec.UID(idText(uid)), Peer: addressOf(host), Addresses: []string{addressOf(host)}}
}

// known are the records of servers.
func (c *content) known() map[string]records.Server {
	all := map[string]records.Server{}
	for n, uid := range c.uid {
		if uid != 0 {
			all[nameText(uint8(n))] = serverRecord(c.at[n], uid)
		}
	}
	return all
}

func (m mark) real() stores.Mark { return stores.Mark{Term: uint64(m.term), Index: uint64(m.index)} }

func realMarks(list [ids + 1]mark) map[string]stores.Mark {
	all := map[string]stores.Mark{}
	for id, m := range list {
		if m != (mark{}) {
			all[idText(uint8(id))] = m.real()
		}
	}
	return all
}

// at is how far a member has come, by what it uses.
func (d *data) at() mark { return mark{d.term, d.commit} }

// looks has each server note, as they do every few seconds.
func (e *Explorer) looks(s *State) bool {
	s.left.Looks--
	before := *s
	for h := range s.srv {
		e.look(s, &before, uint8(h))
	}
	return s.srv != before.srv
}

// look has a server note how far the members that it reaches have come.
func (e *Explorer) look(s, before *State, h uint8) {
	x := &s.srv[h]
	if !x.up || !x.serves {
		return
	}
	c := s.content(&x.data)
	now := [ids + 1]mark{}
	for id := uint8(1); id <= ids; id++ {
		if at := s.runs(&c, id, x.data.store); at >= 0 {
			if m := &s.srv[at]; m.loose && before.srv[h].last[id] == m.data.at() {
				m.loose = false // it is on its disk since
			}
			now[id] = s.srv[at].data.at()
		}
	}
	kept, last := realMarks(x.marks), realMarks(x.last)
	seen := map[string]stores.Mark{}
	for id, m := range now {
		if m != (mark{}) {
			seen[idText(uint8(id))] = m.real()
		}
	}
	if e.Plant.KeepsAtOnce {
		last = seen
	}
	members := c.list()
	if e.Plant.ForgetsSilent {
		members = nil
	}
	next := quorum.Noted(kept, last, seen, members)
	x.marks = [ids + 1]mark{}
	for id := uint8(1); id <= ids; id++ {
		m := next[idText(id)]
		x.marks[id] = mark{uint8(m.Term), uint8(m.Index)}
		if now[id] != (mark{}) {
			x.told[0][id], x.told[1][id] = x.told[0][id].or(x.told[1][id]), now[id]
		}
	}
	x.last = now
}

// start has a server that has data begin; alone: no other one answers.
func (e *Explorer) start(s *State, h uint8, alone bool) string {
	x := &s.srv[h]
	d := &x.data
	have := mark{d.term, d.n}
	was := x.marks[d.id].real()
	var acked []stores.Mark
	removed := false
	// What the judge knows that somebody could have said.
	said := x.told[0][d.id]
	var leads bool
	for o := range s.srv {
		y := &s.srv[o]
		if alone || uint8(o) == h || !y.up || !y.serves {
			continue
		}
		m := y.marks[d.id]
		was = was.Or(m.real())
		said = said.or(y.told[0][d.id])
		c := s.content(&y.data)
		removed = removed || c.gone[d.id]
		a := mark{}
		if y.leads && y.match[d.id] > 0 {
			a = mark{y.data.term, y.match[d.id]}
			leads = leads || a.term == d.term && a.index > d.n || a.term > d.term
		}
		acked = append(acked, a.real())
	}
	if e.Plant.AsksNoLeader {
		acked = nil
	}
	if removed && !e.Plant.SaysNotRemoved {
		e.count("a removed member is told so when it starts")
		return fmt.Sprintf("h%d is told that it was removed, and does not start", h)
	}
	why := quorum.SetBack(nameText(nameOf(h)), have.real(), was, acked)
	if e.Plant.SetBack != nil {
		why = e.Plant.SetBack(have.real(), was, acked)
	}
	if why != "" {
		if !x.back {
			e.violate("h%d is refused, and its data is all there", h)
		}
		e.count("data that went back is refused")
		return fmt.Sprintf("h%d is refused, for its data went back", h)
	}
	x.up = true
	if t := s.truthOf(d.store); x.back && t.gone[d.id] && removed {
		return fmt.Sprintf("h%d starts with old data of a member that was removed", h)
	}
	if x.back {
		if said.term > have.term || said.index > have.index || leads {
			e.violate("h%d starts with data that went back, and somebody knew", h)
		}
		s.beyond = true
		e.count("data went back, and nobody knew")
		return fmt.Sprintf("h%d starts with data that went back, which nobody knows", h)
	}
	e.count("a server starts again")
	return fmt.Sprintf("h%d starts (alone: %v)", h, alone)
}
