package engine

import (
	"maps"
	"sync"
	"time"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// bounds are the upper bounds of the buckets of a Histogram, in seconds.
var bounds = [...]float64{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10}

// Histogram counts durations.
type Histogram struct {
	Count   uint64
	Seconds float64            // their sum
	Buckets map[float64]uint64 // how many were at most so many seconds
}

// Stats is what an engine says of itself.
type Stats struct {
	// Plan is how long it took to decide about a set, Commit how long the store took
	// for a transaction's worth of decisions; since the engine was made.
	Plan, Commit Histogram
	// Blocked counts the members that wait by reason, over all sets, as they stood when
	// each was decided about last; empty where another engine leads.
	Blocked map[causes.BlockedReason]int
}

// meter gathers Stats. Its methods are safe for concurrent use.
type meter struct {
	mu           sync.Mutex
	plan, commit Histogram
	blocked      map[spec.SetRef]map[causes.BlockedReason]int
}

func newHistogram() Histogram {
	h := Histogram{Buckets: map[float64]uint64{}}
	for _, bound := range bounds {
		h.Buckets[bound] = 0
	}
	return h
}

func (h *Histogram) add(d time.Duration) {
	s := d.Seconds()
	h.Count++
	h.Seconds += s
	for bound := range h.Buckets {
		if s <= bound {
			h.Buckets[bound]++
		}
	}
}

func (h Histogram) clone() Histogram {
	h.Buckets = maps.Clone(h.Buckets)
	return h
}

func (m *meter) decided(ref spec.SetRef, blocked []plan.Blocked, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plan.add(took)
	reasons := map[causes.BlockedReason]int{}
	for _, b := range blocked {
		reasons[b.Reason] += 1 + b.Others
	}
	if m.blocked == nil {
		m.blocked = map[spec.SetRef]map[causes.BlockedReason]int{}
	}
	m.blocked[ref] = reasons
}

func (m *meter) committed(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commit.add(took)
}

// forget forgets a set that was removed.
func (m *meter) forget(ref spec.SetRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blocked, ref)
}

// clear: this engine leads no more.
func (m *meter) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blocked = nil
}

// Stats does not block.
func (e *Engine) Stats() Stats {
	m := &e.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Stats{Plan: m.plan.clone(), Commit: m.commit.clone(), Blocked: map[causes.BlockedReason]int{}}
	for _, reasons := range m.blocked {
		for reason, n := range reasons {
			s.Blocked[reason] += n
		}
	}
	return s
}
