package model

import (
	"fmt"

	"github.com/stead-project/stead/agent/step"
)

// moves calls yield with every state that may follow s, and what happened.
func (e *Explorer) moves(s *State, yield func(next State, what string)) {
	for i := range servers {
		e.serverMoves(s, i, yield)
	}
	for n := range uint8(nodes) {
		e.streamMoves(s, n, yield)
		e.hostMoves(s, n, yield)
	}
	if s.st.leader != 0 && s.left.Terms > 0 {
		next := *s
		next.st.leader = 0
		yield(next, "the leader's lease runs out")
	}
	for want := range uint8(e.bounds.Members + 1) {
		if s.left.Edits > 0 && want != s.st.want {
			next := *s
			next.left.Edits--
			next.st.want = want
			yield(next, fmt.Sprintf("the user asks for %d members", want))
		}
	}
	e.restoreMoves(s, yield)
}

func (e *Explorer) serverMoves(s *State, i int, yield func(State, string)) {
	srv := &s.srv[i]
	if srv.cache != s.st {
		next := *s
		next.srv[i].cache = s.st
		yield(next, fmt.Sprintf("s%d's cache is up to date", i))
	}
	if s.st.leader == 0 && srv.term == 0 && s.left.Terms > 0 {
		next := *s
		next.left.Terms--
		next.st.leader, next.st.term = uint8(i+1), s.st.term+1
		next.srv[i].term, next.srv[i].cache = next.st.term, next.st
		yield(next, fmt.Sprintf("s%d leads", i))
	}
	if srv.term != 0 && (srv.cache.leader != uint8(i+1) || srv.cache.term != srv.term) {
		next := *s
		next.srv[i].term = 0
		yield(next, fmt.Sprintf("s%d knows that it does not lead", i))
	}
	if s.left.Crashes > 0 {
		next := *s
		next.left.Crashes--
		next.crashServer(i)
		yield(next, fmt.Sprintf("s%d crashes and starts again", i))
	}
	if srv.term == 0 {
		return
	}
	next := *s
	for k, d := range e.decide(&srv.cache) { // the server may crash between any two
		before := next
		if !e.commit(&next, i, d) {
			next = before
			continue
		}
		what := fmt.Sprintf("s%d writes: %s %d", i, d.kind, d.o)
		if d.kind == "start" {
			what += fmt.Sprintf(" as %s on n%d", d.tok, d.node)
		}
		yield(next, what)
		if k == 0 && s.left.Crashes > 0 {
			dies := next
			dies.left.Crashes--
			dies.crashServer(i)
			yield(dies, what+", and crashes")
		}
	}
}

// crashServer ends a server's process; another begins with what the store has.
func (s *State) crashServer(i int) {
	s.srv[i] = server{cache: s.st}
	for n := range s.host {
		if s.host[n].sess == uint8(i+1) {
			s.breakStream(uint8(n))
		}
	}
}

func (s *State) breakStream(n uint8) {
	h := &s.host[n]
	h.sess, h.told, h.down, h.up = 0, false, [Members]order{}, [Members]letter{}
}

// commit writes one decision, if all it relied on is as the cache had it.
func (e *Explorer) commit(s *State, i int, d deed) bool {
	x, c := &s.st.slots[d.o], &s.srv[i].cache
	if x.last.number() >= e.bounds.Numbers && d.kind == "start" {
		return false
	}
	leads := s.st.leader == uint8(i+1) && s.st.term == s.srv[i].term
	if !leads && !e.Plant.StaleLeaderWrites {
		return false
	}
	if *x != c.slots[d.o] || s.st.epoch != c.epoch || s.st.want != c.want {
		return false
	}
	switch d.kind {
	case "start":
		if s.st.sess[d.node] != c.sess[d.node] || s.st.heard[d.node] != c.heard[d.node] || s.st.stray[d.node] != c.stray[d.node] {
			return false
		}
		*x = slot{tok: d.tok, node: d.node, boot: d.boot, goal: run, last: d.tok}
	case "stop":
		x.goal = stop
	case "forget":
		x.tok, x.node, x.boot, x.goal, x.rtok, x.rphase = 0, 0, 0, 0, 0, 0
	}
	if !leads {
		e.violate("s%d writes, and does not lead", i)
	}
	return true
}

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
		if next.tell(n) {
			yield(next, fmt.Sprintf("s%d tells n%d what it shall run", h.sess-1, n))
		}
	} else {
		next := *s
		next.take(n)
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
		if t != 0 {
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
	for o := range h.local {
		l := &h.local[o]
		held := l.open
		if pending := l.ogoal == run && l.otok > l.newest && l.over < l.otok; held == 0 && pending && !e.Plant.HidesPending {
			held = l.otok
		}
		x := &s.st.slots[o]
		s.st.stray[n][o] = 0
		if present := x.tok == held && x.node == n; held != 0 && !present && x.last <= held {
			s.st.stray[n][o] = held
		}
	}
	s.srv[i].cache = s.st
}

// tell makes the message of what the server's cache wants of the node.
func (s *State) tell(n uint8) bool {
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
		if held := l.open; held != 0 && m.tok != held && x.last > held {
			m.over = held
		}
		h.down[o] = m
		news = news || m.tok != 0 && (m.tok > l.otok || m.tok == l.otok && m.goal != l.ogoal) || m.over > l.over
	}
	h.told = true
	return news
}

