package spec

import (
	"slices"
	"testing"

	"github.com/stead-project/stead/spec/scalar"
)

// withoutFiles is t, of whole.yaml, without what came with projected volumes: these, facts of the
// member, subPathExpr, and how a member looks up names.
func withoutFiles(t Template) Template {
	t = Clone(t)
	s := &t.Spec
	s.DNSPolicy, s.DNSConfig, s.HostAliases = "", nil, nil
	s.Volumes = slices.DeleteFunc(s.Volumes, func(v VolumeMedia) bool { return v.Projected != nil || v.DownwardAPI != nil })
	c := &s.Containers[0]
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m VolumeMount) bool { return m.Name == "facts" || m.Name == "all" })
	for i := range c.VolumeMounts {
		c.VolumeMounts[i].SubPathExpr = ""
	}
	c.Env = slices.DeleteFunc(c.Env, func(e EnvVar) bool { return e.Name == "HOST_IPS" || e.Name == "HEAP" })
	return t
}

// withoutClaims is t, of whole.yaml, without the volume of a PersistentVolumeClaim.
func withoutClaims(t Template) Template {
	t = Clone(t)
	s := &t.Spec
	s.Volumes = slices.DeleteFunc(s.Volumes, func(v VolumeMedia) bool { return v.PersistentVolumeClaim != nil })
	c := &s.Containers[0]
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m VolumeMount) bool { return m.Name == "shared" })
	return t
}

func TestEveryChangeOfFilesAndNamesChangesTheHash(t *testing.T) {
	shows := func(v VolumeMedia) func(*Template) {
		return func(x *Template) { v.Name, x.Spec.Volumes[0] = "v", v }
	}
	projected := func(p Projection) func(*Template) {
		return shows(VolumeMedia{Projected: &ProjectedVolume{Sources: []Projection{p}}})
	}
	reads := func(r ResourceFieldRef) func(*Template) {
		return func(x *Template) {
			x.Spec.Containers[0].Env = []EnvVar{{Name: "A", ValueFrom: &EnvVarSource{ResourceFieldRef: &r}}}
		}
	}
	mounts := func(expr string) func(*Template) {
		return func(x *Template) {
			x.Spec.Containers[0].VolumeMounts = []VolumeMount{{Name: "v", MountPath: "/v", SubPathExpr: expr}}
		}
	}
	name := []DownwardAPIFile{{Path: "n", FieldRef: &FieldRef{FieldPath: "metadata.name"}}}
	seen := map[RevisionHash]string{HashTemplate(plain()): "base"}
	for what, change := range map[string]func(*Template){
		"a Secret":          projected(Projection{Secret: &ObjectProjection{Name: "s"}}),
		"a ConfigMap":       projected(Projection{ConfigMap: &ObjectProjection{Name: "s"}}),
		"a fact among them": projected(Projection{DownwardAPI: &DownwardAPIProjection{Items: name}}),
		"a fact":            shows(VolumeMedia{DownwardAPI: &DownwardAPIVolume{Items: name}}),
		"no source":         shows(VolumeMedia{Projected: &ProjectedVolume{}}),
		"cpu":               reads(ResourceFieldRef{Resource: "limits.cpu"}),
		"thousandths":       reads(ResourceFieldRef{Resource: "limits.cpu", Divisor: scalar.Quantity{Milli: 1}}),
		"other container":   reads(ResourceFieldRef{Resource: "limits.cpu", ContainerName: "a"}),
		"a claim":           shows(VolumeMedia{PersistentVolumeClaim: &ClaimVolume{ClaimName: "a"}}),
		"another claim":     shows(VolumeMedia{PersistentVolumeClaim: &ClaimVolume{ClaimName: "b"}}),
		"a claim to read":   shows(VolumeMedia{PersistentVolumeClaim: &ClaimVolume{ClaimName: "a", ReadOnly: true}}),
		"mount":             mounts(""),
		"expression":        mounts("$(A)"),
		"host network":      func(x *Template) { x.Spec.HostNetwork = true },
		"dns policy":        func(x *Template) { x.Spec.DNSPolicy = DNSDefault },
		"dns option":        func(x *Template) { x.Spec.DNSConfig = &DNSConfig{Options: []DNSOption{{Name: "edns0"}}} },
		"dns search":        func(x *Template) { x.Spec.DNSConfig = &DNSConfig{Searches: []string{"a.b"}} },
		"host alias":        func(x *Template) { x.Spec.HostAliases = []HostAlias{{IP: "192.0.2.1"}} },
	} {
		next := plain()
		change(&next)
		h := HashTemplate(next)
		if other, twice := seen[h]; twice {
			t.Errorf("%s hashes like %s", what, other)
		}
		seen[h] = what
	}
}
