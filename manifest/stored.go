package manifest

import (
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// OfSet is the manifest of a stored set: Parse of it gives the same spec. It
// is apps/v1, or stead/v1 when it has a field that Kubernetes does not have; then
// the annotation that may have brought the field is left out. It shares s's maps and
// slices: for showing, not for changing.
func OfSet(s *records.Set) spec.StatefulSet {
	m := spec.StatefulSet{APIVersion: "apps/v1", Kind: "StatefulSet", Spec: s.Spec, Metadata: spec.ObjectMeta{
		Name: string(s.Ref.Name), Namespace: s.Ref.Namespace, Labels: s.Labels, Annotations: s.Annotations}}
	_, annotated := m.Metadata.Annotations[SteadAnnotation]
	if annotated || m.Spec.SteadOnly() {
		m.APIVersion = "stead/v1"
		m.Metadata.Annotations = maps.Clone(m.Metadata.Annotations)
		delete(m.Metadata.Annotations, SteadAnnotation)
	}
	return m
}

// OfService is the manifest of a stored service. It shares r's maps and slices.
func OfService(r *records.ServiceRecord) spec.Service {
	return spec.Service{APIVersion: "v1", Kind: "Service", Metadata: r.Manifest(), Spec: r.Spec}
}

// OfConfigMap is the manifest of stored files: what is text stands in data,
// the rest in binaryData. It shares r's bytes.
func OfConfigMap(r *records.ConfigRecord) spec.ConfigMap {
	m := spec.ConfigMap{APIVersion: "v1", Kind: "ConfigMap", Metadata: r.Manifest()}
	for name, content := range r.Files {
		if utf8.Valid(content) && !strings.ContainsRune(string(content), 0) {
			if m.Data == nil {
				m.Data = map[string]string{}
			}
			m.Data[name] = string(content)
			continue
		}
		if m.BinaryData == nil {
			m.BinaryData = map[string]scalar.Bytes{}
		}
		m.BinaryData[name] = content
	}
	return m
}

// OfBudget is the manifest of a stored budget. It shares r's maps and slices.
func OfBudget(r *records.BudgetRecord) spec.PodDisruptionBudget {
	return spec.PodDisruptionBudget{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Metadata: r.Manifest(), Spec: r.Spec}
}
