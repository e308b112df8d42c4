package manifest

import (
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func TestValidateAdoption(t *testing.T) {
	parse := func() *spec.SetSpec { return &mustParse(t, read(t, "whole.yaml")).Sets[0].Spec }
	next := parse()
	next.Selector, next.VolumeClaimTemplates, next.PodManagementPolicy = nil, nil, spec.OrderedReady
	if got := ValidateAdoption(parse(), next); len(got) != 0 {
		t.Errorf("got %v; want that the members that are there decide", got)
	}
	next.ServiceName = "x"
	const want = `spec.serviceName: must not change from "db" to "x"; members are reached under this name; use --rename-service to change it: all members restart, and both names resolve until they have`
	if got := ValidateAdoption(parse(), next); len(got) != 1 || got[0].String() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestValidateUpdate(t *testing.T) {
	parse := func(t *testing.T) *spec.SetSpec { return &mustParse(t, read(t, "whole.yaml")).Sets[0].Spec }
	storage := func(s *spec.SetSpec, q string) {
		v, err := scalar.ParseQuantity(q)
		if err != nil {
			t.Fatal(err)
		}
		s.VolumeClaimTemplates[0].Spec.Resources.Requests["storage"] = v
	}
	other := "other"
	tests := []struct {
		name   string
		change func(*spec.SetSpec)
		want   []string
	}{
		{"nothing changes", func(*spec.SetSpec) {}, nil},
		{"an equal size in other words", func(s *spec.SetSpec) { storage(s, "1024Mi") }, nil},
		{"the default class left out", func(s *spec.SetSpec) { s.VolumeClaimTemplates[0].Spec.StorageClassName = nil }, nil},
		{"what may change", func(s *spec.SetSpec) {
			*s.Replicas, s.PodManagementPolicy, s.MinReadySeconds = 7, spec.OrderedReady, 0
			s.Ordinals.Start = 4
		}, nil},
		{"the selector", func(s *spec.SetSpec) { s.Selector.MatchLabels["x"] = "y" },
			[]string{"spec.selector: must not change; delete the set and create it again; its volumes are kept"}},
		{"no selector", func(s *spec.SetSpec) { s.Selector = nil },
			[]string{"spec.selector: must not change; delete the set and create it again; its volumes are kept"}},
		{"the service", func(s *spec.SetSpec) { s.ServiceName = "x" },
			[]string{`spec.serviceName: must not change from "db" to "x"; members are reached under this name; use --rename-service to change it: all members restart, and both names resolve until they have`}},
		{"a larger size", func(s *spec.SetSpec) { storage(s, "2Gi") }, nil},
		{"a claim comes", func(s *spec.SetSpec) {
			log := spec.Clone(s.VolumeClaimTemplates[0])
			log.Metadata.Name = "log"
			s.VolumeClaimTemplates = append(s.VolumeClaimTemplates, log)
		}, nil},
		{"a trash period", func(s *spec.SetSpec) {
			s.VolumeClaimTemplates[0].Reclaim = &spec.Reclaim{After: &scalar.Duration{Duration: time.Hour}}
		}, nil},
		{"a smaller size", func(s *spec.SetSpec) { storage(s, "1Mi") },
			[]string{"spec.volumeClaimTemplates[0].spec.resources.requests[storage]: a volume cannot shrink; write at least the old size"}},
		{"another class", func(s *spec.SetSpec) { s.VolumeClaimTemplates[0].Spec.StorageClassName = &other },
			[]string{`spec.volumeClaimTemplates[0].spec.storageClassName: must not change from "local" to "other"; a volume does not move to another class`}},
		{"another access mode", func(s *spec.SetSpec) { s.VolumeClaimTemplates[0].Spec.AccessModes = []string{"ReadWriteOncePod"} },
			[]string{"spec.volumeClaimTemplates[0]: must not change"}},
		{"a claim goes, another comes", func(s *spec.SetSpec) { s.VolumeClaimTemplates[0].Metadata.Name = "new" },
			[]string{`spec.volumeClaimTemplates: the claim "data" must not be removed; its volumes are kept for it`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			next := parse(t)
			tt.change(next)
			got := ValidateUpdate(parse(t), next)
			if len(got) != len(tt.want) {
				t.Fatalf("got %v, want %v", got, tt.want)
			}
			for i := range got {
				if got[i].String() != tt.want[i] {
					t.Errorf("got %s, want %s", got[i], tt.want[i])
				}
			}
		})
	}
}

func TestStoredObjectsComeBackFromTheirManifests(t *testing.T) {
	o := mustParse(t, read(t, "whole.yaml"))
	s := o.Sets[0]
	stored := &records.Set{Ref: spec.SetRef{Namespace: "prod", Name: "db"}, Labels: s.Metadata.Labels, Annotations: s.Metadata.Annotations, Spec: s.Spec, CreatedAt: time.Now()}
	var text []byte
	for _, v := range []any{OfSet(stored),
		OfConfigMap(&records.ConfigRecord{Meta: records.Meta{Namespace: "default", Name: "f"}, Files: map[string]scalar.Bytes{"t": scalar.Bytes("text\n"), "b": {0xff, 0}}, Immutable: true}),
		OfService(&records.ServiceRecord{Meta: records.Meta{Namespace: "default", Name: "db"}, Spec: o.Services[0].Spec})} {
		doc, err := toYAML(v)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, "---\n"...), doc...)
	}
	back := mustParse(t, Source{Name: "printed", Content: text})
	if !spec.Same(back.Sets[0].Spec, s.Spec) || !spec.Same(back.Services[0].Spec, o.Services[0].Spec) {
		t.Errorf("came back otherwise:\n%s", text)
	}
	files := back.ConfigMaps[0].Files()
	if !back.ConfigMaps[0].Immutable || string(files["t"]) != "text\n" || string(files["b"]) != "\xff\x00" || len(files) != 2 {
		t.Errorf("got %q", files)
	}
	if _, kept := stored.Annotations[SteadAnnotation]; !kept {
		t.Error("printing changed the stored set")
	}
}

