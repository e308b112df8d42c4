package manifest

import (
	"strings"
	"testing"
)

// TestTablesOfFieldsNameWhatIsThere: no entry of the tables of fields is left over, or misspelt.
func TestTablesOfFieldsNameWhatIsThere(t *testing.T) {
	known := map[string]bool{}
	for _, f := range kubeFields() {
		names := strings.Split(f.path, ".")
		for _, key := range []string{f.path, f.of, strings.TrimPrefix(f.typ, "[]"), strings.Join(names[max(0, len(names)-2):], ".")} {
			known[key] = true
		}
	}
	look := func(table, key string) {
		if !known[key] {
			t.Errorf("%s has %s, which Kubernetes 1.33 does not have", table, key)
		}
	}
	for key := range tries {
		look("tries", key)
	}
	for key := range frames {
		look("frames", key)
	}
	for key, other := range insteadOfOther {
		look("insteadOfOther", key)
		owner, _ := split(key)
		look("insteadOfOther", owner+"."+other)
	}
}
