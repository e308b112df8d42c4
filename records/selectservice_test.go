package records

import (
	"testing"

	"github.com/stead-project/stead/spec"
)

func TestAServiceSelectsASetOrOneMemberOfIt(t *testing.T) {
	set := &Set{Ref: spec.SetRef{Namespace: "default", Name: "kafka"}, Spec: spec.SetSpec{
		Template: spec.Template{Metadata: spec.ObjectMeta{Labels: map[string]string{"app": "kafka"}}},
	}}
	const none, all = -2, -1
	const byName, byIndex = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
	for name, c := range map[string]struct {
		selector  map[string]string
		namespace spec.Namespace
		alias     bool
		want      int32 // the ordinal, or one of the above
	}{
		"by the template's labels":                {selector: map[string]string{"app": "kafka"}, want: all},
		"by other labels":                         {selector: map[string]string{"app": "redis"}, want: none},
		"by nothing":                              {want: none},
		"of another namespace":                    {selector: map[string]string{"app": "kafka"}, namespace: "prod", want: none},
		"an alias":                                {selector: map[string]string{"app": "kafka"}, alias: true, want: none},
		"by a member's name":                      {selector: map[string]string{byName: "kafka-2"}, want: 2},
		"by a member's name, and labels":          {selector: map[string]string{byName: "kafka-0", "app": "kafka"}, want: 0},
		"by a member's name, and other labels":    {selector: map[string]string{byName: "kafka-2", "app": "redis"}, want: none},
		"by the name of another set's member":     {selector: map[string]string{byName: "redis-2"}, want: none},
		"by the name of nobody":                   {selector: map[string]string{byName: "kafka"}, want: none},
		"by an index":                             {selector: map[string]string{byIndex: "1"}, want: 1},
		"by an index of another form":             {selector: map[string]string{byIndex: "01"}, want: none},
		"by a name and its index":                 {selector: map[string]string{byName: "kafka-1", byIndex: "1"}, want: 1},
		"by a name and the index of another":      {selector: map[string]string{byName: "kafka-1", byIndex: "2"}, want: none},
		"by an index, and other labels":           {selector: map[string]string{byIndex: "1", "app": "redis"}, want: none},
		"by a member's name in another namespace": {selector: map[string]string{byName: "kafka-2"}, namespace: "prod", want: none},
	} {
		s := &ServiceRecord{Meta: Meta{Namespace: "default"}, Spec: spec.ServiceSpec{Selector: c.selector}}
		if c.namespace != "" {
			s.Namespace = c.namespace
		}
		if c.alias {
			s.Spec.Type = "ExternalName"
		}
		selects, only := s.Selects(set)
		got := int32(none)
		switch {
		case selects && only == nil:
			got = all
		case selects:
			got = *only
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
