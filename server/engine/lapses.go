package engine

import (
	"time"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// lapses tells since when members that were ready in their present life are not, on
// this leader's monotonic clock; a new leader starts each wait again.
type lapses map[spec.Identity]lapse

type lapse struct {
	token spec.Token
	since time.Time
}

// unready measures the lapses of w at now.
func (l lapses) unready(w plan.World, now time.Time) map[spec.Identity]time.Duration {
	var list map[spec.Identity]time.Duration
	for i := range w.Slots {
		s := &w.Slots[i]
		if !lapsed(s) {
			delete(l, s.ID)
			continue
		}
		x, known := l[s.ID]
		if !known || x.token != s.Report.Token {
			x = lapse{s.Report.Token, now}
			l[s.ID] = x
		}
		if list == nil {
			list = map[spec.Identity]time.Duration{}
		}
		list[s.ID] = now.Sub(x.since)
	}
	return list
}

// lapsed: the member runs and is not ready, and was ready in this very life.
func lapsed(s *plan.Slot) bool {
	return s.Report != nil && s.Identity != nil && s.Report.Phase == spec.PhaseRunning && !s.Report.Ready &&
		s.Identity.ReadyToken == s.Report.Token
}
