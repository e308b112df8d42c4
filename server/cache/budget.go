package cache

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// applyBudget takes over one change of a disruption budget. It may concern any set of
// its namespace.
func (s *state) applyBudget(ns spec.Namespace, name string, ev store.Event, ch *Changes) error {
	e, err := decode(s, ev, func(r *records.BudgetRecord) string { return store.BudgetKey(r.Namespace, r.Name) })
	if s.budgets[ns] == nil {
		s.budgets[ns] = map[string]entry[records.BudgetRecord]{}
	}
	keep(s.budgets[ns], name, e)
	if len(s.budgets[ns]) == 0 {
		delete(s.budgets, ns)
	}
	for ref := range s.sets {
		if ref.Namespace == ns {
			ch.Sets[ref] = true
		}
	}
	return err
}

// budgetsOf are the budgets that hold for set, by name.
func (s *state) budgetsOf(set *records.Set) (list []*records.BudgetRecord) {
	of := s.budgets[set.Ref.Namespace]
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if r := of[name].record; r != nil && r.Selects(set) {
			list = append(list, r)
		}
	}
	return list
}
