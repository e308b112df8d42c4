package step

import "time"

const (
	// warmBytes and warmTime: a round that copied less, or took less, leaves little to be copied while the member is down.
	warmBytes = 64 << 20
	warmTime  = 5 * time.Second
	// steadyTime bounds a round of a member that writes as fast as is copied, so that further rounds would not make less of it.
	steadyTime = time.Minute
)

// Round is what a round copied while the member ran, and how long that took.
type Round struct {
	Bytes int64
	Took  time.Duration
}

// Warm reports whether the member may be stopped after this round: little is left, or no less would be left after a further one
// and that takes less than a minute. before is the round before it; zero: there was none.
func Warm(r, before Round) bool {
	steady := before.Bytes > 0 && r.Bytes >= before.Bytes/4*3 && r.Took < steadyTime
	return r.Bytes < warmBytes || r.Took < warmTime || steady
}
