package manifest

import "github.com/stead-project/stead/spec"

func (c *checks) configMap(s *spec.ConfigMap) {
	c.subdomain("metadata.name", s.Metadata.Name)
	c.metadata("metadata", &s.Metadata)
	fileNames(c, "data", s.Data)
	fileNames(c, "binaryData", s.BinaryData)
	for _, key := range sortedKeys(s.BinaryData) {
		if _, twice := s.Data[key]; twice {
			c.fail("binaryData["+showKey(key)+"]", "is also in data", "remove one of them")
		}
	}
}

// secret must not show values.
func (c *checks) secret(s *spec.Secret) {
	c.subdomain("metadata.name", s.Metadata.Name)
	c.metadata("metadata", &s.Metadata)
	fileNames(c, "data", s.Data)
	fileNames(c, "stringData", s.StringData)
	c.credentials(s)
}

func fileNames[V any](c *checks, path string, files map[string]V) {
	for _, key := range sortedKeys(files) {
		c.fileName(path+"["+showKey(key)+"]", key)
	}
}

// oldBudgets is what charts write that are rendered without a cluster to ask. Kubernetes
// removed it in 1.25.
const oldBudgets = "policy/v1beta1"

func (c *checks) budget(b *spec.PodDisruptionBudget) {
	c.subdomain("metadata.name", b.Metadata.Name)
	c.metadata("metadata", &b.Metadata)
	if b.Spec.MinAvailable == nil && b.Spec.MaxUnavailable == nil {
		c.warn("spec", "has no effect here, as in Kubernetes: it has neither minAvailable nor maxUnavailable", "")
	} else {
		c.disruption("spec", &spec.Disruption{MinAvailable: b.Spec.MinAvailable, MaxUnavailable: b.Spec.MaxUnavailable})
	}
	old := b.APIVersion == oldBudgets
	switch s := b.Spec.Selector; {
	case s == nil:
		c.fail("spec.selector", "is missing", "write matchLabels with labels of the members")
	case old && len(s.MatchLabels)+len(s.MatchExpressions) == 0:
		c.fail("spec.selector", "is empty: it selects nothing in "+oldBudgets+", and everything in policy/v1", "write matchLabels with labels of the members")
	default:
		c.selector("spec.selector", s)
	}
}
