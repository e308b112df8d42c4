package engine

import (
	"testing"
	"time"

	"github.com/stead-project/stead/spec"
)

// TestTheDrainBeginsAnotherMoveLaterAndLater: soon after the first that was aborted, for the member may be down meanwhile.
func TestTheDrainBeginsAnotherMoveLaterAndLater(t *testing.T) {
	id, other := spec.Identity{Namespace: "default", Set: "db", Ordinal: 1}, spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}
	now := time.Unix(1e9, 0)
	var r moveRests
	if left := r.waits(now); left != nil {
		t.Errorf("before any: %v", left)
	}
	for i, want := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		r = r.aborted(id, now, "the disk is full")
		if rest := r.waits(now)[id]; rest.Left != want || rest.Why != "the disk is full" {
			t.Errorf("after %d aborted moves it rests for %+v, want %v", i+1, rest, want)
		}
		if rest := r.waits(now.Add(want - time.Second))[id].Left; rest != time.Second {
			t.Errorf("a second before it is over %v is left", rest)
		}
		now = now.Add(want)
		if rest, rests := r.waits(now)[id]; rests {
			t.Errorf("it rests still: %+v", rest)
		}
	}
	r = r.aborted(other, now, "")
	if rest := r.waits(now)[other].Left; rest != 15*time.Second {
		t.Errorf("another member rests for %v", rest)
	}
	now = now.Add(30 * time.Minute)
	_ = r.waits(now)
	r = r.aborted(id, now, "")
	if rest := r.waits(now)[id].Left; rest != 15*time.Second {
		t.Errorf("long after the last it rests for %v", rest)
	}
}
