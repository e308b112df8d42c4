package cache

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func TestABudgetComesToTheSetsItSelectsAndWakesThem(t *testing.T) {
	s := memstore.New()
	set := records.Set{Ref: db, UID: "u1"}
	set.Spec.Template.Metadata.Labels = map[string]string{"app": "db"}
	key := store.BudgetKey("default", "pdb")
	budget := records.BudgetRecord{Meta: records.Meta{Namespace: "default", Name: "pdb"}}
	budget.Spec.Selector = &spec.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	commit(t, s, put(store.SetKey(db), set), put(key, budget)) // there before the cache
	c, _ := start(t, s)
	sub := c.Subscribe()
	defer sub.Close()
	count := func() (n int) {
		c.Look(func(v View) { n = len(v.World(db).Budgets) })
		return n
	}
	if n := count(); n != 1 {
		t.Fatalf("the set has %d budgets; want one", n)
	}
	sub.Take()
	other := budget
	other.Spec.Selector = &spec.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for _, step := range []struct {
		what string
		op   store.Op
		want int
	}{
		{"it selects others", put(key, other), 0},
		{"it selects the set again", put(key, budget), 1},
		{"it cannot be read", store.Put(key, []byte("{")), 0},
		{"it is repaired", put(key, budget), 1},
		{"it is gone", store.Del(key), 0},
	} {
		wait(t, c, commit(t, s, step.op))
		if n := count(); n != step.want {
			t.Errorf("%s: the set has %d budgets; want %d", step.what, n, step.want)
		}
		if !sub.Take().Sets[db] {
			t.Errorf("%s: the set is not looked at", step.what)
		}
	}
	if len(c.state.budgets) != 0 {
		t.Errorf("%v stays of budgets that are gone", c.state.budgets)
	}
}
