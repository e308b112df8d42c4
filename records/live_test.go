package records

import (
	"testing"

	"github.com/stead-project/stead/spec"
)

// TestWhatNeedsANewLife: a set with two stored revisions is given another template.
func TestWhatNeedsANewLife(t *testing.T) {
	template := func(change ...func(*spec.Template)) spec.Template {
		x := spec.Template{Metadata: spec.ObjectMeta{
			Labels:      map[string]string{"app": "db", "tier": "one"},
			Annotations: map[string]string{"sum": "1"},
		}}
		x.Spec.Containers = []spec.Container{{Name: "main", Image: "db:1"}}
		for _, f := range change {
			f(&x)
		}
		return x
	}
	label := func(x *spec.Template) { x.Metadata.Labels["tier"] = "two" }
	annotation := func(x *spec.Template) { x.Metadata.Annotations["sum"] = "2" }
	restarted := func(x *spec.Template) { x.Metadata.Annotations[RestartedAtAnnotation] = "now" }
	image := func(x *spec.Template) { x.Spec.Containers[0].Image = "db:2" }
	shows := func(path string) func(*spec.Template) {
		return func(x *spec.Template) {
			x.Spec.Containers[0].Env = []spec.EnvVar{{Name: "X", ValueFrom: &spec.EnvVarSource{FieldRef: &spec.FieldRef{FieldPath: path}}}}
		}
	}
	files := func(path string) func(*spec.Template) {
		return func(x *spec.Template) {
			x.Spec.Volumes = []spec.VolumeMedia{{Name: "v", Projected: &spec.ProjectedVolume{Sources: []spec.Projection{{
				DownwardAPI: &spec.DownwardAPIProjection{Items: []spec.DownwardAPIFile{{Path: "x", FieldRef: &spec.FieldRef{FieldPath: path}}}},
			}}}}}
		}
	}
	all := func(x *spec.Template) {
		files("metadata.labels")(x)
		x.Spec.Volumes[0] = spec.VolumeMedia{Name: "v", DownwardAPI: &spec.DownwardAPIVolume{Items: x.Spec.Volumes[0].Projected.Sources[0].DownwardAPI.Items}}
	}
	further := func(x *spec.Template) { x.Metadata.Labels["more"] = "three" }
	tier, sum := shows("metadata.labels['tier']"), shows("metadata.annotations['sum']")
	for _, c := range []struct {
		name     string
		metadata string
		before   []func(*spec.Template)
		now      []func(*spec.Template)
		same     bool
	}{
		{"nothing", "", nil, nil, true},
		{"a label", "", nil, []func(*spec.Template){label}, true},
		{"a label that a variable shows", "", []func(*spec.Template){tier}, []func(*spec.Template){tier, label}, false},
		{"another label than a variable shows", "", []func(*spec.Template){shows("metadata.labels['app']")}, []func(*spec.Template){shows("metadata.labels['app']"), label}, true},
		{"an annotation", "", nil, []func(*spec.Template){annotation}, false},
		{"an annotation, as said", spec.MetadataRestart, nil, []func(*spec.Template){annotation}, false},
		{"an annotation that is live", spec.MetadataLive, nil, []func(*spec.Template){annotation}, true},
		{"a live annotation that a variable shows", spec.MetadataLive, []func(*spec.Template){sum}, []func(*spec.Template){sum, annotation}, false},
		{"a label that a file shows", "", []func(*spec.Template){files("metadata.labels['tier']")}, []func(*spec.Template){files("metadata.labels['tier']"), label}, false},
		{"another label than a file shows", "", []func(*spec.Template){files("metadata.labels['app']")}, []func(*spec.Template){files("metadata.labels['app']"), label}, true},
		{"a label of all that a file shows", "", []func(*spec.Template){all}, []func(*spec.Template){all, label}, false},
		{"a further label of all that a file shows", "", []func(*spec.Template){all}, []func(*spec.Template){all, further}, false},
		{"a label beside annotations that a file shows", "", []func(*spec.Template){files("metadata.annotations")}, []func(*spec.Template){files("metadata.annotations"), label}, true},
		{"a live annotation that a file shows", spec.MetadataLive, []func(*spec.Template){files("metadata.annotations")}, []func(*spec.Template){files("metadata.annotations"), annotation}, false},
		{"a restart", spec.MetadataLive, nil, []func(*spec.Template){restarted}, false},
		{"an image", spec.MetadataLive, nil, []func(*spec.Template){image}, false},
		{"an image and a label", "", nil, []func(*spec.Template){image, label}, false},
		{"a variable that begins to show a label", "", nil, []func(*spec.Template){tier}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := &Set{Spec: spec.SetSpec{Template: template(c.now...), UpdateStrategy: spec.UpdateStrategy{Metadata: c.metadata}}}
			other := template(func(x *spec.Template) { x.Spec.Containers[0].Image = "db:0" })
			before := template(c.before...)
			stored := []*Revision{
				{Hash: spec.HashTemplate(other), Number: 1, Template: other}, {Hash: spec.HashTemplate(before), Number: 2, Template: before},
			}
			if got := set.RevisionHash(stored) == stored[1].Hash; got != c.same {
				t.Errorf("the same revision: %v; want %v", got, c.same)
			}
			if got := set.SameLife(before, template(c.now...)); got != c.same {
				t.Errorf("the same life: %v; want %v", got, c.same)
			}
			if !c.same && set.RevisionHash(stored) != spec.HashTemplate(set.Template()) {
				t.Errorf("a new revision has another name than its template's hash")
			}
		})
	}
}

