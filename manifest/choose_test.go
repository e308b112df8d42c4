package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/spec"
)

// TestASelectorLeavesOutWhatItDoesNotChoose: also in Lists, and with labels of an anchor; what is left out
// is not judged, whatever it is.
func TestASelectorLeavesOutWhatItDoesNotChoose(t *testing.T) {
	const text = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: &own {app: shop, tier: back}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec: nonsense
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {app: web}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {app: shop}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: d}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: e
  labels:
    <<: {app: shop, tier: back}
    tier: front
`
	parse := func(selector string) (names []string, problems []Problem) {
		s, err := spec.ParseSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		read, problems, _ := Parse([]Source{{Name: "a.yaml", Content: []byte(text)}}, Options{Selector: s})
		for _, m := range read.ConfigMaps {
			names = append(names, m.Metadata.Name)
			if !read.Has("ConfigMap", "default", m.Metadata.Name) {
				t.Errorf("%s: read, and not there", m.Metadata.Name)
			}
		}
		if read.Has("ConfigMap", "default", "b") != (selector == "app=web") {
			t.Errorf("%s: b is there, or not", selector)
		}
		return names, problems
	}
	for selector, want := range map[string][]string{
		"app=shop":            {"a", "c", "e"},
		"app=shop,tier=front": {"e"},
		"app=shop,tier=back":  {"a"},
		"app!=shop,app!=web":  {"d"},
	} {
		if names, problems := parse(selector); !slices.Equal(names, want) || len(problems) > 0 {
			t.Errorf("%s: got %v, %v, want %v", selector, names, problems, want)
		}
	}
	if _, problems := parse("app=web"); len(problems) == 0 || !strings.Contains(problems[0].String(), "Deployment") {
		t.Errorf("got %v, want what is wrong with the objects that it chooses", problems)
	}
	_, problems := parse("app=none")
	if want := "a.yaml: the selector chooses none of the 6 objects; it is compared with metadata.labels of each object"; len(problems) != 1 || problems[0].String() != want {
		t.Errorf("got %v, want %q", problems, want)
	}
}
