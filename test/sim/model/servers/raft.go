package servers

import (
	"fmt"
	"math/bits"
)

// content is what the data comes to as far as it is confirmed.
func (s *State) content(d *data) content { return s.contentTo(d, d.commit) }

func (s *State) contentTo(d *data, n uint8) content {
	c := s.base[d.store]
	for _, e := range d.e[:min(n, d.n)] {
		c.apply(e)
	}
	return c
}

func (c *content) voters() (n uint8) {
	for _, m := range c.members {
		if m.votes {
			n++
		}
	}
	return n
}

// runs is the host that runs a member of a store; -1: none.
func (s *State) runs(c *content, id, store uint8) int {
	h := int(c.members[id].host) - 1
	if h < 0 || !s.srv[h].up || s.srv[h].data.id != id || s.srv[h].data.store != store {
		return -1
	}
	return h
}

// confirmed: most voters that the leader on h knows are up, and none of them knows a later term. What it reads then is the newest.
func (s *State) confirmed(h uint8) bool {
	x := &s.srv[h]
	if !x.up || !x.leads || x.data.commit == 0 || x.data.e[x.data.commit-1].term() != x.data.term {
		return false
	}
	c := s.content(&x.data)
	up := uint8(0)
	for id, m := range c.members {
		if at := s.runs(&c, uint8(id), x.data.store); m.votes && at >= 0 && s.srv[at].data.term <= x.data.term {
			up++
		}
	}
	return up > c.voters()/2
}

// able: most voters of the members are up.
func (s *State) able(c *content, store uint8) bool {
	up := uint8(0)
	for id, m := range c.members {
		if m.votes && s.runs(c, uint8(id), store) >= 0 {
			up++
		}
	}
	return c.voters() > 0 && up > c.voters()/2
}

// append has a leader write an entry; 0: it has no room.
func (e *Explorer) append(s *State, h, kind, a, b uint8) (entry, uint8) {
	x := &s.srv[h]
	if x.data.n == most {
		return 0, 0
	}
	n := enter(x.data.term, kind, a, b)
	x.data.e[x.data.n] = n
	x.data.n++
	x.match[x.data.id] = x.data.n
	e.confirm(s, h)
	return n, x.data.n
}

// confirm counts what most voters have, which a change of them may change.
func (e *Explorer) confirm(s *State, h uint8) {
	x := &s.srv[h]
	for {
		c := s.content(&x.data)
		to := x.data.commit
		for n := x.data.n; n > x.data.commit; n-- {
			have := uint8(0)
			for id, m := range c.members {
				if m.votes && x.match[id] >= n {
					have++
				}
			}
			if have > c.voters()/2 && x.data.e[n-1].term() == x.data.term {
				to = n
				break
			}
		}
		if to == x.data.commit {
			return
		}
		// Up to the next change of the members.
		for x.data.commit < to {
			x.data.commit++
			if n := x.data.e[x.data.commit-1]; n.changes() {
				if n.kind() == remove {
					x.match[n.a()] = 0 // of one that was removed nothing is known any more
				}
				break
			}
		}
		e.decided(s, h)
		if c := s.content(&x.data); c.members[x.data.id].host == 0 { // it removed itself
			s.ends(h)
			return
		}
	}
}

// decided judges what a leader takes for confirmed, and keeps it.
func (e *Explorer) decided(s *State, h uint8) {
	x := &s.srv[h]
	t := &s.truth[x.data.store]
	all := x.data.log
	all.cut(x.data.commit)
	if !all.begins(t) && !t.begins(&all) {
		e.violate("two histories are confirmed: the server on h%d has another one", h)
		return
	}
	if all.n > t.n {
		*t = all
		for _, l := range all.e[:all.n] {
			if l.kind() == write {
				e.count("a write is acknowledged")
			}
		}
	}
	c := s.content(&x.data)
	var has [names]bool
	for _, m := range c.members {
		if m.host == 0 {
			continue
		}
		n := nameOf(m.host - 1)
		if has[n] {
			e.violate("the name s%d belongs to two members", n)
		}
		has[n] = true
	}
	for _, m := range e.named(&c) {
		if m.Name == "" {
			e.violate("member %s has no name by which it can be removed", m.ID)
		}
	}
}

// ends has the process of a server end.
func (s *State) ends(h uint8) {
	x := &s.srv[h]
	if x.loose {
		x.data.cut(x.data.n - 1)
		x.data.commit = min(x.data.commit, x.data.n)
	}
	x.up, x.leads, x.serves, x.begun, x.loose = false, false, false, false, false
	x.match, x.last = [ids + 1]uint8{}, [ids + 1]mark{}
	if s.node.store == x.data.store+1 && !s.anyBegun(x.data.store) {
		s.node.store = 0
	}
}

