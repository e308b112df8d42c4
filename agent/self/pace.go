package self

import (
	"time"

	"github.com/stead-project/stead/records"
)

// The rates at which a member is heard. What it writes faster is seen when its time comes, the last of it.
const (
	// leastLook is the least time between two looks at its files.
	leastLook = 200 * time.Millisecond
	// leastNote is the least time between a report and the next one that changes only texts.
	leastNote = time.Second
	// burst is how many changes of who leads are reported at once; one more each second.
	burst = 5
)

// pace bounds the reports of a member: each may be a write to the store.
type pace struct {
	spent float64 // reports of the burst, as of at
	at    time.Time
}

// wait is how long a report that says next after last has to wait at now; at 0 it counts as made.
func (p *pace) wait(now time.Time, last, next records.Claim) time.Duration {
	since := now.Sub(p.at)
	if p.at.IsZero() {
		since = time.Hour
	}
	if next.Leads == last.Leads && next.Term == last.Term && since < leastNote {
		return leastNote - since
	}
	spent := max(0, p.spent-since.Seconds())
	if over := spent + 1 - burst; over > 0 {
		return time.Duration(over * float64(time.Second))
	}
	p.spent, p.at = spent+1, now
	return 0
}
