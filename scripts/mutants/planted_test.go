package main

import (
	"bytes"
	"os"
	"path/filepath"
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
