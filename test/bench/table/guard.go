package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// guardFile is what was counted when it was last renewed, by benchmark and unit.
const guardFile = "test/bench/guard.json"

// guarded says by which part each unit may rise before the guard fails. A tenth: these are the
// same on a machine at rest and on a busy one. More: what is sent, written or called in one piece
// depends on what falls together, so ten runs differ by up to a third. Units that are absent are
// not compared.
var guarded = map[string]float64{
	"revisions/member":    0.1,
	"fsyncs/member":       0.1,
	"allocs/member":       0.1,
	"stored-bytes/member": 0.5,
	"sent-bytes/member":   0.5,
	"calls/member":        0.5,
	"node-allocs/member":  0.5,
	"node-calls/member":   0.5,
	"node-bytes/member":   0.5,
}

// inParallel is the part for all units of what is created in parallel: how many members fall into one
// transaction is chance.
const inParallel = 0.5

// guard runs BenchmarkGuard, prints each figure beside what was, and returns whether none rose by
// more than it may. With update it writes guardFile instead.
func guard(w io.Writer, update bool) (bool, error) {
	text, err := run{"./test/bench", "Guard", "1x", false}.do()
	if err != nil {
		return false, err
	}
	now := figures{}
	now.read(text)
	now = guardedOf(now)
	if update {
		out, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			return false, err
		}
		return true, os.WriteFile(guardFile, append(out, '\n'), 0o644)
	}
	text, err = os.ReadFile(guardFile)
	if err != nil {
		return false, err
	}
	was := figures{}
	if err := json.Unmarshal(text, &was); err != nil {
		return false, fmt.Errorf("%s: %w", guardFile, err)
	}
	rose, fell, err := compare(w, was, now)
	if err != nil {
		return false, err
	}
	if len(fell) > 0 {
		fmt.Fprintf(w, "\nfell by more than a tenth: %s\nif that is meant: make bench-guard UPDATE=1\n", strings.Join(fell, ", "))
	}
	if len(rose) > 0 {
		fmt.Fprintf(w, "\nFAIL: above the limit: %s\n", strings.Join(rose, ", "))
	}
	return len(rose) == 0, nil
}

// guardedOf are the figures of f that are guarded.
func guardedOf(f figures) figures {
	out := figures{}
	for name, units := range f {
		for unit, v := range units {
			if _, ok := guarded[unit]; !ok {
				continue
			}
			if out[name] == nil {
				out[name] = map[string]float64{}
			}
			out[name][unit] = v
		}
	}
	return out
}

// mayRise is the part by which a unit of a benchmark may rise.
func mayRise(name, unit string) float64 {
	if strings.HasSuffix(name, "/parallel") {
		return inParallel
	}
	return guarded[unit]
}

// compare prints was and now, and returns what rose above its limit or is not counted any more, and
// what fell by more than a tenth.
func compare(w io.Writer, was, now figures) (rose, fell []string, err error) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "a member\twas\tnow\tlimit\t")
	for _, name := range slices.Sorted(maps.Keys(was)) {
		fmt.Fprintf(t, "%s\t\t\t\t\n", strings.TrimPrefix(name, "Guard/"))
		for _, unit := range slices.Sorted(maps.Keys(was[name])) {
			before := was[name][unit]
			v, ok := now[name][unit]
			limit, what := before*(1+mayRise(name, unit)), name+" "+unit
			verdict := ""
			switch {
			case !ok:
				rose, verdict = append(rose, what), "not counted any more"
			case v > limit:
				rose, verdict = append(rose, what), "above"
			case v < 0.9*before:
				fell, verdict = append(fell, what), "less than before"
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", strings.TrimSuffix(unit, "/member"), short(before), short(v), short(limit), verdict)
		}
	}
	return rose, fell, t.Flush()
}
