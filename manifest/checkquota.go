package manifest

import (
	"strings"

	"github.com/stead-project/stead/spec/quota"
	"github.com/stead-project/stead/spec/scalar"
)

// quotaChecks are the checks of ResourceQuotas.
type quotaChecks struct{ *checks }

func (c quotaChecks) resourceQuota(q *quota.ResourceQuota) {
	c.subdomain("metadata.name", q.Metadata.Name)
	c.metadata("metadata", &q.Metadata)
	if len(q.Spec.Hard) == 0 {
		c.warn("spec", "has no effect here, as in Kubernetes: spec.hard names no resource", "")
	}
	for _, name := range sortedKeys(q.Spec.Hard) {
		at, amount := "spec.hard["+showKey(name)+"]", q.Spec.Hard[name]
		resource, known := quota.Resource(name)
		switch {
		case !known:
			c.fail(at, scalar.Quote(name)+" is not counted here", insteadOfResource(name))
		case amount.Milli < 0:
			c.fail(at, amount.String()+" is too small", "write 0 or more")
		case !quota.IsCPU(resource) && amount.Milli%1000 != 0:
			c.fail(at, amount.String()+" is not a whole number", "write "+scalar.Quantity{Milli: (amount.Milli/1000 + 1) * 1000}.String())
		}
	}
}

// insteadOfResource says what to write instead of a resource that is not counted.
func insteadOfResource(name string) string {
	switch {
	case strings.HasSuffix(name, ".storageclass.storage.k8s.io/requests.storage"):
		return "write requests.storage, which counts the volumes of all classes"
	case strings.HasSuffix(name, ".storageclass.storage.k8s.io/persistentvolumeclaims"):
		return "write persistentvolumeclaims, which counts the volumes of all classes"
	case strings.HasSuffix(name, ephemeralStorage):
		return "remove it: the disk that a container's own files and logs take is neither reserved nor bounded"
	}
	return "write " + either(quota.Resources)
}
