package spec

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stead-project/stead/spec/scalar"
)

func span(first, last int32) OrdinalSpan { return OrdinalSpan{first, last} }

func mega(n int64) scalar.Quantity { return scalar.Quantity{Milli: n << 20 * 1000} }

// twoContainers is a template with an init container and two containers.
func twoContainers() Template {
	return Template{Spec: MemberSpec{
		NodeSelector:   map[string]string{"disk": "hdd", "rack": "1"},
		InitContainers: []Container{{Name: "init", Image: "i:1"}},
		Containers: []Container{
			{Name: "db", Image: "db:1", Args: []string{"--large"}, Env: []EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}},
				Resources: ResourceRequirements{Limits: map[string]scalar.Quantity{"cpu": {Milli: 1000}, "memory": mega(64)}, Requests: map[string]scalar.Quantity{"memory": mega(32)}}},
			{Name: "side", Image: "s:1"},
		},
	}}
}

func TestAMemberRunsTheTemplateWithItsDifferences(t *testing.T) {
	all := Differences{
		{Ordinals: []OrdinalSpan{span(0, 0), span(5, 7)}, Container: "db", Env: []EnvVar{{Name: "C", Value: "3"}, {Name: "A", Value: "0"}},
			Args: []string{"--small"}, Resources: &ResourceRequirements{Limits: map[string]scalar.Quantity{"memory": mega(128)}, Requests: map[string]scalar.Quantity{"memory": mega(128)}}},
		{Ordinals: []OrdinalSpan{span(0, 1)}, NodeSelector: map[string]string{"disk": "ssd", "zone": "a"}},
		{Ordinals: []OrdinalSpan{span(6, 6)}, Container: "init", Env: []EnvVar{{Name: "D"}}},
		{Ordinals: []OrdinalSpan{span(2, 2)}, Args: []string{"of which?"}}, // never stored: the template has two containers
		{Ordinals: []OrdinalSpan{span(2, 2)}, Container: "none", Args: []string{"of which?"}},
	}
	for _, tc := range []struct {
		ordinal int
		change  func(*Template)
	}{
		{3, func(*Template) {}},
		{2, func(*Template) {}},
		{1, func(t *Template) { t.Spec.NodeSelector = map[string]string{"disk": "ssd", "rack": "1", "zone": "a"} }},
		{5, differsInDB},
		{0, func(t *Template) {
			differsInDB(t)
			t.Spec.NodeSelector = map[string]string{"disk": "ssd", "rack": "1", "zone": "a"}
		}},
		{6, func(t *Template) {
			differsInDB(t)
			t.Spec.InitContainers[0].Env = []EnvVar{{Name: "D"}}
		}},
	} {
		t.Run(fmt.Sprint("ordinal ", tc.ordinal), func(t *testing.T) {
			base, want := twoContainers(), twoContainers()
			tc.change(&want)
			if got := all.Apply(&base, tc.ordinal); !reflect.DeepEqual(*got, want) {
				t.Errorf("got %+v\nwant %+v", *got, want)
			}
			if !reflect.DeepEqual(base, twoContainers()) {
				t.Error("the template itself was changed")
			}
		})
	}
	base := twoContainers()
	if all.Apply(&base, 3) != &base {
		t.Error("a member without a difference runs a copy of the template")
	}
}

func differsInDB(t *Template) {
	c := &t.Spec.Containers[0]
	c.Args, c.Env = []string{"--small"}, []EnvVar{{Name: "A", Value: "0"}, {Name: "B", Value: "$(A)"}, {Name: "C", Value: "3"}}
	c.Resources.Limits["memory"], c.Resources.Requests["memory"] = mega(128), mega(128)
}

func TestTheOnlyContainerNeedsNoName(t *testing.T) {
	base := Template{Spec: MemberSpec{InitContainers: []Container{{Name: "init"}}, Containers: []Container{{Name: "db"}}}}
	got := Differences{{Ordinals: []OrdinalSpan{span(0, 0)}, Args: []string{"x"}}}.Apply(&base, 0)
	if !slices.Equal(got.Spec.Containers[0].Args, []string{"x"}) || got.Spec.InitContainers[0].Args != nil {
		t.Errorf("got %+v", got.Spec)
	}
}

