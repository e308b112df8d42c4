package engine

import (
	"time"

	"github.com/stead-project/stead/server/plan"
)

// standstill counts how long a rollout has not come further, on this leader's
// monotonic clock and only while the planner says that it counts; a new leader starts
// again.
type standstill struct {
	reached plan.Progress
	counted time.Duration
	since   time.Time // counting since then; zero: it stands
}

// measure is the time that was counted until now.
func (s *standstill) measure(now time.Time) time.Duration {
	if s.since.IsZero() {
		return s.counted
	}
	return s.counted + now.Sub(s.since)
}

// note takes over what a plan made at now says of the rollout.
func (s *standstill) note(p plan.Plan, now time.Time) {
	if s.counted = s.measure(now); p.Reached.Beyond(s.reached) {
		s.counted = 0
	}
	s.reached, s.since = p.Reached, time.Time{}
	if p.Clock {
		s.since = now
	}
}