// take hands orders to the workers. A Stop once told stays.
func (s *State) take(n uint8) {
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
	h.told, h.down = false, [Members]order{}
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

func (l *local) close(t token) {
	if l.open == t {
		l.open = 0
	}
	l.newest = max(l.newest, t)
	for k := range l.ends {
		if l.ends[k] == 0 {
			l.ends[k] = t
			return
		}
	}
	l.ends[0], l.ends[1] = l.ends[1], t // more than the model has room for: the oldest was told long ago
}

// hostMoves are the agent's operations, its crash, and the machine's.
func (e *Explorer) hostMoves(s *State, n uint8, yield func(State, string)) {
	h := &s.host[n]
	for o := range int(e.bounds.Members) {
		l := &h.local[o]
		op, t := l.next(h.boot, h.boot)
		if op.Kind == step.Nothing || op.Kind == step.Wait {
			continue
		}
		next := *s
		e.perform(&next, n, o, op.Kind, t)
		yield(next, fmt.Sprintf("n%d: %s for %d %s", n, op.Kind, o, t))
	}
	if s.left.Crashes > 0 {
		next := *s
		next.left.Crashes--
		next.breakStream(n)
		for o := range next.host[n].local {
			next.host[n].local[o].forget()
		}
		yield(next, fmt.Sprintf("n%d's agent crashes and starts again", n))
	}
	if s.left.Reboots > 0 {
		next := *s
		next.left.Reboots--
		next.breakStream(n)
		next.host[n].boot++
		for o := range next.host[n].local {
			l := &next.host[n].local[o]
			if l.alive, l.box = 0, none; l.open != 0 {
				l.close(l.open)
			}
			l.otok, l.ogoal, l.over = 0, none, 0
		}
		yield(next, fmt.Sprintf("n%d boots anew", n))
	}
}

// forget is what an agent loses; the order of an open life is kept on tmpfs.
func (l *local) forget() {
	switch {
	case l.open == 0:
		l.otok, l.ogoal = 0, none
	case l.over >= l.open || l.otok > l.open:
		l.otok, l.ogoal = l.open, stop
	case l.otok != l.open:
		l.otok, l.ogoal = l.open, run
	}
	l.over = 0
}

// perform does an operation of an agent.
func (e *Explorer) perform(s *State, n uint8, o int, kind step.Kind, t token) {
	l := &s.host[n].local[o]
	switch kind {
	case step.OpenToken:
		l.open, l.newest = t, t
	case step.CreateContainer: // and at once:
		l.box, l.alive = up, t
		e.started(s, n, o, t)
	case step.StartContainer:
		l.box, l.alive = up, t
		e.started(s, n, o, t)
	case step.KillAll: // and at once:
		l.alive, l.box = 0, none
	case step.RemoveContainer, step.RemoveContainers:
		l.box = none
	case step.CloseToken, step.Refuse:
		l.close(t)
	default:
		panic("the model does not know the operation " + string(kind))
	}
}

// started judges the begin of a process.
func (e *Explorer) started(s *State, n uint8, o int, t token) {
	first := s.firstOf(o, t)
	if *first != 0 && *first != n+1 {
		e.violate("token %s of %d is started on n%d, and was on n%d", t, o, n, *first-1)
	}
	for m := range uint8(nodes) {
		if other := s.host[m].local[o].alive; m != n && other != 0 {
			e.violate("two lives of %d: %s on n%d and %s on n%d", o, t, n, other, m)
		}
	}
	*first = n + 1
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
	epoch := s.st.epoch + 1
	if e.Plant.RestoreKeepsEpoch {
		epoch = s.st.epoch
	}
	next.st, next.back = s.back, stored{}
	next.st.epoch, next.st.leader, next.st.sess, next.st.term = epoch, 0, [nodes]uint8{}, s.st.term
	for i := range servers {
		next.crashServer(i)
	}
	yield(next, "the backup is restored")
}
