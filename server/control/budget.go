package control

import (
	"fmt"
	"maps"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// budgetEdit makes a disruption budget, or makes it equal to m.
func budgetEdit(m spec.PodDisruptionBudget, kv store.KV) (edit, records.BudgetRecord, error) {
	old, err := before[records.BudgetRecord](kv)
	if err != nil {
		return edit{}, records.BudgetRecord{}, err
	}
	now := records.BudgetRecord{
		Namespace: m.Metadata.Namespace, Name: m.Metadata.Name, Generation: 1, Labels: m.Metadata.Labels, Spec: m.Spec,
	}
	same, docs := false, documents{after: manifest.OfBudget(&now)}
	if old != nil {
		sameSpec := sameJSON(old.Spec, now.Spec)
		now.Generation = next(old.Generation, sameSpec)
		same = sameSpec && maps.Equal(old.Labels, now.Labels)
		docs.before = manifest.OfBudget(old)
	}
	e := finish(kindBudget, now.Namespace, now.Name, store.BudgetKey(now.Namespace, now.Name), kv, same, now)
	e.docs = docs
	return e, now, nil
}

// boundBy tells of the sets that a budget bounded.
func (s *Server) boundBy(ns spec.Namespace, name string) []string {
	var out []string
	s.cfg.Cache.Look(func(v cache.View) {
		for _, ref := range v.Sets() {
			for _, b := range v.World(ref).Budgets {
				if b.Namespace == ns && b.Name == name {
					out = append(out, fmt.Sprintf("set %s is not bounded by it any more", ref))
				}
			}
		}
	})
	return out
}

func showBudget(r records.BudgetRecord) item {
	m := manifest.OfBudget(&r)
	return item{kind: kindBudget, body: object{
		APIVersion: m.APIVersion, Kind: m.Kind, Spec: m.Spec,
		Metadata: records.ShownMeta{Name: r.Name, Namespace: r.Namespace, Labels: r.Labels, Generation: r.Generation},
	}}
}
