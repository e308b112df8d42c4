package sim

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
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

// Script is a run as a file: the seed of its cluster and its choices, and which plant
// it needs to fail, if any.
type Script struct {
	Seed    uint64
	Plant   string
	Found   string // what it found when it was written
	Choices []Choice
}

// Script is the run so far.
func (w *Cluster) Script() Script {
	s := Script{Seed: w.seed, Plant: w.plant.Name, Choices: w.done}
	if w.fault != nil {
		s.Found = w.fault.Error()
	}
	return s
}

// String is the file.
func (s Script) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# found: %s\nseed %d\n", s.Found, s.Seed)
	if s.Plant != "" {
		fmt.Fprintf(&b, "plant %s\n", s.Plant)
	}
	for _, c := range s.Choices {
		fmt.Fprintln(&b, c)
	}
	return b.String()
}

// ParseScript reads a file that String wrote; lines that begin with # are for people.
func ParseScript(text string) (s Script, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch word, rest, _ := strings.Cut(line, " "); {
		case line == "" || word == "#":
		case word == "seed":
			if s.Seed, err = strconv.ParseUint(rest, 10, 64); err != nil {
				return s, fmt.Errorf("%q is no seed", rest)
			}
		case word == "plant":
			s.Plant = rest
		default:
			c, err := ParseChoice(line)
			if err != nil {
				return s, err
			}
			s.Choices = append(s.Choices, c)
		}
	}
	return s, nil
}

// ReadScript reads a file that String wrote.
func ReadScript(path string) (Script, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Script{}, err
	}
	return ParseScript(string(text))
}

// Replay runs a script; trace, if not nil, hears what happens.
func (s Script) Replay(trace func(string)) (*Violation, error) {
	plant, ok := plants.Named(s.Plant)
	if !ok {
		return nil, fmt.Errorf("there is no plant %q", s.Plant)
	}
	w := New(s.Seed, plant)
	w.Trace = trace
	for _, c := range s.Choices {
		w.Do(c)
	}
	return w.fault, nil
}

// Shrink leaves out what is not needed for the same judge to fail: halves at first,
// then single choices. It tries at most tries runs.
func (s Script) Shrink(judge string, tries int) Script {
	fails := func(t Script) bool {
		tries--
		v, err := t.Replay(nil)
		if err == nil && v != nil && v.Judge == judge {
			s.Found = v.Error()
			return true
		}
		return false
	}
	for part := len(s.Choices) / 2; part > 0 && tries > 0; {
		left := false
		for at := 0; at < len(s.Choices) && tries > 0; {
			t := s
			t.Choices = append(append([]Choice(nil), s.Choices[:at]...), s.Choices[min(at+part, len(s.Choices)):]...)
			if fails(t) {
				t.Found = s.Found
				s, left = t, true
				continue
			}
			at += part
		}
		if !left || part > 1 {
			part /= 2
		}
	}
	return s
}
