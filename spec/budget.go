package spec

import (
	"github.com/stead-project/stead/spec/scalar"
)

// PodDisruptionBudget is a disruption floor for the sets it selects: policy/v1.
type PodDisruptionBudget struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   ObjectMeta `json:"metadata"`
	Spec       BudgetSpec `json:"spec"`
	Status     any        `json:"status,omitempty" stead:"ignored"`
}

// BudgetSpec has one of MinAvailable and MaxUnavailable. Percentages are rounded up.
type BudgetSpec struct {
	// MinAvailable is how many members of each selected set must stay available.
	MinAvailable *scalar.IntOrPercent `json:"minAvailable,omitempty"`
	// MaxUnavailable is how many members of each selected set may be unavailable.
	MaxUnavailable *scalar.IntOrPercent `json:"maxUnavailable,omitempty"`
	// Selector selects sets of the namespace by the labels of their template; an empty
	// one selects all.
	Selector                   *LabelSelector `json:"selector,omitempty"`
	UnhealthyPodEvictionPolicy string         `json:"unhealthyPodEvictionPolicy,omitempty" stead:"ignored"`
}
