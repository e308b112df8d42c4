package spec

import (
	"slices"
	"strings"
)

// PersistentVolumeClaim is a claim of a namespace: storage that belongs to no member, and that
// the members of any set of the namespace may mount. Its volume is made when a member mounts it
// first, on the node of that member, where it stays (WaitForFirstConsumer); one that is ReadWriteMany is on all
// nodes that share its class.
type PersistentVolumeClaim struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   ObjectMeta `json:"metadata"`
	Spec       ClaimSpec  `json:"spec"`
	Status     any        `json:"status,omitempty" stead:"ignored"`
}

// ClaimVolume mounts the volume of a PersistentVolumeClaim of the set's namespace.
type ClaimVolume struct {
	ClaimName string `json:"claimName"`
	// ReadOnly makes every mount of the volume read-only.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// claimPrefix starts the set of the identity of a claim. No set has such a name, and an agent that
// does not know claims refuses it as a directory.
const claimPrefix = "pvc:"

// ClaimIdentity is the identity to which the volume of a PersistentVolumeClaim belongs. It is
// that of no member.
func ClaimIdentity(ns Namespace, name string) Identity {
	return Identity{Namespace: ns, Set: SetName(claimPrefix + name)}
}

// ClaimName is the name of the PersistentVolumeClaim whose identity has r as its set; false: r is
// a set's.
func (r SetRef) ClaimName() (name string, is bool) {
	return strings.CutPrefix(string(r.Name), claimPrefix)
}

// ClaimNames are the PersistentVolumeClaims that the template's volumes name, sorted; nil: none.
func (s *MemberSpec) ClaimNames() (names []string) {
	for i := range s.Volumes {
		if c := s.Volumes[i].PersistentVolumeClaim; c != nil {
			names = append(names, c.ClaimName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// OnePod reports whether one life at a time may have the volume: ReadWriteOncePod.
func (s *ClaimSpec) OnePod() bool { return slices.Contains(s.AccessModes, ReadWriteOncePod) }

// OnManyNodes reports whether lives of several nodes may have the volume at once: ReadWriteMany.
func (s *ClaimSpec) OnManyNodes() bool { return slices.Contains(s.AccessModes, ReadWriteMany) }

// The access modes of a claim. ReadWriteOnce: any number of members of the volume's node. ReadWriteMany: of
// all nodes that share the class.
const (
	ReadWriteOnce    = "ReadWriteOnce"
	ReadWriteOncePod = "ReadWriteOncePod"
	ReadWriteMany    = "ReadWriteMany"
)
