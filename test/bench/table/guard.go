package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
)

// guardFile is what was counted when it was last renewed, by benchmark and unit.
const guardFile = "test/bench/guard.json"

// mayRise is the part by which a figure may rise before the guard fails.
const mayRise = 0.1

// guard runs TestGuard, prints each figure beside what was, and returns whether none rose by
// more than it may. With update it writes guardFile instead.
func guard(w io.Writer, update bool) (bool, error) {
	cmd := exec.Command("go", "test", "-v", "-count", "1", "-run", "^TestGuard$", "-timeout", "30m", "./test/bench", "-guard")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return false, fmt.Errorf("%w\n%s", err, text)
	}
	now := figures{}
	now.read(text)
	if len(now) == 0 {
		return false, fmt.Errorf("nothing was counted:\n%s", text)
	}
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
			limit, what := before*(1+mayRise), name+" "+unit
			verdict := ""
			switch {
			case !ok:
				rose, verdict = append(rose, what), "not counted any more"
			case v > limit:
				rose, verdict = append(rose, what), "above"
			case v < (1-mayRise)*before:
				fell, verdict = append(fell, what), "less than before"
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", strings.TrimSuffix(unit, "/member"), short(before), short(v), short(limit), verdict)
		}
	}
	return rose, fell, t.Flush()
}
