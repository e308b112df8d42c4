// Package backoff says how long to wait before something that failed is tried again, and waits.
package backoff

import (
	"context"
	"time"
)

// After is the wait after the n-th failure in a row: first after one, twice that after two,
// and so on, but never above most. n below 1 counts as 1.
func After(first, most time.Duration, n int) time.Duration {
	wait := first
	for ; n > 1 && wait < most; n-- {
		if wait > most/2 {
			return most // twice as long may be more than a Duration holds
		}
		wait *= 2
	}
	return min(wait, most)
}

// Sleep waits for d and returns true, or false as soon as ctx ends.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
