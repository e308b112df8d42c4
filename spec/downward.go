package spec

import (
	"iter"

	"github.com/stead-project/stead/spec/scalar"
)

// ResourceFieldRef names a limit or request of a container (Kubernetes' ResourceFieldSelector).
type ResourceFieldRef struct {
	// ContainerName is a container of the template; "": the one that has the variable. A volume
	// must name one.
	ContainerName string `json:"containerName,omitempty"`
	// Resource is limits. or requests. with cpu, memory, ephemeral-storage or hugepages-SIZE. A
	// limit of the first three that is not set, or is 0, is what members of the node can have
	// together: its CPUs, its memory but the part reserved for the host, the size of the disk on
	// which the agent's root is. A request that is not set is the limit, or 0.
	Resource string `json:"resource"`
	// Divisor is the unit: 1 or 1m (thousandths) of cpu, else 1, k, M, G, T, P, Ki, Mi, Gi, Ti or Pi
	// with a 1 before it. 0 is 1.
	Divisor scalar.Quantity `json:"divisor,omitzero"`
}

// DownwardAPIVolume shows facts of the member as files (Kubernetes' DownwardAPIVolumeSource).
type DownwardAPIVolume struct {
	Items []DownwardAPIFile `json:"items,omitempty"`
	// DefaultMode is the permission bits of the files; default 0644.
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// DownwardAPIFile is one fact and its file; exactly one of FieldRef and ResourceFieldRef is set.
type DownwardAPIFile struct {
	Path string `json:"path"`
	// FieldRef: metadata.name, metadata.namespace, metadata.uid, metadata.labels['k'],
	// metadata.annotations['k'], or all of them: metadata.labels, metadata.annotations, as
	// lines key="value".
	FieldRef         *FieldRef         `json:"fieldRef,omitempty"`
	ResourceFieldRef *ResourceFieldRef `json:"resourceFieldRef,omitempty"`
	Mode             *int32            `json:"mode,omitempty"`
}

// ProjectedVolume shows the files of several sources in one directory (Kubernetes'
// ProjectedVolumeSource). Of two sources that have the same key the later one counts.
type ProjectedVolume struct {
	Sources []Projection `json:"sources,omitempty"`
	// DefaultMode is the permission bits of the files; default 0644.
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// Projection is one source: exactly one is set.
type Projection struct {
	ConfigMap   *ObjectProjection      `json:"configMap,omitempty"`
	Secret      *ObjectProjection      `json:"secret,omitempty"`
	DownwardAPI *DownwardAPIProjection `json:"downwardAPI,omitempty"`

	ServiceAccountToken any `json:"serviceAccountToken,omitempty" stead:"later"`
	ClusterTrustBundle  any `json:"clusterTrustBundle,omitempty" stead:"later"`
}

// ObjectProjection is a ConfigMap or Secret of the set's namespace, or some of its keys.
type ObjectProjection struct {
	Name     string      `json:"name"`
	Items    []KeyToPath `json:"items,omitempty"`
	Optional bool        `json:"optional,omitempty"`
}

// DownwardAPIProjection is DownwardAPIVolume as one of several sources.
type DownwardAPIProjection struct {
	Items []DownwardAPIFile `json:"items,omitempty"`
}

// FileFacts are the facts that files of the volumes show, in the template's order.
func (s *MemberSpec) FileFacts() iter.Seq[*DownwardAPIFile] {
	return func(yield func(*DownwardAPIFile) bool) {
		for i := range s.Volumes {
			for _, items := range s.Volumes[i].facts() {
				for j := range items {
					if !yield(&items[j]) {
						return
					}
				}
			}
		}
	}
}

func (v *VolumeMedia) facts() (out [][]DownwardAPIFile) {
	if v.DownwardAPI != nil {
		out = append(out, v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		for _, p := range v.Projected.Sources {
			if p.DownwardAPI != nil {
				out = append(out, p.DownwardAPI.Items)
			}
		}
	}
	return out
}

// ShowsFiles reports that the volume holds files that the host writes, not the member.
func (v *VolumeMedia) ShowsFiles() bool {
	return v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil
}
