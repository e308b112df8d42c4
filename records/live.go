package records

import "github.com/stead-project/stead/spec"

// RevisionHash names the revision of what the set's members should run: of stored
// (ascending by number) the newest whose template differs in nothing that a running
// member would notice, else what HashTemplate says. So a change of labels, which hold
// from the set's own spec, restarts nobody, and makes no revision.
func (s *Set) RevisionHash(stored []*Revision) spec.RevisionHash {
	t := s.Template()
	hash := spec.HashTemplate(t)
	for n := len(stored) - 1; n >= 0; n-- {
		if r := stored[n]; r.Hash == hash || s.SameLife(r.Template, t) {
			return r.Hash
		}
	}
	return hash
}

// SameLife reports whether a member that runs a needs no new life to run b: they differ
// in labels at most, and with updateStrategy.metadata: Live in annotations, but in none
// that a variable shows.
func (s *Set) SameLife(a, b spec.Template) bool {
	return spec.SameTemplate(s.noticed(a), s.noticed(b))
}

// noticed is t without what a running member does not notice. What a variable shows, it
// does.
func (s *Set) noticed(t spec.Template) spec.Template {
	labels, annotations := map[string]bool{}, map[string]bool{RestartedAtAnnotation: true}
	for _, list := range [][]spec.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range list {
			shown(&list[i], labels, annotations)
		}
	}
	t.Metadata.Labels = only(t.Metadata.Labels, labels)
	if s.Spec.UpdateStrategy.Metadata == spec.MetadataLive {
		t.Metadata.Annotations = only(t.Metadata.Annotations, annotations)
	}
	return t
}

// shown adds the labels and annotations that variables of c show.
func shown(c *spec.Container, labels, annotations map[string]bool) {
	for _, e := range c.Env {
		if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
			continue
		}
		switch of, key := e.ValueFrom.FieldRef.Keyed(); of {
		case "labels":
			labels[key] = true
		case "annotations":
			annotations[key] = true
		}
	}
}

// only is m without other keys than those.
func only(m map[string]string, keys map[string]bool) map[string]string {
	var out map[string]string
	for k, v := range m {
		if keys[k] {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}
