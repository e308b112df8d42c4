package backoff_test

import (
	"math"
	"testing"
	"time"

	"github.com/stead-project/stead/internal/backoff"
)

func TestEachFailureDoublesTheWaitUpToTheMost(t *testing.T) {
	tests := []struct {
		name        string
		first, most time.Duration
		n           int
		want        time.Duration
	}{
		{"the first wait", time.Second, time.Minute, 1, time.Second},
		{"no failure counts as one", time.Second, time.Minute, 0, time.Second},
		{"twice as long after the second", time.Second, time.Minute, 2, 2 * time.Second},
		{"32 times after the sixth", time.Second, time.Minute, 6, 32 * time.Second},
		{"never above the most", time.Second, time.Minute, 7, time.Minute},
		{"however often it fails", time.Second, time.Minute, math.MaxInt, time.Minute},
		{"the first is the most", time.Minute, time.Second, 1, time.Second},
		{"the largest most", 1, math.MaxInt64, 100, math.MaxInt64},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := backoff.After(tt.first, tt.most, tt.n); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
