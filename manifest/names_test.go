package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/spec"
)

// TestNamesAreReadWhateverElseIsWritten: unknown kinds and fields do not matter, Lists are
// opened, and what has no name is a problem with its line.
func TestNamesAreReadWhateverElseIsWritten(t *testing.T) {
	const text = `# a chart
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: prod}
spec: {nonsense: true}
---
apiVersion: v1
kind: List
items:
- {kind: Service, metadata: {name: db}}
- {kind: Unicorn, metadata: {name: u}}
---
kind: List
items: []
---
`
	names, problems := NamedObjects([]Source{{Name: "chart.yaml", Content: []byte(text)}}, "team")
	want := []ObjectName{{"StatefulSet", "prod", "db"}, {"Service", "team", "db"}, {"Unicorn", "team", "u"}}
	if len(problems) > 0 || !slices.Equal(names, want) {
		t.Errorf("got %v, %v", names, problems)
	}
	names, _ = NamedObjects([]Source{{Name: "a", Content: []byte("kind: Secret\nmetadata: {name: s}")}}, "")
	if len(names) != 1 || names[0].Namespace != spec.DefaultNamespace {
		t.Errorf("got %v", names)
	}
	for text, want := range map[string]string{
		"":                                  "a.yaml: contains no objects",
		"kind: Service":                     "a.yaml:1:1: the object has no kind or no name",
		"\n---\nmetadata: {name: x}":        "a.yaml:3:1: the object has no kind or no name",
		"- a":                               "a.yaml:1:1: the object has no kind or no name",
		"kind: List\nitems: [&a {}, *a]":    "a.yaml:2:16: an item is an alias",
		"kind: Service\nmetadata: {name: [": "a.yaml:",
	} {
		_, problems := NamedObjects([]Source{{Name: "a.yaml", Content: []byte(text)}}, "")
		if len(problems) == 0 || !slices.ContainsFunc(problems, func(p Problem) bool { return strings.Contains(p.String(), want) }) {
			t.Errorf("%q: got %v, want %q", text, problems, want)
		}
	}
}
