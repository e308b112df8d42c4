package model

import (
	"fmt"
	"strings"
)

// offered is a report under way that its server may store in one transaction with what it decides because of it.
type offered struct {
	n uint8
	o int
}

// joinMoves are such transactions of one server, which believes to lead: with each report that came to it, and with
// each two of different identities.
func (e *Explorer) joinMoves(s *State, i int, yield func(State, string)) {
	if s.srv[i].term == 0 {
		return
	}
	var all []offered
	for n := range s.host {
		for o := range int(e.bounds.Members) {
			if h := &s.host[n]; h.sess == uint8(i+1) && h.up[o].tok != 0 && e.joins(s, i, uint8(n), o) {
				all = append(all, offered{uint8(n), o})
			}
		}
	}
	for k, a := range all {
		e.join(s, i, []offered{a}, yield)
		for _, b := range all[k+1:] {
			if a.o != b.o {
				e.join(s, i, []offered{a, b}, yield)
			}
		}
	}
}

// joins: session, member and report are in the store as the server's cache has them, and the report is news of
// the present life.
func (e *Explorer) joins(s *State, i int, n uint8, o int) bool {
	h, c := &s.host[n], &s.srv[i].cache
	r, x := h.up[o], c.slots[o]
	if !e.Plant.JoinsUncompared && (c.sess[n] != s.st.sess[n] || x != s.st.slots[o]) {
		return false
	}
	if e.Plant.JoinsOtherLife {
		return c.sess[n] == h.boot+1 && x.tok != 0
	}
	return c.sess[n] == h.boot+1 && x.tok == r.tok && x.node == n && (x.rtok != r.tok || x.rphase < r.phase)
}

// join stores reports in one transaction with all that follows from them, if that is as the cache has what it
// relied on.
func (e *Explorer) join(s *State, i int, reports []offered, yield func(State, string)) {
	with := s.srv[i].cache
	var names []string
	for _, r := range reports {
		letter, x := s.host[r.n].up[r.o], &with.slots[r.o]
		x.rtok, x.rphase = x.tok, letter.phase
		names = append(names, fmt.Sprintf("n%d on %d %s", r.n, r.o, letter))
	}
	list := e.decide(&with, s.srv[i].gone)
	next := *s
	for _, d := range list {
		if !e.commit(&next, i, d) {
			return
		}
	}
	if len(list) == 0 {
		return
	}
	what := fmt.Sprintf("s%d stores the report of %s with %d decisions", i, strings.Join(names, ", and of "), len(list))
	for _, known := range []bool{true, false} {
		after := next
		for _, r := range reports {
			h, letter := &s.host[r.n], s.host[r.n].up[r.o]
			if letter.phase == over && h.local[r.o].alive == letter.tok {
				e.violate("%s of %d is told to be over while it runs", letter.tok, r.o)
			}
			e.store(&after, r.n, r.o, known)
			if x := &after.st.slots[r.o]; s.st.slots[r.o].tok != letter.tok || x.tok == letter.tok && (x.rtok != letter.tok || x.rphase < letter.phase) {
				e.violate("s%d decides by a report on %d that it does not store", i, r.o)
			}
		}
		yield(after, fmt.Sprintf("%s (the answer arrives: %v)", what, known))
		if !known && s.left.Crashes > 0 {
			after.left.Crashes--
			after.crashServer(i)
			yield(after, what+", and crashes")
		}
	}
}
