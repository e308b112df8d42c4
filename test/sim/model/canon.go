package model

// The terms that matter: that of the leader, and any before it.
const (
	stale uint8 = iota + 1
	current
)

// canon makes states equal that can do the same: what nobody will look at is zero.
func (s *State) canon() {
	for i := range s.srv {
		v := &s.srv[i]
		c := &v.cache
		shows := c.leader == uint8(i+1) && c.term == v.term
		switch leads := s.st.leader == uint8(i+1) && s.st.term == v.term; {
		case v.term == 0:
		case leads:
			v.term = current
		default:
			v.term = stale
		}
		c.leader, c.term = 0, 0
		if v.term != 0 && shows {
			c.leader, c.term = uint8(i+1), v.term
		}
		if v.term != 0 {
			continue
		}
		v.gone, v.joined = [nodes]uint8{}, [nodes]bool{}
		c.heard, c.stray, c.want, c.epoch = [nodes]uint8{}, [nodes][Members]token{}, 0, 0
		for n := range s.host {
			if s.host[n].sess != uint8(i+1) { // it tells the node nothing
				c.sess[n] = 0
				for o := range c.slots {
					if c.slots[o].node == uint8(n) {
						c.slots[o] = slot{last: c.slots[o].last}
					}
				}
			}
		}
		if s.host[0].sess != uint8(i+1) && s.host[1].sess != uint8(i+1) {
			v.cache = stored{}
		}
	}
	for n := range s.host {
		for o := range s.host[n].local {
			if l := &s.host[n].local[o]; l.open != l.rec && l.clear() { // nothing is left to be killed
				l.rec, l.ended, l.killed = 0, false, false
			}
		}
	}
	s.st.term = current
	s.back.leader, s.back.term, s.back.sess = 0, 0, [nodes]uint8{}
	if s.left.Restores == 0 {
		s.back = stored{}
	}
	if s.left.Backups == 0 && s.left.Restores == 0 && s.st.epoch == 1 {
		s.first = [Members][16]uint8{} // without a restore the ledgers know as much
	}
}
