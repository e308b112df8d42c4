package engine

import (
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// The rest before a life that follows failed ones: none before the first, then
// doubling. Restarts in place are the agent's; this is for lives that are refused
// or end as soon as they start.
const (
	firstRest  = time.Second
	longRest   = 5 * time.Minute
	forgetRest = 10 * time.Minute // a failure so long ago counts no more
)

// replaceBackoff counts replacements of an identity's lives, in this term.
type replaceBackoff map[spec.Identity]replacements

type replacements struct {
	count int
	last  time.Time
}

// replaced notes that a life was started in the place of a failed one.
func (t replaceBackoff) replaced(id spec.Identity, now time.Time) {
	x := t[id]
	if now.Sub(x.last) > forgetRest {
		x.count = 0
	}
	t[id] = replacements{x.count + 1, now}
}

// waits are the times that failed lives of w have to wait still; an identity that
// is ready has no failures any more.
func (t replaceBackoff) waits(w plan.World, now time.Time) map[spec.Identity]time.Duration {
	if len(t) == 0 {
		return nil
	}
	var rests map[spec.Identity]time.Duration
	for i := range w.Slots {
		s := &w.Slots[i]
		x, failedBefore := t[s.ID]
		if !failedBefore || s.Report == nil {
			continue
		}
		if s.Report.Ready {
			delete(t, s.ID)
			continue
		}
		if left := x.last.Add(backoff.After(firstRest, longRest, x.count)).Sub(now); s.Report.Phase.Over() && left > 0 {
			if rests == nil {
				rests = map[spec.Identity]time.Duration{}
			}
			rests[s.ID] = left
		}
	}
	return rests
}
