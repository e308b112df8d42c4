package records

import (
	"slices"
	"testing"

	"github.com/stead-project/stead/spec"
)

func TestChangesNameEachFieldThatDiffers(t *testing.T) {
	three, five := int32(3), int32(5)
	set := func(change func(*spec.SetSpec)) spec.SetSpec {
		s := spec.SetSpec{Replicas: &three, ServiceName: "db"}
		s.Template.Metadata.Labels = map[string]string{"app": "db"}
		s.Template.Spec.Containers = []spec.Container{{Name: "main", Image: "db:1"}}
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		change func(*spec.SetSpec)
		want   []string
	}{
		"nothing":      {func(*spec.SetSpec) {}, nil},
		"a number":     {func(s *spec.SetSpec) { s.Replicas = &five }, []string{"spec.replicas 3 → 5"}},
		"a word":       {func(s *spec.SetSpec) { s.Template.Spec.Containers[0].Image = "db:2" }, []string{`spec.template.spec.containers[0].image "db:1" → "db:2"`}},
		"a new field":  {func(s *spec.SetSpec) { s.MinReadySeconds = 1000000 }, []string{"spec.minReadySeconds none → 1000000"}},
		"a field gone": {func(s *spec.SetSpec) { s.ServiceName = "" }, []string{`spec.serviceName "db" → none`}},
		"a key with dots": {func(s *spec.SetSpec) { s.Template.Metadata.Annotations = map[string]string{"a.b/c": "x"} },
			[]string{`spec.template.metadata.annotations[a.b/c] none → "x"`}},
		"more than shown": {func(s *spec.SetSpec) { s.MinReadySeconds, s.Replicas, s.ServiceName = 1, &five, "x" },
			[]string{"spec.minReadySeconds none → 1", "spec.replicas 3 → 5", "and 1 more"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Changes("spec", set(func(*spec.SetSpec) {}), set(c.change), 2); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
