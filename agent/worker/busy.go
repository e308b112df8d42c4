package worker

import (
	"time"

	"github.com/stead-project/stead/records"
)

// busyStep is the step in which it is reported for how long a member is busy, busyMost the most: no set waits longer. busyPause is the least
// time without being busy after which it is counted anew: long enough for a stop that waits to be ordered.
const (
	busyStep  = time.Minute
	busyMost  = 24 * time.Hour
	busyPause = 5 * time.Minute
)

// BusySpell is since when a member says that it is busy, on the boot clock, so that an agent after this one goes on counting. The zero
// value is never.
type BusySpell struct {
	// Since is when it began; Ended when it said so last: zero while it does.
	Since time.Duration `json:"since,omitempty"`
	Ended time.Duration `json:"ended,omitempty"`
}

// next is the spell at now, when the member says that it is busy or that it is not. A pause shorter than busyPause
// does not end it: who takes the file away and writes it again is counted on.
func (s BusySpell) next(now time.Duration, busy bool) BusySpell {
	switch {
	case busy && (s.Since == 0 || s.Ended != 0 && now-s.Ended >= busyPause):
		return BusySpell{Since: max(now, 1)}
	case busy:
		s.Ended = 0
	case s.Since != 0 && s.Ended == 0:
		s.Ended = max(now, 1)
	}
	return s
}

// lasted is how long it has lasted at now, as it is reported.
func (s BusySpell) lasted(now time.Duration) time.Duration {
	return min((now-s.Since)/busyStep*busyStep, busyMost)
}

// untilLonger is the time until more of it is to be reported; false: nothing is.
func (s BusySpell) untilLonger(now time.Duration) (time.Duration, bool) {
	if s.Since == 0 || s.Ended != 0 || s.lasted(now) == busyMost {
		return 0, false
	}
	return busyStep - (now-s.Since)%busyStep, true
}

// countBusy takes in whether the member says that it is busy, and counts for how long.
func (w *reporter) countBusy(c *records.Claim) {
	now := w.c.Clock()
	if spell := w.state.Busy.next(now, c.Busy != ""); spell != w.state.Busy {
		w.state.Busy = spell
		w.saveState()
	}
	if c.Busy != "" {
		c.BusyFor = w.state.Busy.lasted(now)
	}
}
