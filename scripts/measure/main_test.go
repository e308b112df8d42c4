package main

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/test/arch"
)

func TestTheTableHasAllMeasures(t *testing.T) {
	m := &arch.Measures{
		Product: 1000, Support: 200, Files: []arch.Size{{Name: "a.go", N: 300}, {Name: "b.go", N: 100}},
		Types: []arch.Size{{Name: "a.T", N: 41}}, Exported: 200, Undocumented: []string{"a.go:1: T"},
		Doubles: []arch.Double{{Name: "T", Folders: []string{"a", "b"}}},
	}
	var out strings.Builder
	report(&out, m, true)
	for _, want := range []string{"| 300 / 300 / 300 |", "a.T 41", "99.5 % of 200", "1000 + 200 = 1200", "type T is in a, b", "a.go:1: T has no doc"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
