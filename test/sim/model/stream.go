package model

import "fmt"

// streamMoves are hello, orders down, reports up, and the stream's end.
func (e *Explorer) streamMoves(s *State, n uint8, yield func(State, string)) {
	h := &s.host[n]
	if s.st.sess[n] != 0 && s.left.Cuts > 0 {
		next := *s
		next.left.Cuts--
		next.st.sess[n] = 0
		yield(next, fmt.Sprintf("n%d's session runs out", n))
	}
	if h.sess == 0 {
		if s.st.sess[n] == 0 || s.st.sess[n] == h.boot+1 {
			for i := range servers {
				next := *s
				e.hello(&next, n, i)
				yield(next, fmt.Sprintf("n%d says hello to s%d", n, i))
			}
		}
		return
	}
	if s.left.Cuts > 0 {
		next := *s
		next.left.Cuts--
		next.breakStream(n)
		yield(next, fmt.Sprintf("n%d's stream breaks", n))
	}
	if !h.told {
		next := *s
		if e.tell(&next, n) || e.bounds.Bound > 0 && !h.listed {
			yield(next, fmt.Sprintf("s%d tells n%d what it shall run", h.sess-1, n))
		}
	} else {
		next := *s
		e.take(&next, n)
		yield(next, fmt.Sprintf("n%d takes what it was told", n))
	}
	for o := range int(e.bounds.Members) {
		if h.up[o].tok == 0 {
			for _, l := range h.local[o].letters(h.up[o]) {
				next := *s
				next.host[n].up[o] = l
				yield(next, fmt.Sprintf("n%d reports %d %s", n, o, l))
			}
			continue
		}
		for _, known := range []bool{true, false} {
			next := *s
			e.store(&next, n, o, known)
			yield(next, fmt.Sprintf("the report of n%d on %d %s arrives (the answer arrives: %v)", n, o, h.up[o], known))
		}
	}
}

func (l letter) String() string {
	return fmt.Sprintf("%s %s", l.tok, []string{"", "runs", "is ready", "is over"}[l.phase])
}

// letters are what the agent may report.
func (l *local) letters(letter) (list []letter) {
	if l.open != 0 && l.alive == l.open && l.ogoal != stop {
		list = append(list, letter{l.open, ready})
	}
	for _, t := range l.ends {
		if t != 0 && (t != l.rec || l.clear()) {
			list = append(list, letter{t, over})
		}
	}
	if spent := l.otok != 0 && l.otok != l.open && l.otok <= l.newest && l.otok != l.ends[0] && l.otok != l.ends[1]; spent {
		list = append(list, letter{l.otok, over})
	}
	return list
}

// hello begins a session: the server's cache shows it before anything is told.
func (e *Explorer) hello(s *State, n uint8, i int) {
	h := &s.host[n]
	s.breakStream(n)
	h.sess = uint8(i + 1)
	s.st.sess[n], s.st.heard[n] = h.boot+1, s.st.epoch
	for k := range s.srv {
		s.srv[k].joined[n] = s.srv[k].term != 0
	}
	for o := range h.local {
		l := &h.local[o]
		held := e.held(l)
		x := &s.st.slots[o]
		s.st.stray[n][o] = 0
		if present := x.tok == held && x.node == n; held != 0 && !present && x.last <= held {
			s.st.stray[n][o] = held
		}
	}
	s.srv[i].read(s.st)
}

// held is the life that a node says it has: open, or yet to be.
func (e *Explorer) held(l *local) token {
	if pending := l.ogoal == run && l.otok > l.newest && l.over < l.otok; l.open == 0 && pending && !e.Plant.HidesPending {
		return l.otok
	}
	return l.open
}

// tell makes the message of what the server's cache wants of the node.
func (e *Explorer) tell(s *State, n uint8) bool {
	h := &s.host[n]
	c := &s.srv[h.sess-1].cache
	if c.sess[n] != h.boot+1 {
		return false
	}
	news := false
	for o := range h.local {
		l, x := &h.local[o], &c.slots[o]
		var m order
		if x.tok != 0 && x.node == n {
			m = order{tok: x.tok, goal: x.goal, boot: x.boot}
		}
		if held := e.held(l); held != 0 && m.tok != held && x.last > held {
			m.over = held
		}
		h.down[o] = m
		news = news || m.tok != 0 && (m.tok > l.otok || m.tok == l.otok && m.goal != l.ogoal) || m.over > l.over
	}
	h.told = true
	return news
}

// take hands orders to the workers. A Stop once told stays.
func (e *Explorer) take(s *State, n uint8) {
	h := &s.host[n]
	for o := range h.local {
		l, m := &h.local[o], h.down[o]
		if m.tok > l.otok || m.tok == l.otok && l.ogoal != stop && m.tok != 0 {
			l.otok, l.ogoal = m.tok, m.goal
			if m.boot != h.boot && m.goal == run && m.tok > l.newest { // it is refused for good
				l.close(m.tok)
			}
		}
		l.over = max(l.over, m.over)
	}
	if e.bounds.Restores > 0 {
		h.epoch = s.srv[h.sess-1].cache.epoch
	}
	h.told, h.down, h.listed = false, [Members]order{}, e.bounds.Bound > 0
}

// store writes a report as dispatch does: of the present life, by the live session.
func (e *Explorer) store(s *State, n uint8, o int, known bool) {
	h := &s.host[n]
	r := h.up[o]
	h.up[o] = letter{}
	if s.st.sess[n] != h.boot+1 {
		s.breakStream(n)
		return
	}
	x := &s.st.slots[o]
	if x.tok == r.tok && x.node == n && (x.rtok != r.tok || x.rphase < r.phase) {
		x.rtok, x.rphase = r.tok, r.phase
		if r.phase == over && h.local[o].alive == r.tok {
			e.violate("%s of %d is told to be over while it runs", r.tok, o)
		}
	}
	if r.phase == over && known {
		if s.st.stray[n][o] == r.tok {
			s.st.stray[n][o] = 0
		}
		for k, t := range h.local[o].ends {
			if t == r.tok {
				h.local[o].ends[k] = 0
			}
		}
	}
}
