package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A fault whose text was changed is planted no more; make mutants would say so, months later.
func TestEachFaultFitsTheCodeOnce(t *testing.T) {
	for _, f := range allFaults {
		text, err := os.ReadFile(filepath.Join("../..", f.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte(f.old)); n != 1 {
			t.Errorf("%s: %q occurs %d times in %s, want once", f.rule, f.old, n, f.file)
		}
	}
}

func TestFaultsAreChosenByRuleFileOrFolder(t *testing.T) {
	for only, want := range map[string]func(f fault) bool{
		"":                                func(fault) bool { return true },
		"planted":                         func(fault) bool { return true },
		"S7":                              func(f fault) bool { return f.rule == "S7" },
		"planted/server/engine/joined.go": func(f fault) bool { return f.file == "server/engine/joined.go" },
		"planted/agent/step":              func(f fault) bool { return filepath.Dir(f.file) == "agent/step" },
		"engine":                          func(fault) bool { return false },
		"planted/server/eng":              func(fault) bool { return false },
	} {
		n := 0
		for _, f := range allFaults {
			if want(f) {
				n++
			}
		}
		list := chosen(only)
		if len(list) != n || slices.ContainsFunc(list, func(f fault) bool { return !want(f) }) {
			t.Errorf("%q chooses %d faults, want %d", only, len(list), n)
		}
	}
}
