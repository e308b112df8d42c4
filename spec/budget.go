package spec

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
	MinAvailable *IntOrPercent `json:"minAvailable,omitempty"`
	// MaxUnavailable is how many members of each selected set may be unavailable.
	MaxUnavailable *IntOrPercent `json:"maxUnavailable,omitempty"`
	// Selector selects sets of the namespace by the labels of their template; an empty
	// one selects all.
	Selector *LabelSelector `json:"selector,omitempty"`
	// Broken members that are out of date are always replaced.
	UnhealthyPodEvictionPolicy string `json:"unhealthyPodEvictionPolicy,omitempty" stead:"ignored"`
}

// BudgetRecord is budgets/<ns>/<name>. Only writer: control.
type BudgetRecord struct {
	Namespace  Namespace         `json:"namespace"`
	Name       string            `json:"name"`
	Generation int64             `json:"generation"`
	Labels     map[string]string `json:"labels,omitempty"`
	Spec       BudgetSpec        `json:"spec"`
}

// Selects reports whether the budget holds for set.
func (r *BudgetRecord) Selects(set *Set) bool {
	return r.Namespace == set.Ref.Namespace && r.Spec.Selector.Matches(set.Spec.Template.Metadata.Labels)
}

// Floor is how many of so many members must stay available.
func (r *BudgetRecord) Floor(members int) int {
	d := Disruption{MinAvailable: r.Spec.MinAvailable, MaxUnavailable: r.Spec.MaxUnavailable}
	return d.Floor(members)
}
