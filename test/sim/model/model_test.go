package model

import (
	"strings"
	"testing"
	"time"
)

// forever: a model of the tests ends long before.
const forever = 10 * time.Minute

func TestNoInterleavingBreaksAPromise(t *testing.T) {
	for _, m := range Models {
		if !m.Short {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			r := New(m.Bounds, Plant{}).Explore(2_000_000, forever)
			t.Logf("%d states, %d moves, depth %d", r.States, r.Moves, r.Depth)
			if r.Wrong != "" {
				t.Fatalf("%s:\n  %s", r.Wrong, strings.Join(r.Trace, "\n  "))
			}
			if !r.Whole || r.States < 1000 {
				t.Errorf("%d states, whole: %v", r.States, r.Whole)
			}
		})
	}
}

func TestEveryPlantIsFound(t *testing.T) {
	for _, p := range Plants {
		if p.Long {
			continue // make sim looks for it
		}
		t.Run(p.Name, func(t *testing.T) {
			r := New(p.Bounds, p.Plant).Explore(2_000_000, forever)
			if !strings.HasPrefix(r.Wrong, p.Wrong) {
				t.Fatalf("found %q in %d states (whole: %v), want %q", r.Wrong, r.States, r.Whole, p.Wrong)
			}
			t.Logf("%s, after %d states:\n  %s", r.Wrong, r.States, strings.Join(r.Trace, "\n  "))
		})
	}
}