func TestSamplesAreOfAllThatMembersRun(t *testing.T) {
	d := Differences{{Ordinals: []OrdinalSpan{span(0, 3), span(9, 9)}}, {Ordinals: []OrdinalSpan{span(2, 5)}}, {Ordinals: []OrdinalSpan{span(5, 5)}}}
	have := map[uint64]bool{}
	for _, ordinal := range d.Samples() {
		have[d.Of(ordinal)] = true
	}
	for ordinal := -1; ordinal < 12; ordinal++ {
		if !have[d.Of(ordinal)] {
			t.Errorf("none is as ordinal %d, whose entries are %b", ordinal, d.Of(ordinal))
		}
	}
}

func TestTheHashOfDifferencesIsOfWhatTheyMean(t *testing.T) {
	base := twoContainers()
	limited := &ResourceRequirements{Limits: map[string]scalar.Quantity{"memory": mega(128)}}
	short := Differences{{Ordinals: []OrdinalSpan{span(0, 0)}, Container: "db", Resources: limited, Env: []EnvVar{{Name: "IP", ValueFrom: &EnvVarSource{FieldRef: &FieldRef{FieldPath: "status.podIP"}}}}}}
	full := Clone(short)
	defaulter{}.members(full)
	if full[0].Resources.Requests["memory"] != mega(128) || full[0].Env[0].ValueFrom.FieldRef.APIVersion != "v1" {
		t.Errorf("the defaults are %+v", full[0])
	}
	if short.Hash(base) != full.Hash(base) || !short.Same(full) {
		t.Error("what says the default is another revision")
	}
	if Differences(nil).Hash(base) != HashTemplate(base) || (Differences{}).Hash(base) != HashTemplate(base) {
		t.Error("a set without differences has another hash than before")
	}
	seen := map[RevisionHash]int{HashTemplate(base): -1}
	for i, change := range []func(*Difference){
		func(d *Difference) {},
		func(d *Difference) { d.Ordinals[0].Last = 1 },
		func(d *Difference) { d.Container = "side" },
		func(d *Difference) { d.Env[0].Name = "OTHER" },
		func(d *Difference) { d.Args = []string{"--small"} },
		func(d *Difference) { d.Resources.Limits["memory"] = mega(256) },
		func(d *Difference) { d.NodeSelector = map[string]string{"disk": "ssd"} },
	} {
		other := Clone(short)
		change(&other[0])
		h := other.Hash(base)
		if was, known := seen[h]; known {
			t.Errorf("changes %d and %d have the same hash", was, i)
		}
		seen[h] = i
		if i > 0 && short.Same(other) {
			t.Errorf("change %d is none", i)
		}
	}
}

func TestASetNeedsTheNewestFieldOfTemplateAndDifferences(t *testing.T) {
	field := EnvVar{Name: "CPU", ValueFrom: &EnvVarSource{ResourceFieldRef: &ResourceFieldRef{}}}
	old := MemberSpec{Containers: []Container{{Name: "a"}}}
	for _, tc := range []struct {
		name  string
		set   SetSpec
		level int
		field string
	}{
		{"nothing new", SetSpec{Template: Template{Spec: old}, Members: Differences{{Env: []EnvVar{{Name: "A"}}}}}, 1, ""},
		{"the template", SetSpec{Template: Template{Spec: MemberSpec{HostNetwork: true}}, Members: Differences{{Env: []EnvVar{field}}}}, 2, "spec.template.spec.hostNetwork"},
		{"a difference", SetSpec{Template: Template{Spec: old}, Members: Differences{{}, {Env: []EnvVar{field}}}}, 2, "spec.members[1].env[0].valueFrom.resourceFieldRef"},
	} {
		if level, at := tc.set.Needs(); level != tc.level || at != tc.field {
			t.Errorf("%s: got %d %q, want %d %q", tc.name, level, at, tc.level, tc.field)
		}
	}
}
