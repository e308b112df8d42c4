package model

import "fmt"

// moves calls yield with every state that may follow s, and what happened.
func (e *Explorer) moves(s *State, yield func(next State, what string)) {
	for i := range servers {
		e.serverMoves(s, i, yield)
		e.joinMoves(s, i, yield)
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
	e.guardMoves(s, yield)
}

func (e *Explorer) serverMoves(s *State, i int, yield func(State, string)) {
	srv := &s.srv[i]
	if srv.cache != s.st || srv.joined != [nodes]bool{} {
		next := *s
		next.srv[i].read(s.st)
		yield(next, fmt.Sprintf("s%d's cache is up to date", i))
	}
	if s.st.leader == 0 && srv.term == 0 && s.left.Terms > 0 {
		next := *s
		next.left.Terms--
		next.st.leader, next.st.term = uint8(i+1), s.st.term+1
		next.srv[i] = server{cache: next.st, term: next.st.term}
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
	for k, d := range e.decide(&srv.cache, srv.gone) { // the server may crash between any two
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

// read brings the cache up to date; a silence that ended meanwhile begins anew.
func (v *server) read(st stored) {
	for n := range v.gone {
		if st.sess[n] != 0 || v.joined[n] {
			v.gone[n] = 0
		}
	}
	v.cache, v.joined = st, [nodes]bool{}
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
	h.asked, h.answered, h.listed = 0, false, false
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
	if v := &s.srv[i]; d.lost != 0 && !e.Plant.LostUncompared && (s.st.sess[d.lost-1] != 0 || v.joined[d.lost-1]) {
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
