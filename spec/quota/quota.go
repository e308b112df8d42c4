// Package quota has ResourceQuotas as manifests have them, and the names of what they bound.
package quota

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// ResourceQuota bounds what the objects of its namespace may come to: v1. Of several, each bounds what it names.
type ResourceQuota struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   spec.ObjectMeta   `json:"metadata"`
	Spec       ResourceQuotaSpec `json:"spec"`
	Status     any               `json:"status,omitempty" stead:"ignored"`
}

// ResourceQuotaSpec is what a ResourceQuota says.
type ResourceQuotaSpec struct {
	// Hard are the most, by resource: pods, requests.cpu, requests.memory, limits.cpu, limits.memory, persistentvolumeclaims,
	// requests.storage, services, configmaps, secrets and others, as SEMANTICS lists them. What is not named is not bounded.
	Hard map[string]scalar.Quantity `json:"hard,omitempty"`

	Scopes        []string `json:"scopes,omitempty" stead:"later,zero"`
	ScopeSelector any      `json:"scopeSelector,omitempty" stead:"later"`
}

// ResourceQuotaStatus is what there is and may be, by the names of the spec, as Kubernetes shows it.
type ResourceQuotaStatus struct {
	Hard map[string]scalar.Quantity `json:"hard,omitempty"`
	Used map[string]scalar.Quantity `json:"used,omitempty"`
}

// The resources, each by the name by which it is counted.
const (
	Pods           = "pods" // members
	RequestsCPU    = "requests.cpu"
	RequestsMemory = "requests.memory"
	LimitsCPU      = "limits.cpu"
	LimitsMemory   = "limits.memory"
	HugePages2Mi   = "requests.hugepages-2Mi"
	HugePages1Gi   = "requests.hugepages-1Gi"
	Volumes        = "persistentvolumeclaims"
	Storage        = "requests.storage"
	Sets           = "count/statefulsets.apps"
	Services       = "services"
	NodePorts      = "services.nodeports"
	LoadBalancers  = "services.loadbalancers"
	ConfigMaps     = "configmaps"
	Secrets        = "secrets"
	ConfigMapBytes = "stead.dev/configmaps.bytes"
	SecretBytes    = "stead.dev/secrets.bytes"
)

// Resources are all, in the order in which they are named to people.
var Resources = []string{Pods, RequestsCPU, RequestsMemory, LimitsCPU, LimitsMemory, HugePages2Mi, HugePages1Gi, Volumes, Storage,
	Sets, Services, NodePorts, LoadBalancers, ConfigMaps, Secrets, ConfigMapBytes, SecretBytes}

// aliases are other names of resources, as in Kubernetes.
var aliases = map[string]string{
	"cpu": RequestsCPU, "memory": RequestsMemory, "hugepages-2Mi": HugePages2Mi, "hugepages-1Gi": HugePages1Gi,
	"count/pods": Pods, "count/persistentvolumeclaims": Volumes, "count/services": Services, "count/configmaps": ConfigMaps, "count/secrets": Secrets,
}

// Resource is the name by which what a quota calls so is counted; false: it is not counted.
func Resource(name string) (resource string, known bool) {
	if same, is := aliases[name]; is {
		return same, true
	}
	return name, slices.Contains(Resources, name)
}

// IsCPU reports whether amounts of the resource are thousandths of a processor; of all others they are whole.
func IsCPU(resource string) bool { return strings.HasSuffix(resource, ".cpu") }

// InBytes reports whether amounts of the resource are bytes.
func InBytes(resource string) bool {
	return slices.Contains([]string{RequestsMemory, LimitsMemory, HugePages2Mi, HugePages1Gi, Storage, ConfigMapBytes, SecretBytes}, resource)
}

// Amount is q as the resource is counted: thousandths of a processor, or whole ones.
func Amount(resource string, q scalar.Quantity) int64 {
	if IsCPU(resource) {
		return q.Milli
	}
	return q.Value()
}
