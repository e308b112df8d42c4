package model

import "fmt"

// joinMoves store a report in one transaction with all that its server, which believes to lead, decides because of it: if
// session, member and report are as its cache has them, and all that the decisions relied on.
func (e *Explorer) joinMoves(s *State, n uint8, o int, yield func(State, string)) {
	h := &s.host[n]
	i := int(h.sess) - 1
	srv := &s.srv[i]
	r, x, sess := h.up[o], srv.cache.slots[o], srv.cache.sess[n]
	if srv.term == 0 || sess != h.boot+1 || sess != s.st.sess[n] || x != s.st.slots[o] {
		return
	}
	if x.tok != r.tok || x.node != n || x.rtok == r.tok && x.rphase >= r.phase {
		return
	}
	with := srv.cache
	with.slots[o].rtok, with.slots[o].rphase = r.tok, r.phase
	list := e.decide(&with, srv.gone)
	next := *s
	for _, d := range list {
		if !e.commit(&next, i, d) {
			return
		}
	}
	if len(list) == 0 {
		return
	}
	if r.phase == over && h.local[o].alive == r.tok {
		e.violate("%s of %d is told to be over while it runs", r.tok, o)
	}
	what := fmt.Sprintf("s%d stores the report of n%d on %d %s with %d decisions", i, n, o, r, len(list))
	for _, known := range []bool{true, false} {
		after := next
		e.store(&after, n, o, known)
		yield(after, fmt.Sprintf("%s (the answer arrives: %v)", what, known))
		if !known && s.left.Crashes > 0 {
			after.left.Crashes--
			after.crashServer(i)
			yield(after, what+", and crashes")
		}
	}
}