func (s *State) anyBegun(store uint8) bool {
	for h := range s.srv {
		if x := &s.srv[h]; x.up && x.begun && x.data.store == store {
			return true
		}
	}
	return false
}

// follows has a member take over a term; its vote in that is free.
func (x *server) follows(term uint8) {
	if term > x.data.term {
		x.data.term, x.data.vote = term, 0
		x.leads, x.begun = false, false
		x.match = [ids + 1]uint8{}
	}
}

// elect has the server on h ask some of the voters that it knows; asked are their hosts.
func (e *Explorer) elect(s *State, h uint8, asked uint8) (what string, ok bool) {
	x := &s.srv[h]
	c := s.content(&x.data)
	if me := c.members[x.data.id]; !x.up || x.leads || !me.votes || x.data.term >= e.bounds.Terms {
		return "", false
	}
	x.data.term++
	x.data.vote, x.loose = x.data.id, false
	votes := uint8(1)
	e.casts(s, h, x.data.id)
	for o := range uint8(hosts) {
		if asked&(1<<o) == 0 {
			continue
		}
		v := &s.srv[o]
		m := c.members[v.data.id]
		if o == h || m.host != o+1 || !m.votes || s.runs(&c, v.data.id, x.data.store) < 0 {
			return "", false
		}
		if known := s.content(&v.data); known.gone[x.data.id] {
			continue // it is told that it was removed
		}
		v.follows(x.data.term)
		v.loose = false
		newer := x.data.last() > v.data.last() || x.data.last() == v.data.last() && x.data.n >= v.data.n
		if e.Plant.ComparesNoLogs {
			newer = true
		}
		if v.data.term == x.data.term && (v.data.vote == 0 || v.data.vote == x.data.id) && newer {
			v.data.vote = x.data.id
			votes++
			e.casts(s, o, x.data.id)
		}
	}
	what = fmt.Sprintf("h%d asks %04b for votes in term %d", h, asked, x.data.term)
	if votes <= c.voters()/2 {
		if s.left.Vain == 0 || asked == 0 {
			return "", false
		}
		s.left.Vain--
		return what, true
	}
	if votes > c.voters()/2+1 || bits.OnesCount8(asked) >= int(votes) {
		return "", false // with fewer it goes as well
	}
	x.leads, x.serves, x.match = true, true, [ids + 1]uint8{}
	if t := &s.truth[x.data.store]; !x.data.begins(t) {
		e.violate("h%d leads in term %d without what was confirmed", h, x.data.term)
	}
	if c.gone[x.data.id] {
		e.violate("h%d leads, and was removed", h)
	}
	if _, at := e.append(s, h, noop, 0, 0); at == 0 {
		return "", false
	}
	e.count("a server is elected")
	return what + ", and leads", true
}

// casts judges that a member votes once in a term.
func (e *Explorer) casts(s *State, h, who uint8) {
	d := &s.srv[h].data
	if s.srv[h].back {
		e.violate("member %d votes, and its data went back", d.id)
	}
	v := &s.voted[d.term][d.id]
	if *v != 0 && *v != who {
		e.violate("member %d votes twice in term %d", d.id, d.term)
	}
	*v = who
}

// send has the leader on l send a member all that it has.
func (e *Explorer) send(s *State, l, h uint8, loose bool) (what string, ok bool) {
	x, f := &s.srv[l], &s.srv[h]
	if !x.up || !x.leads || l == h {
		return "", false
	}
	c := s.content(&x.data)
	if c.members[f.data.id].host != h+1 || s.runs(&c, f.data.id, x.data.store) < 0 {
		return "", false
	}
	if f.data.term > x.data.term {
		x.follows(f.data.term)
		return fmt.Sprintf("h%d learns of term %d from h%d", l, x.data.term, h), true
	}
	f.follows(x.data.term)
	if known := s.content(&f.data); known.gone[x.data.id] {
		return "", false
	}
	if f.data.n < x.match[f.data.id] {
		e.count("a member whose data went back stops when its leader counts on more")
		s.ends(h)
		return fmt.Sprintf("h%d counts on more than h%d has, which stops", l, h), true
	}
	before := f.data
	own := f.data.log
	own.cut(f.data.commit)
	if !x.data.begins(&own) {
		e.violate("h%d is told to forget what was confirmed", h)
	}
	f.serves = true
	if loose {
		if s.left.Loose == 0 || x.data.n == f.data.n {
			return "", false
		}
		s.left.Loose--
	}
	f.data.log = x.data.log
	f.back = f.back && c.members[f.data.id].votes
	f.data.commit = min(x.data.commit, f.data.n)
	f.loose = loose
	if !loose {
		x.match[f.data.id] = f.data.n
	}
	changed := f.data != before || !loose
	e.confirm(s, l)
	return fmt.Sprintf("h%d sends all to h%d (loose: %v)", l, h, loose), changed
}
