package model

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/server/proof"
)

// A tick is a second. All clocks tick together, but for a node's that lags; a killer
// kills with the tick after which the deadline has passed.
const second = time.Second

func (e *Explorer) bound() time.Duration { return time.Duration(e.bounds.Bound) * second }

// patience is after how many ticks of silence more of them are of no matter.
func (e *Explorer) patience() uint8 { return uint8(proof.SilenceNeeded(e.bound()) / second) }

// passed is what killers and agents decide by.
func (e *Explorer) passed(h *host, l *local) bool {
	if l.ended || h.confirmed == 0 {
		return true
	}
	now := time.Hour
	return watchdog.Passed(now-time.Duration(h.confirmed-1)*second, e.bound(), now)
}

// guardMoves are the clock, the pings, and starts that land late.
func (e *Explorer) guardMoves(s *State, yield func(State, string)) {
	if e.bounds.Bound == 0 {
		return
	}
	next := *s
	e.tick(&next, nodes)
	yield(next, "a second passes")
	for n := range uint8(nodes) {
		if s.left.Lags > 0 && s.host[n].sess+s.host[n].confirmed > 0 {
			next := *s
			next.left.Lags--
			e.tick(&next, n)
			yield(next, fmt.Sprintf("a second passes, but not on n%d", n))
		}
		e.pingMoves(s, n, yield)
		for o := range int(e.bounds.Members) {
			if s.host[n].local[o].landing != 0 {
				next := *s
				e.land(&next, n, o)
				yield(next, fmt.Sprintf("the start of %d %s on n%d lands", o, s.host[n].local[o].landing, n))
			}
		}
	}
}

// tick moves all clocks by one, but for that of the node lags.
func (e *Explorer) tick(s *State, lags uint8) {
	for i := range s.srv {
		for n := range s.srv[i].gone {
			if v := &s.srv[i]; v.term != 0 && v.cache.sess[n] == 0 {
				v.gone[n] = min(v.gone[n]+1, e.patience())
			}
		}
	}
	for n := range s.host {
		h := &s.host[n]
		if uint8(n) != lags {
			for _, age := range []*uint8{&h.confirmed, &h.asked} {
				if *age != 0 {
					*age = min(*age+1, e.bounds.Bound+1)
				}
			}
		}
		for o := range h.local {
			l := &h.local[o]
			if l.rec == 0 || !e.passed(h, l) {
				continue
			}
			if !l.killed || !e.Plant.KillsOnce {
				l.alive = 0
			}
			l.killed = e.Plant.KillsOnce
		}
	}
}

// pingMoves are a ping, the server's answer, and its arrival.
func (e *Explorer) pingMoves(s *State, n uint8, yield func(State, string)) {
	h := &s.host[n]
	switch {
	case h.sess == 0 || !h.listed && !e.Plant.PongBeforeList:
	case h.asked == 0:
		next := *s
		next.host[n].asked = 1
		yield(next, fmt.Sprintf("n%d pings s%d", n, h.sess-1))
	case !h.answered:
		next := *s
		have := s.st.sess[n] // a linearizable read, after the ping came
		if e.Plant.PongFromMemory {
			have = s.srv[h.sess-1].cache.sess[n]
		}
		if have != h.boot+1 {
			next.breakStream(n)
			yield(next, fmt.Sprintf("s%d finds that n%d's session is over", h.sess-1, n))
			return
		}
		next.host[n].answered = true
		yield(next, fmt.Sprintf("s%d answers n%d's ping", h.sess-1, n))
	default:
		next := *s
		e.confirm(&next.host[n])
		yield(next, fmt.Sprintf("n%d hears that its ping was answered", n))
	}
}

// confirm moves the deadlines, after what missed them is closed.
func (e *Explorer) confirm(h *host) {
	sent := h.asked
	h.asked, h.answered = 0, false
	if e.Plant.ConfirmedByArrival {
		sent = 1
	}
	if !e.Plant.ConfirmsFirst {
		e.miss(h)
	}
	if h.confirmed == 0 || sent < h.confirmed {
		h.confirmed = sent
	}
}

// miss ends for good what missed its deadline.
func (e *Explorer) miss(h *host) {
	for o := range h.local {
		if l := &h.local[o]; l.rec != 0 && !l.ended && e.passed(h, l) {
			l.expire(l.rec)
		}
	}
}

func (l *local) expire(t token) {
	if l.open == t {
		l.close(t)
	}
	l.ended = l.rec == t
}

// land has a process begin that was asked for before, if its logger lets it: it did
// already when a killer kills once.
func (e *Explorer) land(s *State, n uint8, o int) {
	h := &s.host[n]
	l := &h.local[o]
	t := l.landing
	l.landing = 0
	if l.box != up || l.alive != 0 || e.passed(h, l) && !e.Plant.KillsOnce {
		return
	}
	l.alive = t
	e.started(s, n, o, t)
}
