package move

import (
	"fmt"

	"github.com/stead-project/stead/records/moves"
)

func (h *host) breakStream() { h.sess, h.letter = 0, letter{} }

// view is what a server knows.
func (s *State) view(i uint8) *stored {
	if i == 0 {
		return &s.st
	}
	return &s.old
}

// streamMoves are hello, what a node is told, what it says, and the stream's end.
func (e *Explorer) streamMoves(s *State, n uint8, yield func(State, string)) {
	h := &s.host[n]
	do := func(what string, change func(next *State, h *host) bool) {
		next := *s
		if change(&next, &next.host[n]) {
			yield(next, what)
		}
	}
	if s.st.node[n].sess && s.left.Cuts > 0 {
		do(fmt.Sprintf("n%d's session runs out", n), func(next *State, _ *host) bool {
			next.left.Cuts--
			next.st.node[n].sess = false
			return true
		})
	}
	if h.sess == 0 {
		for i := range uint8(servers) {
			if i == 1 && e.bounds.Behind == 0 {
				continue
			}
			do(fmt.Sprintf("n%d says hello to s%d", n, i), func(next *State, _ *host) bool {
				e.hello(next, n, i)
				return true
			})
		}
		return
	}
	do(fmt.Sprintf("n%d is told by s%d", n, h.sess-1), func(next *State, h *host) bool { return e.tell(next, n) && *h != s.host[n] })
	if h.letter.kind == 0 {
		for _, l := range e.letters(s, n) {
			do(fmt.Sprintf("n%d says %s", n, l), func(next *State, h *host) bool {
				h.letter = l
				if !e.bounds.Late {
					e.store(next, n)
				}
				return true
			})
		}
		return
	}
	do(fmt.Sprintf("s%d stores what n%d said: %s", h.sess-1, n, h.letter), func(next *State, _ *host) bool { e.store(next, n); return true })
}

func (l letter) String() string {
	switch l.kind {
	case ofLife:
		return fmt.Sprintf("%s %s", l.tok, []string{"", "runs", "is ready", "is over"}[l.phase])
	case ofLeft:
		return "the old copy is gone"
	}
	text := ""
	for i, x := range l.said {
		if x.state != 0 {
			text += fmt.Sprintf("move %d: %s %d (key %v, unknown %v) ", i+1, sayings[x.state], x.sum, x.key, x.unknown)
		}
	}
	return text
}

// say is what an agent says of its parts.
func (e *Explorer) say(s *State, n uint8) (list [most]said) {
	h := &s.host[n]
	for i := range h.parts {
		m, p := uint8(i+1), &h.parts[i]
		if !p.known {
			continue
		}
		if p.sealing != 0 { // it says nothing new until that has ended
			list[i] = said{state: indexOf(sayings, moves.MoveOffered), key: true}
			continue
		}
		next := e.choose(s, n, m)
		phase := phases[p.order.phase]
		list[i] = said{
			state: indexOf(sayings, next.Say), sum: sumOf(next.Sums), unknown: phase == "" && next.Say == moves.MoveSealed,
			key: phase != "" && phase != moves.MoveAborting && phase != moves.MoveFlipped && next.Say != moves.MoveFailed,
		}
	}
	return list
}

// own are those of them that a server stores by its view: of the move that it knows, and seals of others.
func (s *State) own(v *stored, n uint8, list [most]said) [most]said {
	for i := range list {
		m := uint8(i + 1)
		if v.move.id == m {
			continue
		}
		h := history{s.from, s.was}
		if h.role(n, m) != moves.MoveSource || sayings[list[i].state] != moves.MoveSealed || v.vol.node != n {
			list[i] = said{}
		}
	}
	return list
}

