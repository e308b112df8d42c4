package records

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/spec"
)

// The conditions of a node that is short of something, or cannot give members a network, with Kubernetes' names.
const (
	DiskPressure       = "DiskPressure"
	MemoryPressure     = "MemoryPressure"
	PIDPressure        = "PIDPressure"
	NetworkUnavailable = "NetworkUnavailable"
)

// ShuttingDown is the condition of a node whose host is being shut down or rebooted: its members stop (SEMANTICS Part 4,
// Planned absence). It ends with the boot.
const ShuttingDown = "ShuttingDown"

// conditionTaints are the taints that such a node has in Kubernetes. Here they are no records: the condition itself
// keeps members away that do not tolerate them.
var conditionTaints = map[string]spec.Taint{
	DiskPressure:       {Key: "node.kubernetes.io/disk-pressure", Effect: spec.NoSchedule},
	MemoryPressure:     {Key: "node.kubernetes.io/memory-pressure", Effect: spec.NoSchedule},
	PIDPressure:        {Key: "node.kubernetes.io/pid-pressure", Effect: spec.NoSchedule},
	NetworkUnavailable: {Key: "node.kubernetes.io/network-unavailable", Effect: spec.NoSchedule},
	ShuttingDown:       {Key: "node.kubernetes.io/not-ready", Effect: spec.NoSchedule},
}

// NodeCondition is what a node is short of, or that it cannot give members a network, by its own word.
type NodeCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"` // True; others are left out
	// Class is the storage class whose disk is short; "": it concerns all members, not only those that are to get a
	// new volume of a class.
	Class   string `json:"class,omitempty"`
	Message string `json:"message"`
	// AtOnce, of ShuttingDown: its time is nearly over, and members wait for nobody any more.
	AtOnce bool `json:"atOnce,omitempty"`
	// LastTransitionTime is when it began, on the node's wall clock; for people only.
	LastTransitionTime time.Time `json:"lastTransitionTime,omitzero"`
}

// Known reports whether this version knows what the condition means.
func (c *NodeCondition) Known() bool { return conditionTaints[c.Type].Key != "" }

// Taint is the taint that stands for the condition in tolerations.
func (c *NodeCondition) Taint() spec.Taint { return conditionTaints[c.Type] }

// Compare orders conditions by what they are about: their numbers do not matter.
func (c NodeCondition) Compare(o NodeCondition) int {
	return cmp.Or(strings.Compare(c.Type, o.Type), strings.Compare(c.Class, o.Class))
}

// ShuttingDown is the condition of that name; nil: the host is not being shut down, as far as is known. f may be nil.
func (f *NodeFacts) ShuttingDown() *NodeCondition {
	if f == nil {
		return nil
	}
	for i := range f.Conditions {
		if c := &f.Conditions[i]; c.Type == ShuttingDown {
			return c
		}
	}
	return nil
}

// SameConditions reports whether two lists in order are about the same.
func SameConditions(a, b []NodeCondition) bool {
	return slices.EqualFunc(a, b, func(x, y NodeCondition) bool { return x.Compare(y) == 0 && x.AtOnce == y.AtOnce })
}

// ShortOf are the conditions of the node, for people: "DiskPressure, MemoryPressure"; "": it has none. f may be nil.
func (f *NodeFacts) ShortOf() string {
	if f == nil {
		return ""
	}
	var types []string
	for i := range f.Conditions {
		types = append(types, f.Conditions[i].Type)
	}
	return strings.Join(slices.Compact(types), ", ")
}
