package manifest

import (
	"fmt"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func (c *checks) service(s *spec.Service) {
	c.label("metadata.name", s.Metadata.Name)
	c.metadata("metadata", &s.Metadata)
	switch s.Spec.Type {
	case "ClusterIP":
		if !s.Spec.Headless() {
			c.warn("spec.clusterIP", "there are no virtual IPs: the name resolves to the addresses of the members", "write clusterIP: None")
		}
	case "LoadBalancer", "NodePort":
		c.warn("spec.type", s.Spec.Type+" opens nothing to the outside: the name resolves to the addresses of the members",
			"from elsewhere, members are reached by a hostPort of their containers, or by the routes of 'stead node routes'")
		if s.Spec.Headless() {
			c.fail("spec.clusterIP", "None does not go with type "+s.Spec.Type, "write type: ClusterIP")
		}
	case "ExternalName":
		c.fail("spec.type", s.Spec.Type+" is not supported", "remove the Service, and let members use the outside name itself")
		return
	default:
		c.fail("spec.type", scalar.Quote(s.Spec.Type)+" is unknown", "write ClusterIP")
	}
	if len(s.Spec.Selector) == 0 {
		c.fail("spec.selector", "is missing", "write labels of the members; Endpoints that users or software write are not supported")
	}
	c.labels("spec.selector", s.Spec.Selector)
	seen, taken := map[string]bool{}, map[string]bool{}
	for i := range s.Spec.Ports {
		p, at := &s.Spec.Ports[i], index("spec.ports", i)
		c.servicePort(at, p, s.Spec.Headless())
		if len(s.Spec.Ports) > 1 || p.Name != "" {
			c.label(at+".name", p.Name)
		}
		c.once(at+".name", p.Name, seen)
		c.once(at+".port", fmt.Sprintf("%d/%s", p.Port, p.Protocol), taken)
	}
}

func (c *checks) servicePort(at string, p *spec.ServicePort, headless bool) {
	c.between(at+".port", int64(p.Port), 1, 65535)
	c.choice(at+".protocol", p.Protocol, protocols)
	if t := p.TargetPort; t != nil && t.Name == "" && t.Number != p.Port && !headless {
		c.problems.list = append(c.problems.list, otherPort(at, p, t.Number, fmt.Sprint(t.Number)))
	}
}

// otherPort is the problem of a port at path at that leads to another one of the members,
// shown as target.
func otherPort(at string, p *spec.ServicePort, number int32, target string) Problem {
	return Problem{Path: at + ".targetPort", What: fmt.Sprintf("%s is not the port %d, and there is no proxy to translate", target, p.Port),
		Fix: fmt.Sprintf("write port: %d; or clusterIP: None, with which clients use %d", number, number)}
}

// Translated are the problems of the named target ports of s that lead to another number in
// the members of set, which s selects. Problems have no position: see Objects.Locate.
func Translated(s *spec.ServiceSpec, set string, t *spec.Template) (list []Problem) {
	for i := range s.Ports {
		p := &s.Ports[i]
		if s.Headless() || p.TargetPort == nil || p.TargetPort.Name == "" {
			continue
		}
		if number := p.Target(t); number != 0 && number != p.Port {
			list = append(list, otherPort(index("spec.ports", i), p, number, fmt.Sprintf("%s (%d in set %s)", p.TargetPort.Name, number, set)))
		}
	}
	return list
}

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