// letters are what an agent may say now that the store does not have.
func (e *Explorer) letters(s *State, n uint8) (list []letter) {
	h, x := &s.host[n], &s.st.node[n]
	if h.open != 0 && h.alive == h.open && !(s.st.life.rtok == h.open && s.st.life.rphase >= ready) {
		list = append(list, letter{kind: ofLife, tok: h.open, phase: ready})
	}
	for _, t := range h.ends {
		if t != 0 {
			list = append(list, letter{kind: ofLife, tok: t, phase: over})
		}
	}
	if t := h.otok; t != 0 && t <= h.newest && t != h.open && t != h.ends[0] && t != h.ends[1] && s.st.life.tok == t && s.st.life.rphase != over {
		list = append(list, letter{kind: ofLife, tok: t, phase: over}) // it is told of a life that was over before
	}
	if all := e.say(s, n); s.own(s.view(h.sess-1), n, all) != x.said {
		list = append(list, letter{kind: ofMoves, said: all})
	}
	if h.left != 0 && x.left == h.left && !(h.place.any && h.place.vol == h.left-1) {
		list = append(list, letter{kind: ofLeft})
	}
	return list
}

// held is the life that a node says it has: open, or yet to be.
func (h *host) held() token {
	if h.open == 0 && h.ogoal == run && h.otok > h.newest && h.over < h.otok {
		return h.otok
	}
	return h.open
}

// hello begins a session with a server, which has read the store by then.
func (e *Explorer) hello(s *State, n, i uint8) {
	h := &s.host[n]
	h.breakStream()
	h.sess = i + 1
	if i == 1 {
		s.old = s.st
	}
	x := &s.st.node[n]
	x.sess, x.heard, x.stray = true, s.st.epoch, 0
	if t := h.held(); t != 0 && !(s.st.life.tok == t && s.st.life.node == n) && s.st.life.last <= t {
		x.stray = t
	}
	x.said = s.own(s.view(i), n, e.say(s, n))
	if s.st.life.node == n && s.st.life.rphase == ready {
		s.st.life.rphase = running // until it is said in this session
	}
	if i == 1 {
		s.old = s.st
	}
}

// tell has a node take what its server's view wants of it.
func (e *Explorer) tell(s *State, n uint8) bool {
	h := &s.host[n]
	v := s.view(h.sess - 1)
	if !v.node[n].sess {
		return false
	}
	restored := v.node[0].heard != v.epoch || v.node[1].heard != v.epoch // and not all have said hello
	h.epoch = v.epoch
	if l := v.life; l.tok != 0 && l.node == n && v.node[1-n].stray == 0 {
		if l.tok > h.otok || l.tok == h.otok && h.ogoal != stop {
			h.otok, h.ogoal, h.ovol = l.tok, l.goal, l.vol
		}
	}
	if restored {
		return true
	}
	if t := h.held(); t != 0 && !(v.life.tok == t && v.life.node == n) && v.life.last > t {
		h.over = max(h.over, t)
	}
	h.left = v.node[n].left
	h.told, h.moves = true, v.epoch
	for i := range h.parts {
		p := &h.parts[i]
		if v.move.id != uint8(i+1) {
			p.order = order{}
			continue
		}
		o := e.orderFor(s.picture(v), n)
		if !p.known {
			*p = part{known: true, epoch: v.epoch}
		}
		p.order = o
	}
	return true
}

// store writes what a node said, by its live session.
func (e *Explorer) store(s *State, n uint8) {
	h, x := &s.host[n], &s.st.node[n]
	l := h.letter
	h.letter = letter{}
	if !x.sess {
		h.breakStream()
		return
	}
	switch l.kind {
	case ofMoves:
		x.said = s.own(s.view(h.sess-1), n, l.said)
	case ofLeft:
		x.left = 0
	case ofLife:
		if r := &s.st.life; r.tok == l.tok && r.node == n && (r.rtok != l.tok || r.rphase < l.phase) {
			r.rtok, r.rphase = l.tok, l.phase
		}
		if l.phase != over {
			return
		}
		if x.stray == l.tok {
			x.stray = 0
		}
		for i := range h.ends {
			if h.ends[i] == l.tok {
				h.ends[i] = 0
			}
		}
	}
}
