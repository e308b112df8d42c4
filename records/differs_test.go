package records

import (
	"testing"

	"github.com/stead-project/stead/spec"
)

func TestMembersThatDifferArePartOfTheRevision(t *testing.T) {
	set := func(label string, differs ...spec.Difference) *Set {
		s := &Set{Spec: spec.SetSpec{Members: differs}}
		s.Spec.Template = spec.Template{Metadata: spec.ObjectMeta{Labels: map[string]string{"tier": label}},
			Spec: spec.MemberSpec{Containers: []spec.Container{{Name: "main", Image: "db:1"}}}}
		return s
	}
	one := []spec.OrdinalSpan{{First: 1, Last: 1}}
	small := spec.Difference{Ordinals: one, Args: []string{"--small"}}
	shows := spec.Difference{Ordinals: one, Env: []spec.EnvVar{{Name: "TIER", ValueFrom: &spec.EnvVarSource{FieldRef: &spec.FieldRef{APIVersion: "v1", FieldPath: "metadata.labels['tier']"}}}}}
	for _, tc := range []struct {
		name        string
		before, now *Set
		same        bool
	}{
		{"as it was", set("a", small), set("a", small), true},
		{"without any", set("a"), set("a"), true},
		{"a label", set("a", small), set("b", small), true},
		{"a label that a variable of one member shows", set("a", shows), set("b", shows), false},
		{"one comes", set("a"), set("a", small), false},
		{"one goes", set("a", small), set("a"), false},
		{"another", set("a", small), set("a", shows), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &Revision{Hash: tc.before.RevisionHash(nil), HashVersion: spec.HashVersion, Number: 1, Template: tc.before.Template(), Members: tc.before.Spec.Members}
			if got := tc.now.RevisionHash([]*Revision{r}) == r.Hash; got != tc.same {
				t.Errorf("it is the same revision: %v, want %v", got, tc.same)
			}
			if tc.now.SameRevision(r) != tc.same {
				t.Errorf("no member needs a new life: %v, want %v", !tc.same, tc.same)
			}
			var back Set
			back.SetRevision(r)
			if back.RevisionHash(nil) != r.Hash {
				t.Error("going back to it does not lead to it")
			}
		})
	}
}
