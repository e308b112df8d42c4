package files

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// randomLife takes files and variables from few objects, in all the ways in which a template can.
func randomLife(r *rand.Rand) *records.Life {
	l := life()
	name := func() string { return fmt.Sprintf("o%d", r.IntN(4)) }
	key := func() *spec.KeyRef {
		return &spec.KeyRef{Name: name(), Key: fmt.Sprintf("k%d", r.IntN(3)), Optional: r.IntN(3) == 0}
	}
	object := func() *spec.NameRef { return &spec.NameRef{Name: name(), Optional: r.IntN(3) == 0} }
	fields := []string{"metadata.name", "metadata.uid", "status.hostIP", "metadata.labels['app']", "metadata.nonsense", "metadata.labels"}
	l.Template.Spec.Containers = make([]spec.Container, 1+r.IntN(2))
	for i := range l.Template.Spec.Containers {
		c := &l.Template.Spec.Containers[i]
		for range r.IntN(2) {
			c.EnvFrom = append(c.EnvFrom, spec.EnvFromSource{ConfigMapRef: object()}, spec.EnvFromSource{SecretRef: object()})
		}
		for n := range r.IntN(3) {
			v := spec.EnvVar{Name: fmt.Sprintf("V%d", n)}
			switch r.IntN(5) {
			case 0:
				v.Value = "x"
			case 1:
				v.ValueFrom = &spec.EnvVarSource{}
			case 2:
				v.ValueFrom = &spec.EnvVarSource{ConfigMapKeyRef: key()}
			case 3:
				v.ValueFrom = &spec.EnvVarSource{SecretKeyRef: key()}
			case 4:
				v.ValueFrom = &spec.EnvVarSource{FieldRef: &spec.FieldRef{FieldPath: fields[r.IntN(len(fields))]}}
			}
			c.Env = append(c.Env, v)
		}
	}
	for n := range r.IntN(3) {
		v := spec.VolumeMedia{Name: fmt.Sprintf("v%d", n)}
		switch r.IntN(5) {
		case 0:
			v.ConfigMap = &spec.ConfigMapVolume{Name: name(), Optional: r.IntN(3) == 0}
		case 1:
			v.Secret = &spec.SecretVolume{SecretName: name(), Items: []spec.KeyToPath{{Key: "k0", Path: "p"}}}
		case 2:
			v.EmptyDir = &spec.EmptyDir{}
		case 3:
			v.DownwardAPI = &spec.DownwardAPIVolume{Items: []spec.DownwardAPIFile{{Path: "p", FieldRef: &spec.FieldRef{FieldPath: "metadata.labels"}}}}
		case 4:
			v.Projected = &spec.ProjectedVolume{Sources: []spec.Projection{
				{ConfigMap: &spec.ObjectProjection{Name: name(), Optional: r.IntN(2) == 0}},
				{Secret: &spec.ObjectProjection{Name: name(), Optional: r.IntN(2) == 0, Items: []spec.KeyToPath{{Key: "k1", Path: "p"}}}},
			}}
		}
		l.Template.Spec.Volumes = append(l.Template.Spec.Volumes, v)
	}
	return l
}

// randomObjects are some of those that lives of randomLife name, some of them absent.
func randomObjects(r *rand.Rand) (out []records.Files) {
	for _, kind := range []string{KindConfigMap, KindSecret} {
		for n := range 4 {
			f := records.Files{Kind: kind, Namespace: "prod", Name: fmt.Sprintf("o%d", n), Absent: r.IntN(5) == 0}
			if !f.Absent {
				f.Content = map[string]scalar.Bytes{}
				for k := range r.IntN(4) {
					f.Content[fmt.Sprintf("k%d", k)] = scalar.Bytes{byte(r.IntN(2))}
				}
			}
			if r.IntN(5) > 0 {
				out = append(out, f)
			}
		}
	}
	return out
}

// The definition is the environment as it is made.
func TestWhatVariablesLackIsWhatMakingThemFailsWith(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	lacking := 0
	for n := range 5000 {
		l, find := randomLife(r), book(randomObjects(r)...)
		_, err := allEnv(l, host, find)
		want := missingText(err)
		if got := MissingEnv(l, host, find, func(string) bool { return true }); got != want {
			t.Fatalf("life %d: got %q, want %q", n, got, want)
		}
		if want != "" {
			lacking++
		}
	}
	if lacking < 500 || lacking > 4500 {
		t.Fatalf("%d of 5000 lack something: the test shows little", lacking)
	}
}

// The definition is what making all files and variables looks up.
func TestALifeNamesWhatItLooksUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 2000 {
		l := randomLife(r)
		asked := map[FileSource]bool{}
		find := func(kind string, ns spec.Namespace, name string) (records.Files, bool) {
			asked[FileSource{kind, ns, name}] = true
			return records.Files{Content: map[string]scalar.Bytes{"k0": nil, "k1": nil, "k2": nil}}, true
		}
		for i := range l.Template.Spec.Containers {
			c := &l.Template.Spec.Containers[i]
			for k := range c.Env {
				if from := c.Env[k].ValueFrom; from != nil {
					from.FieldRef = nil // one that is not known would end the look
				}
			}
		}
		if _, err := allEnv(l, host, find); err != nil {
			t.Fatal(err)
		}
		if _, err := MediaOf(l, host, find); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{KindConfigMap, KindSecret} {
			for o := range 4 {
				for _, ns := range []spec.Namespace{"prod", "other"} {
					s := FileSource{kind, ns, fmt.Sprintf("o%d", o)}
					if got := IsNamed(l, func(x FileSource) bool { return x == s }); got != asked[s] {
						t.Fatalf("life %d, %v: got %v, want %v", n, s, got, asked[s])
					}
				}
			}
		}
	}
}

// The definition is the content that a lookup finds before and after.
func TestTheCacheSaysWhatItKnowsInAnotherWay(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	b := &Cache{}
	for n := range 2000 {
		look := func() map[FileSource]string {
			out := map[FileSource]string{}
			for _, f := range b.All() {
				text := fmt.Sprint(f.Absent)
				for _, key := range slices.Sorted(maps.Keys(f.Content)) {
					text += fmt.Sprintf(" %s=%q", key, string(f.Content[key]))
				}
				out[FileSource{f.Kind, f.Namespace, f.Name}] = text
			}
			return out
		}
		before := look()
		received := randomObjects(r)
		for i := range received {
			received[i].Sequence = spec.Sequence{Epoch: 1, Rev: int64(r.IntN(n + 1))}
		}
		changed := b.Put(r.IntN(2) == 0, received)
		after := look()
		for _, f := range append(received, randomObjects(r)...) {
			s := FileSource{f.Kind, f.Namespace, f.Name}
			had, was := before[s]
			has, is := after[s]
			if want := was != is || had != has; changed[s] != want {
				t.Fatalf("round %d, %v: got %v, want %v (%q, %q)", n, s, changed[s], want, had, has)
			}
		}
	}
}
