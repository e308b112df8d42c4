// Package states visits the states of a small model, breadth first, so that what it finds is told by the shortest trace.
package states

import (
	"hash/maphash"
	"time"
)

// Model is what is explored. States are values; two that are equal are one.
type Model[S comparable] interface {
	// Begin is the first state.
	Begin() S
	// Moves calls yield with every state that may follow s, in the same order each time, and what happened.
	Moves(s *S, yield func(next S, what string))
	// Canon makes states equal that can do the same.
	Canon(s *S)
	// Wrong is the first promise that a move so far has broken; "": none.
	Wrong() string
}

// Result is what an exploration found.
type Result struct {
	States, Moves, Depth int
	// Whole: there is no state that was not visited.
	Whole bool
	// Wrong is the promise that was broken, "" none, and Trace the shortest way to it.
	Wrong string
	Trace []string
}

// way is how a state was reached.
type way struct {
	from int32
	what uint16 // the how-manieth move of from
}

// Explore visits states in the order of their distance until none is left, most were
// visited, or the time is over.
func Explore[S comparable](m Model[S], most int, limit time.Duration) Result {
	var (
		r     Result
		seed  = maphash.MakeSeed()
		known = map[uint64]struct{}{}
		queue = []S{m.Begin()}
		ways  = []way{{-1, 0}}
		ends  = time.Now().Add(limit)
		depth = []int32{1} // how many states are at most so far away
	)
	known[maphash.Comparable(seed, queue[0])] = struct{}{}
	for at := 0; at < len(queue); at++ {
		if at == int(depth[len(depth)-1]) {
			depth = append(depth, int32(len(queue)))
		}
		if len(queue) >= most || at%1024 == 0 && time.Now().After(ends) {
			break
		}
		s, k := queue[at], uint16(0)
		m.Moves(&s, func(next S, what string) {
			k++
			r.Moves++
			if wrong := m.Wrong(); wrong != "" && r.Wrong == "" {
				r.Wrong = wrong
				r.Trace = append(trace(m, ways, int32(at)), what)
			}
			m.Canon(&next)
			h := maphash.Comparable(seed, next)
			if _, old := known[h]; !old {
				known[h] = struct{}{}
				queue, ways = append(queue, next), append(ways, way{int32(at), k})
			}
		})
		if r.Wrong != "" {
			break
		}
		r.Whole = at == len(queue)-1
	}
	r.States, r.Depth = len(queue), len(depth)
	return r
}

// trace tells the way to a state, by making its moves again.
func trace[S comparable](m Model[S], ways []way, at int32) []string {
	var numbers []uint16
	for ; ways[at].from >= 0; at = ways[at].from {
		numbers = append(numbers, ways[at].what)
	}
	s := m.Begin()
	var told []string
	for i := len(numbers) - 1; i >= 0; i-- {
		k, now := uint16(0), s
		m.Moves(&now, func(next S, what string) {
			k++
			if k == numbers[i] {
				m.Canon(&next)
				s, told = next, append(told, what)
			}
		})
	}
	return told
}
