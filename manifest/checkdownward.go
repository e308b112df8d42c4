package manifest

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// fieldPaths are the fields of a member that a variable can show: those of Kubernetes.
var fieldPaths = []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
	"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}

// fieldRef checks f, if it is set; paths are the fields without a key that it may name.
func (c *checks) fieldRef(at string, f *spec.FieldRef, paths []string) {
	if f == nil {
		return
	}
	c.choice(at+".apiVersion", f.APIVersion, []string{"v1"})
	_, key := f.Keyed()
	if c.required(at+".fieldPath", f.FieldPath) && !slices.Contains(paths, f.FieldPath) && !scalar.ValidLabelKey(key) {
		c.fail(at+".fieldPath", scalar.Quote(f.FieldPath)+" is not supported",
			"write metadata.labels['key'], metadata.annotations['key'], "+either(paths))
	}
}

// containerNames are the names of a template's containers, init containers included.
func containerNames(s *spec.MemberSpec) map[string]bool {
	known := map[string]bool{}
	for c := range s.All() {
		known[c.Name] = true
	}
	delete(known, "")
	return known
}

// shownResources are the limits and requests that a member can read, beside those of huge pages.
var shownResources = []string{"limits.cpu", "limits.ephemeral-storage", "limits.memory",
	"requests.cpu", "requests.ephemeral-storage", "requests.memory"}

// The divisors that Kubernetes takes, in thousandths, but 1E and 1Ei, which are out of range here.
var (
	cpuDivisors  = []string{"1m", "1"}
	byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi"}
)

// resourceRef checks r, if it is set, but for its container.
func (c *checks) resourceRef(at string, r *spec.ResourceFieldRef) {
	if r == nil || !c.required(at+".resource", r.Resource) {
		return
	}
	kind, name, _ := strings.Cut(r.Resource, ".")
	pages := (kind == "limits" || kind == "requests") && strings.HasPrefix(name, "hugepages-")
	if !pages && !slices.Contains(shownResources, r.Resource) {
		c.fail(at+".resource", scalar.Quote(r.Resource)+" is unknown", "write "+either(shownResources))
		return
	}
	divisors := byteDivisors
	if name == "cpu" {
		divisors = cpuDivisors
	}
	if r.Divisor.Milli != 0 && !slices.ContainsFunc(divisors, func(text string) bool {
		q, err := scalar.ParseQuantity(text)
		return err == nil && q == r.Divisor
	}) {
		c.fail(at+".divisor", r.Divisor.String()+" is not a divisor of "+name, "write "+either(divisors))
	}
}

// volumeFieldPaths are the fields of a member that a file can show: those of Kubernetes.
var volumeFieldPaths = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}

// factChecks checks volumes that show facts of the member, or several sources, and of which
// containers limits and requests are shown; containers are the names of the template's.
type factChecks struct {
	*checks
	containers map[string]bool
}

func (c factChecks) template(at string, s *spec.MemberSpec) {
	c.variables(at+".initContainers", s.InitContainers)
	c.variables(at+".containers", s.Containers)
	for i := range s.Volumes {
		v, p := &s.Volumes[i], index(at+".volumes", i)
		if v.DownwardAPI != nil {
			c.mode(p+".downwardAPI.defaultMode", v.DownwardAPI.DefaultMode)
			c.facts(p+".downwardAPI.items", v.DownwardAPI.Items, map[string]bool{})
		}
		if v.Projected != nil {
			c.mode(p+".projected.defaultMode", v.Projected.DefaultMode)
			c.sources(p+".projected.sources", v.Projected.Sources)
		}
	}
}

// variables checks which containers variables name.
func (c factChecks) variables(at string, containers []spec.Container) {
	for i := range containers {
		for j, e := range containers[i].Env {
			if e.ValueFrom != nil && e.ValueFrom.ResourceFieldRef != nil && e.ValueFrom.ResourceFieldRef.ContainerName != "" {
				c.container(index(index(at, i)+".env", j)+".valueFrom.resourceFieldRef", e.ValueFrom.ResourceFieldRef)
			}
		}
	}
}

// container checks the container that r names.
func (c factChecks) container(at string, r *spec.ResourceFieldRef) {
	if !c.containers[r.ContainerName] {
		c.fail(at+".containerName", scalar.Quote(r.ContainerName)+" is not a container of this template", names(c.containers))
	}
}

// sources checks those of a projected volume. No two may name the same path, as in Kubernetes;
// of whole ConfigMaps and Secrets the keys are not known, and the later source counts.
func (c factChecks) sources(at string, sources []spec.Projection) {
	seen := map[string]bool{}
	for i, s := range sources {
		p := index(at, i)
		c.exactlyOne(p, map[string]bool{"configMap": s.ConfigMap != nil, "secret": s.Secret != nil, "downwardAPI": s.DownwardAPI != nil})
		c.object(p+".configMap", s.ConfigMap, seen)
		c.object(p+".secret", s.Secret, seen)
		if s.DownwardAPI != nil {
			c.facts(p+".downwardAPI.items", s.DownwardAPI.Items, seen)
		}
	}
}

// object checks o, if it is set.
func (c factChecks) object(at string, o *spec.ObjectProjection, seen map[string]bool) {
	if o != nil {
		c.subdomain(at+".name", o.Name)
		c.items(at+".items", o.Items, seen)
	}
}

// facts checks which facts are shown where; seen holds the paths of the volume that are taken.
func (c factChecks) facts(at string, facts []spec.DownwardAPIFile, seen map[string]bool) {
	for i, f := range facts {
		p := index(at, i)
		c.filePath(p+".path", f.Path, seen)
		c.mode(p+".mode", f.Mode)
		c.exactlyOne(p, map[string]bool{"fieldRef": f.FieldRef != nil, "resourceFieldRef": f.ResourceFieldRef != nil})
		c.fieldRef(p+".fieldRef", f.FieldRef, volumeFieldPaths)
		if r := f.ResourceFieldRef; r != nil {
			if c.required(p+".resourceFieldRef.containerName", r.ContainerName) {
				c.container(p+".resourceFieldRef", r)
			}
			c.resourceRef(p+".resourceFieldRef", r)
		}
	}
}