// Of two revisions that differ in labels only, as older versions of Stead made them, the
// newest is meant: nobody goes back for a label.
func TestTheNewestOfEqualRevisionsIsMeant(t *testing.T) {
	a := spec.Template{Metadata: spec.ObjectMeta{Labels: map[string]string{"app": "a"}}}
	b := spec.Template{Metadata: spec.ObjectMeta{Labels: map[string]string{"app": "b"}}}
	stored := []*Revision{{Hash: spec.HashTemplate(a), Number: 1, Template: a}, {Hash: spec.HashTemplate(b), Number: 2, Template: b}}
	set := &Set{Spec: spec.SetSpec{Template: a}}
	if got := set.RevisionHash(stored); got != stored[1].Hash {
		t.Errorf("got %s; want the newest, %s", got, stored[1].Hash)
	}
}

// Version 1 of the hash did not see whether allowPrivilegeEscalation is false. Members that run
// by a revision of it are not restarted, and what is changed since is noticed.
func TestRevisionsOfTheFirstHashKeepTheirNames(t *testing.T) {
	const named = "h1"
	escalation := func(allow *bool) spec.Template {
		return spec.Template{Spec: spec.MemberSpec{Containers: []spec.Container{{
			Name: "a", Image: "a:1", SecurityContext: &spec.SecurityContext{AllowPrivilegeEscalation: allow},
		}}}}
	}
	no, yes := false, true
	absent := spec.HashTemplate(escalation(nil))
	for _, c := range []struct {
		name        string
		before, now *bool
		hash, want  spec.RevisionHash // of the stored revision, and now
	}{
		{"false stays", &no, &no, absent, absent},
		{"absent stays", nil, nil, absent, absent},
		{"true says what absence says", nil, &yes, absent, absent},
		{"false since", nil, &no, absent, spec.HashTemplate(escalation(&no))},
		{"false no more", &no, nil, absent, absent.Again()},
		{"false no more, in words", &no, &yes, absent, absent.Again()},
		{"another name", &no, &no, named, named},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := &Set{Spec: spec.SetSpec{Template: escalation(c.now)}}
			stored := []*Revision{{Hash: c.hash, HashVersion: 1, Number: 1, Template: escalation(c.before)}}
			got := set.RevisionHash(stored)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			stored = append(stored, &Revision{Hash: got, HashVersion: spec.HashVersion, Number: 2, Template: set.Spec.Template})
			if again := set.RevisionHash(stored); again != got {
				t.Errorf("once it is stored, it is %s, not %s", again, got)
			}
		})
	}
}
