package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stead-project/stead/test/sim/plants"
)

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