func TestAConfigMapIsTakenBackAsGetShowsIt(t *testing.T) {
	shown := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, uid: x, generation: 2}\ndata: {a: b}\nstatus: {keys: [{name: a, sizeBytes: 1}]}\n"
	o, problems, _ := Parse([]Source{{Name: "shown", Content: []byte(shown)}}, Options{})
	if len(problems) > 0 || string(o.ConfigMaps[0].Files()["a"]) != "b" {
		t.Errorf("got %+v, %v", o.ConfigMaps, problems)
	}
}

// A Secret as get shows it has no values: applying it must not empty the Secret.
func TestAPrintedSecretHasNoValuesAndIsNotTakenBack(t *testing.T) {
	shown := "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\ntype: Opaque\nstatus: {keys: [{name: key, sizeBytes: 6}]}\n"
	_, problems, _ := Parse([]Source{{Name: "s", Content: []byte(shown)}}, Options{})
	if len(problems) != 1 || problems[0].Path != "status" || problems[0].What != "unknown field" {
		t.Errorf("got %v", problems)
	}
}

// TestBound: what a manifest says of lost nodes, as the next lives get it.
func TestBound(t *testing.T) {
	for loss, want := range map[string]time.Duration{
		"": 0, "{}": 0, "{policy: Hold}": 0, "{policy: Replace}": 5 * time.Minute, "{policy: Replace, after: 10s}": 10 * time.Second,
		"{policy: Replace, after: 1h}": time.Hour,
	} {
		line := ""
		if loss != "" {
			line = "  nodeLoss: " + loss + "\n"
		}
		s := mustParse(t, Source{Name: "f", Content: []byte("apiVersion: stead/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n" + line +
			"  selector: {matchLabels: {app: db}}\n  template:\n    metadata: {labels: {app: db}}\n    spec: {containers: [{name: db, image: db:1}]}\n")}).Sets[0].Spec
		if got := s.Bound(); got != want {
			t.Errorf("nodeLoss: %s: got a bound of %s, want %s", loss, got, want)
		}
	}
}
