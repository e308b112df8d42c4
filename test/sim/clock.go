package sim

import (
	"math/rand/v2"
	"time"
)

// mostDrift is by how many parts in a million one clock goes faster than another: within
// the hundredth that SAFETY S5 allows for.
const mostDrift = 9_900

// pace is how fast a process's monotonic clock goes, in parts in a million too fast. No
// wall clock is compared anywhere, so that what it shows is of no matter.
type pace int64

func somePace(r *rand.Rand) pace {
	if r.IntN(3) == 0 {
		return mostDrift * pace(r.IntN(2))
	}
	return pace(r.IntN(mostDrift + 1))
}

func (p pace) of(d time.Duration) time.Duration { return d + d/1_000_000*time.Duration(p) }

// now is what the node's clock shows, which goes on from boot to boot.
func (n *node) now() time.Time { return began.Add(n.pace.of(n.w.clock.Sub(began))) }

func (s *server) now() time.Time { return began.Add(s.pace.of(s.w.clock.Sub(began))) }
