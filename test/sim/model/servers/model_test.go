package servers

import (
	"strings"
	"testing"
	"time"
)

const (
	// forever: a model of the tests ends long before, and has fewer states.
	forever    = 10 * time.Minute
	mostStates = 1_000_000
)

// happens are things that a model of servers has to come to.
var happens = []string{
	"a server is elected", "a write is acknowledged", "a server starts again",
	"a server is added", "a server that was added already starts", "a server is refused that joins", "a learner becomes a voter",
	"a server is removed", "a removal is refused", "a leader hands over before it is removed",
	"data that went back is refused", "data went back, and nobody knew", "a removed member is told so when it starts",
	"a member whose data went back stops when its leader counts on more",
	"a store is made of another one", "a server holds the store", "a restore is declared", "a node that knows more holds the store", "the other store decides",
}

func TestNoInterleavingOfServersBreaksAPromise(t *testing.T) {
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
			if !r.Whole || r.States < 500 {
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

func TestEachGuardOfServersIsNeeded(t *testing.T) {
	for _, p := range Plants {
		if p.Long {
			continue // make sim looks for it
		}
		t.Run(p.Name, func(t *testing.T) {
			r := New(p.Bounds, p.Plant).Explore(mostStates, forever)
			if !strings.HasPrefix(r.Wrong, p.Wrong) || r.Wrong == "" {
				t.Fatalf("found %q in %d states (whole: %v), want %q:\n  %s", r.Wrong, r.States, r.Whole, p.Wrong, strings.Join(r.Trace, "\n  "))
			}
			t.Logf("%s, after %d states:\n  %s", r.Wrong, r.States, strings.Join(r.Trace, "\n  "))
		})
	}
}
