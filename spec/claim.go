package spec

import (
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/spec/scalar"
)

// ClaimTemplate is a set's request for storage of each member.
type ClaimTemplate struct {
	APIVersion string     `json:"apiVersion,omitempty"`
	Kind       string     `json:"kind,omitempty"`
	Metadata   ObjectMeta `json:"metadata"`
	Spec       ClaimSpec  `json:"spec"`
	Status     any        `json:"status,omitempty" stead:"ignored"`
	Reclaim    *Reclaim   `json:"reclaim,omitempty" stead:"only"`
}

// Claim is the claim template of that name; nil: there is none.
func (s *SetSpec) Claim(name ClaimName) *ClaimTemplate {
	i := slices.IndexFunc(s.VolumeClaimTemplates, func(c ClaimTemplate) bool { return c.Metadata.Name == string(name) })
	if i < 0 {
		return nil
	}
	return &s.VolumeClaimTemplates[i]
}

// ClaimLabels are the labels of the volumes of a claim: the claim template's own, and over
// them the selector's matchLabels, as Kubernetes has it.
func (s *SetSpec) ClaimLabels(c *ClaimTemplate) map[string]string {
	if s.Selector == nil || len(s.Selector.MatchLabels) == 0 {
		return maps.Clone(c.Metadata.Labels)
	}
	labels := maps.Clone(s.Selector.MatchLabels)
	for name, value := range c.Metadata.Labels {
		if _, over := labels[name]; !over {
			labels[name] = value
		}
	}
	return labels
}

// DefaultTrash is how long a volume that was given up stays in the trash of its node.
const DefaultTrash = 24 * time.Hour

// Reclaim says what becomes of a claim's volumes when they are given up.
type Reclaim struct {
	// After is how long a volume that was given up lies in the trash of its node, on
	// the node's boot clock, before it is erased; default 24h. 0s: not at all.
	After *scalar.Duration `json:"after,omitempty"`
}

// Trash is the trash period of the claim's volumes.
func (c *ClaimTemplate) Trash() time.Duration {
	if c.Reclaim == nil || c.Reclaim.After == nil {
		return DefaultTrash
	}
	return c.Reclaim.After.Duration
}

// ClaimSpec describes the storage of one claim.
type ClaimSpec struct {
	// AccessModes are ReadWriteOnce, ReadWriteOncePod, or ReadWriteMany: of a PersistentVolumeClaim
	// whose class nodes share (--shared-class).
	AccessModes []string        `json:"accessModes,omitempty"`
	Resources   VolumeResources `json:"resources,omitempty"`
	// StorageClassName is a class that a node declares (--storage-class), or one that
	// the server maps to such (--map-class). Absent or "": local, which every node has.
	StorageClassName *string `json:"storageClassName,omitempty"`
	// VolumeMode must be Filesystem.
	VolumeMode string `json:"volumeMode,omitempty"`

	Selector                  any    `json:"selector,omitempty" stead:"later"`
	VolumeName                string `json:"volumeName,omitempty" stead:"later,zero"`
	DataSource                any    `json:"dataSource,omitempty" stead:"later"`
	DataSourceRef             any    `json:"dataSourceRef,omitempty" stead:"later"`
	VolumeAttributesClassName any    `json:"volumeAttributesClassName,omitempty" stead:"later"`
}

// LocalClass is the storage class that every node has, and the default.
const LocalClass = "local"

// VolumeResources is the size asked for: requests.storage.
type VolumeResources struct {
	Requests map[string]scalar.Quantity `json:"requests,omitempty"`
	Limits   map[string]scalar.Quantity `json:"limits,omitempty" stead:"later,zero"`
}

// Class is the storage class of the claim: LocalClass when none is named.
func (s *ClaimSpec) Class() string {
	if s.StorageClassName == nil || *s.StorageClassName == "" {
		return LocalClass
	}
	return *s.StorageClassName
}

// SizeBytes is the size asked for.
func (s *ClaimSpec) SizeBytes() int64 {
	q := s.Resources.Requests["storage"]
	return q.Value()
}
