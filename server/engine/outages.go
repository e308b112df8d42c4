package engine

import (
	"maps"
	"time"

	"github.com/stead-project/stead/server/plan"
)

// outages holds since when lives are not available, on this leader's monotonic clock; a new
// leader starts each wait again (SAFETY S18).
type outages map[plan.Outage]time.Time

// measure is how long each lasts at now.
func (o outages) measure(now time.Time) map[plan.Outage]time.Duration {
	if len(o) == 0 {
		return nil
	}
	last := make(map[plan.Outage]time.Duration, len(o))
	for x, since := range o {
		last[x] = now.Sub(since)
	}
	return last
}

// observe takes over those that a plan made at now names; what it does not name is over.
func (o outages) observe(named []plan.Outage, now time.Time) {
	still := make(outages, len(named))
	for _, x := range named {
		still[x] = now
		if since, known := o[x]; known {
			still[x] = since
		}
	}
	clear(o)
	maps.Copy(o, still)
}
