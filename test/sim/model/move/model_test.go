package move

import (
	"strings"
	"testing"
	"time"
)

const (
	// forever: a model of the tests ends long before, and has fewer states.
	forever    = 10 * time.Minute
	mostStates = 3_000_000
)

// happens are things that a model of moves has to come to.
var happens = []string{
	"stops the life for the move", "records the sums of the source", "flips the move", "flips the move of before a restore",
	"has the move go from Copying to Aborting", "has the move go from Sealing to Aborting", "a copy arrives", "a life starts on a copy that arrived",
	"a copy is discarded", "a seal is broken", "a seal is taken back, for a life began meanwhile", "ends the move as Aborting",
	"ends the move as Flipped, and gives up the old copy", "an old copy goes to the trash", "a last round ends with other sums", "a server with an old view writes",
}

func TestNoInterleavingOfAMoveBreaksAPromise(t *testing.T) {
	counts := map[string]int{}
	for _, m := range Models {
		if !m.Short {
			continue // make sim explores it
		}
		t.Run(m.Name, func(t *testing.T) {
			e := New(m.Bounds, Plant{})
			r := e.Explore(mostStates, forever)
			t.Logf("%d states, %d moves, depth %d", r.States, r.Moves, r.Depth)
			if r.Wrong != "" {
				t.Fatalf("%s:\n  %s", r.Wrong, strings.Join(r.Trace, "\n  "))
			}
			if !r.Whole || r.States < 1000 {
				t.Errorf("%d states, whole: %v", r.States, r.Whole)
			}
			for what, n := range e.Counts {
				counts[what] += n
			}
		})
	}
	for _, what := range happens {
		if counts[what] == 0 {
			t.Errorf("never happened: %s", what)
		}
	}
}

func TestEachGuardOfAMoveIsNeeded(t *testing.T) {
	for _, p := range Plants {
		if p.Long {
			continue // make sim looks for it
		}
		t.Run(p.Name, func(t *testing.T) {
			r := New(p.Bounds, p.Plant).Explore(mostStates, forever)
			if !strings.HasPrefix(r.Wrong, p.Wrong) {
				t.Fatalf("found %q in %d states (whole: %v), want %q:\n  %s", r.Wrong, r.States, r.Whole, p.Wrong, strings.Join(r.Trace, "\n  "))
			}
			t.Logf("%s, after %d states:\n  %s", r.Wrong, r.States, strings.Join(r.Trace, "\n  "))
		})
	}
}
