package engine

import (
	"testing"
	"time"
)

func TestADurationIsCountedInEachBucketThatHoldsIt(t *testing.T) {
	d := newManualTerm(t)
	d.l.meter.committed(time.Second)
	d.l.meter.committed(20 * time.Second)
	h := d.l.Stats().Commit
	if h.Count != 2 || h.Seconds != 21 || h.Buckets[0.3] != 0 || h.Buckets[1] != 1 || h.Buckets[3] != 1 || h.Buckets[10] != 1 {
		t.Errorf("got %+v; want a second in those of at most 1, 3 and 10 s, and twenty in none", h)
	}
}
