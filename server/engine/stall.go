package engine

import (
	"time"

	"github.com/stead-project/stead/server/plan"
)

// stallTimer counts how long a rollout has not come further, on this leader's
// monotonic clock and only while the planner says that it counts; a new leader starts
// again.
type stallTimer struct {
	reached plan.Progress
	counted time.Duration
	since   time.Time // counting since then; zero: stopped
}

// measure is the time that was counted until now.
func (s *stallTimer) measure(now time.Time) time.Duration {
	if s.since.IsZero() {
		return s.counted
	}
	return s.counted + now.Sub(s.since)
}

// observe takes over what a plan made at now says of the rollout.
func (s *stallTimer) observe(p plan.Plan, now time.Time) {
	s.counted = s.measure(now)
	if p.Reached.Beyond(s.reached) {
		s.counted = 0
	}
	s.reached, s.since = p.Reached, time.Time{}
	if p.Clock {
		s.since = now
	}
}
