package spec

import "testing"

// TestWhatNeedsANewLife: a set with two stored revisions is given another template.
func TestWhatNeedsANewLife(t *testing.T) {
	template := func(change ...func(*Template)) Template {
		x := Template{Metadata: ObjectMeta{
			Labels:      map[string]string{"app": "db", "tier": "one"},
			Annotations: map[string]string{"sum": "1"},
		}}
		x.Spec.Containers = []Container{{Name: "main", Image: "db:1"}}
		for _, f := range change {
			f(&x)
		}
		return x
	}
	label := func(x *Template) { x.Metadata.Labels["tier"] = "two" }
	annotation := func(x *Template) { x.Metadata.Annotations["sum"] = "2" }
	restarted := func(x *Template) { x.Metadata.Annotations[RestartedAtAnnotation] = "now" }
	image := func(x *Template) { x.Spec.Containers[0].Image = "db:2" }
	shows := func(path string) func(*Template) {
		return func(x *Template) {
			x.Spec.Containers[0].Env = []EnvVar{{Name: "X", ValueFrom: &EnvVarSource{FieldRef: &FieldRef{FieldPath: path}}}}
		}
	}
	tier, sum := shows("metadata.labels['tier']"), shows("metadata.annotations['sum']")
	for _, c := range []struct {
		name     string
		metadata string
		before   []func(*Template)
		now      []func(*Template)
		same     bool
	}{
		{"nothing", "", nil, nil, true},
		{"a label", "", nil, []func(*Template){label}, true},
		{"a label that a variable shows", "", []func(*Template){tier}, []func(*Template){tier, label}, false},
		{"another label than a variable shows", "", []func(*Template){shows("metadata.labels['app']")}, []func(*Template){shows("metadata.labels['app']"), label}, true},
		{"an annotation", "", nil, []func(*Template){annotation}, false},
		{"an annotation, as said", MetadataRestart, nil, []func(*Template){annotation}, false},
		{"an annotation that is live", MetadataLive, nil, []func(*Template){annotation}, true},
		{"a live annotation that a variable shows", MetadataLive, []func(*Template){sum}, []func(*Template){sum, annotation}, false},
		{"a restart", MetadataLive, nil, []func(*Template){restarted}, false},
		{"an image", MetadataLive, nil, []func(*Template){image}, false},
		{"an image and a label", "", nil, []func(*Template){image, label}, false},
		{"a variable that begins to show a label", "", nil, []func(*Template){tier}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := &Set{Spec: SetSpec{Template: template(c.now...), UpdateStrategy: UpdateStrategy{Metadata: c.metadata}}}
			other := template(func(x *Template) { x.Spec.Containers[0].Image = "db:0" })
			before := template(c.before...)
			stored := []*Revision{
				{Hash: HashTemplate(other), Number: 1, Template: other}, {Hash: HashTemplate(before), Number: 2, Template: before},
			}
			if got := set.RevisionHash(stored) == stored[1].Hash; got != c.same {
				t.Errorf("the same revision: %v; want %v", got, c.same)
			}
			if got := set.SameLife(before, template(c.now...)); got != c.same {
				t.Errorf("the same life: %v; want %v", got, c.same)
			}
			if !c.same && set.RevisionHash(stored) != HashTemplate(set.Template()) {
				t.Errorf("a new revision has another name than its template's hash")
			}
		})
	}
}

// Of two revisions that differ in labels only, as older versions of Stead made them, the
// newest is meant: nobody goes back for a label.
func TestTheNewestOfEqualRevisionsIsMeant(t *testing.T) {
	a := Template{Metadata: ObjectMeta{Labels: map[string]string{"app": "a"}}}
	b := Template{Metadata: ObjectMeta{Labels: map[string]string{"app": "b"}}}
	stored := []*Revision{{Hash: HashTemplate(a), Number: 1, Template: a}, {Hash: HashTemplate(b), Number: 2, Template: b}}
	set := &Set{Spec: SetSpec{Template: a}}
	if got := set.RevisionHash(stored); got != stored[1].Hash {
		t.Errorf("got %s; want the newest, %s", got, stored[1].Hash)
	}
}
