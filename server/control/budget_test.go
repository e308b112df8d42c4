package control

import (
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
)

const budgetYAML = `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db-pdb}
spec:
  minAvailable: 2
  selector: {matchLabels: {app: db}}
`

func TestABudgetIsKeptForTheSetsItSelects(t *testing.T) {
	r := newRig(t)
	budgets := func() (names []string) {
		ref := spec.SetRef{Namespace: "default", Name: "db"}
		r.Cache.Look(func(v cache.View) {
			for _, b := range v.World(ref).Budgets {
				names = append(names, b.Name+" "+b.Spec.MinAvailable.String())
			}
		})
		return names
	}
	apply := func(yaml, outcome string) {
		t.Helper()
		out, err := r.apply(yaml)
		if err != nil {
			t.Fatal(err)
		}
		if got := out.GetApplied()[0]; got.GetOutcome() != outcome || got.GetKind() != proto.KindBudget {
			t.Fatalf("got %s %s, want budget %s", got.GetKind(), got.GetOutcome(), outcome)
		}
	}
	apply(budgetYAML+"---\n"+setYAML, created)
	if got := budgets(); !slices.Equal(got, []string{"db-pdb 2"}) {
		t.Errorf("the set has the budgets %q; want db-pdb", got)
	}
	apply(budgetYAML, unchanged)
	apply(strings.Replace(budgetYAML, "minAvailable: 2", "minAvailable: 50%", 1), configured)
	if got := budgets(); !slices.Equal(got, []string{"db-pdb 50%"}) {
		t.Errorf("the set has the budgets %q after an edit", got)
	}
	apply(strings.NewReplacer("db-pdb", "other", "app: db", "app: web").Replace(budgetYAML), created)
	apply(strings.Replace(budgetYAML, "name: db-pdb", "name: db-pdb, namespace: elsewhere", 1), created)
	if got := budgets(); !slices.Equal(got, []string{"db-pdb 50%"}) {
		t.Errorf("the set has the budgets %q, of other sets", got)
	}
	shown, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: proto.KindBudget, Namespace: "default", Name: "db-pdb"})
	if err != nil || !strings.Contains(string(shown.GetJson()), `"minAvailable":"50%"`) {
		t.Errorf("get shows %s, %v", shown.GetJson(), err)
	}
	gone, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindBudget, Name: "db-pdb"})
	if err != nil || !slices.Equal(gone.GetEffects(), []string{"set default/db is not bounded by it any more"}) {
		t.Errorf("delete says %q, %v", gone.GetEffects(), err)
	}
	if got := budgets(); got != nil {
		t.Errorf("the set has the budgets %q after they were deleted", got)
	}
}
