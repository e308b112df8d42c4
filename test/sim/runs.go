package sim

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stead-project/stead/test/sim/plants"
)

// Tally is what many runs did.
type Tally struct {
	Runs, Steps int
	Counts      map[string]int
	// Failed is the run of the lowest seed that failed; nil: none.
	Failed *Cluster
}

// Find looks for a plant in at most so many seeds; the error says that it was not found,
// or by the wrong judge.
func Find(p plants.Plant, seeds int) (Tally, error) {
	t := RunMany(1, seeds, 0, p)
	switch {
	case t.Failed == nil:
		return t, fmt.Errorf("not found in %d seeds, %d steps", t.Runs, t.Steps)
	case !strings.Contains(p.Judges, t.Failed.fault.Judge):
		return t, fmt.Errorf("found by another judge than %s: %w", p.Judges, t.Failed.fault)
	}
	return t, nil
}

// choicesOfRun is how many choices one run makes: long enough for deep states, short
// enough to be shrunk.
const choicesOfRun = 1600

// RunMany runs seeds from first on, on all processors, until at least so many steps were
// made and so many seeds run, or a run failed. Every run is as it is alone.
func RunMany(first uint64, seeds, steps int, plant plants.Plant) Tally {
	t := Tally{Counts: map[string]int{}}
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		next  atomic.Uint64
		worst atomic.Uint64 // the lowest seed that failed: those above it are given up
	)
	worst.Store(math.MaxUint64)
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return t.Failed != nil || t.Runs >= seeds && t.Steps >= steps
	}
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for !enough() {
				w := New(first+next.Add(1)-1, plant)
				w.cancelled = func() bool { return w.seed > worst.Load() }
				v := w.Run(choicesOfRun)
				mu.Lock()
				if v != nil {
					worst.Store(min(w.seed, worst.Load()))
				}
				t.Runs, t.Steps = t.Runs+1, t.Steps+w.Steps
				for k, n := range w.Counts {
					t.Counts[k] += n
				}
				if v != nil && (t.Failed == nil || w.seed < t.Failed.seed) {
					t.Failed = w
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return t
}
