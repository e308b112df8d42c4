package records

import "github.com/stead-project/stead/spec"

// BudgetRecord is budgets/<ns>/<name>. Only writer: control.
type BudgetRecord struct {
	Namespace  spec.Namespace    `json:"namespace"`
	Name       string            `json:"name"`
	Generation int64             `json:"generation"`
	Labels     map[string]string `json:"labels,omitempty"`
	Spec       spec.BudgetSpec   `json:"spec"`
}

// Selects reports whether the budget holds for set.
func (r *BudgetRecord) Selects(set *Set) bool {
	return r.Namespace == set.Ref.Namespace && r.Spec.Selector.Matches(set.Spec.Template.Metadata.Labels)
}

// Floor is how many of so many members must stay available.
func (r *BudgetRecord) Floor(members int) int {
	d := spec.Disruption{MinAvailable: r.Spec.MinAvailable, MaxUnavailable: r.Spec.MaxUnavailable}
	return d.Floor(members)
}
