package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// budgeted has disruption budgets with these minAvailable select the set.
func budgeted(limits ...string) func(*World) {
	return func(w *World) {
		for i, text := range limits {
			limit, err := scalar.ParseIntOrPercent(text)
			if err != nil {
				panic(err)
			}
			w.Budgets = append(w.Budgets, &records.BudgetRecord{Meta: records.Meta{Name: fmt.Sprint("pdb-", i)}, Spec: spec.BudgetSpec{MinAvailable: &limit}})
		}
	}
}

func TestTheFloorThatHoldsIsNamed(t *testing.T) {
	w := world(t, "ordered 2 floor=1 n1 update=h2 current=h1 0:ready 1:ready")
	budgeted("0", "2")(&w)
	if text := Next(w).Blocked[0].Text; !strings.Contains(text, "PodDisruptionBudget pdb-1) keeps 2 of 2") {
		t.Errorf("it says %q; want the budget named", text)
	}
	w = world(t, "ordered 2 floor=2 n1 update=h2 current=h1 0:ready 1:ready")
	budgeted("2")(&w)
	if text := Next(w).Blocked[0].Text; !strings.Contains(text, "the disruption floor keeps 2 of 2") {
		t.Errorf("it says %q; want the set's own, which is as high", text)
	}
}

func TestRecreate(t *testing.T) {
	check(t, []rule{
		{name: "all go down at once", world: "ordered 3 Recreate n1 update=h2 current=h1 0:ready 1:ready 2:ready",
			want: "stop=2/Update stop=1/Update stop=0/Update | 0:Stopping 1:Stopping 2:Stopping"},
		{name: "whatever their health, surplus with them", world: "ordered 2 Recreate n1 update=h2 current=h1 0:loop 1:starting 2:ready",
			want: "stop=2/ScaleDown stop=1/Update stop=0/Update | 0:Stopping 1:Stopping 2:Stopping"},
		{name: "nobody starts while one goes", world: "parallel 3 Recreate n1 update=h2 current=h1 0:turned 1:turning",
			want: "| 0:WaitingForTurn 1:Stopping 2:WaitingForTurn"},
		{name: "nor while a surplus one goes", world: "parallel 1 Recreate n1 update=h2 current=h1 0:turned 1:stopping",
			want: "| 0:WaitingForTurn 1:Stopping"},
		{name: "a surplus one of the update's revision waits, and says so", world: "ordered 1 Recreate n1 update=h2 current=h1 0:ready 1:ready/h2",
			want: "stop=0/Update | 0:Stopping 1:WaitingForTurn"},
		{name: "of surplus ones that have no life nothing is said", world: "parallel 1 Recreate volumes n1 update=h2 current=h1 0:turning 1:volume",
			want: "| 0:Stopping"},
		{name: "nor of one that is on the update's revision already", world: "parallel 2 Recreate n1 update=h2 current=h1 0:ready/h2 1:turning",
			want: "| 1:Stopping"},
		{name: "then they come up in order", world: "ordered 2 Recreate n1 update=h2 current=h1 0:turned 1:turned",
			want: "start=0/Update@n1/h2 | 0:Starting 1:WaitingForPredecessor"},
		{name: "or all at once", world: "parallel 2 Recreate n1 update=h2 current=h1 0:turned 1:turned",
			want: "start=0/Update@n1/h2 start=1/Update@n1/h2 | 0:Starting 1:Starting"},
		{name: "a fix replaces the broken one of whom all others waited", world: "ordered 3 Recreate n1 update=h3 current=h1 0:loop/h2? 1:turned 2:turned",
			want: "stop=0/Update | 0:Stopping 1:WaitingForTurn 2:WaitingForTurn"},
		{name: "and is what the others then start on", world: "ordered 2 Recreate n1 update=h3 current=h1 0:turned/h2 1:turned",
			want: "start=0/Update@n1/h3 | 0:Starting 1:WaitingForPredecessor"},
		{name: "a change of the strategy alone starts nothing", world: "ordered 2 Recreate n1 0:ready 1:ready", want: "|"},
		{name: "healing goes on", world: "ordered 2 Recreate n1 update=h2 current=h2 0:ready/h2 1:over/h2",
			want: "start=1/Replace@n1/h2 | 1:Starting"},
		{name: "one that died after the edit goes to the new revision when the others are gone", world: "parallel 2 Recreate n1 update=h2 current=h1 0:over 1:turned",
			want: "start=0/Replace@n1/h2 start=1/Update@n1/h2 | 0:Starting 1:Starting"},
		{name: "members that are well do not go down while one cannot", world: "ordered 2 Recreate n1 n2~ update=h2 current=h1 0:ready 1:ready@n2",
			want: "| 1:NodeSilent 0:WaitingForTurn"},
		{name: "the first that cannot is named", world: "ordered 3 Recreate n1 n2~ n3~ update=h2 current=h1 0:ready 1:ready@n2 2:ready@n3",
			want: "| 1:NodeSilent 2:NodeSilent 0:WaitingForTurn", says: "but node n2 of db-1 is unreachable"},
		{name: "who is lost meanwhile returns beside them on what it ran", world: "parallel 3 Recreate n1 n2~ update=h2 current=h1 0:ready 1:ready@n2 2:over",
			want: "start=2/Replace@n1 | 1:NodeSilent 2:Starting 0:WaitingForTurn"},
		{name: "members that are all down anyway do not wait for that", world: "ordered 2 Recreate n1 n2~ update=h2 current=h1 0:loop 1:ready@n2",
			want: "stop=1/Update stop=0/Update | 0:Stopping 1:NodeSilent"},
		{name: "nor does one that was under way already", world: "ordered 3 Recreate n1 n2~ update=h2 current=h1 0:ready 1:ready@n2 2:turning",
			want: "| 1:NodeSilent 2:Stopping 0:WaitingForTurn"},
		{name: "paused nobody goes down", world: "ordered 2 Recreate paused n1 update=h2 current=h1 0:ready 1:ready",
			want: "| 1:Paused 0:Paused"},
		{name: "paused, one that died returns on what the others run", world: "ordered 2 Recreate paused n1 update=h2 current=h1 0:ready 1:over",
			want: "start=1/Replace@n1 | 1:Starting 0:Paused"},
		{name: "paused when all were down, they return on what they ran", world: "parallel 2 Recreate paused n1 update=h2 current=h1 0:turned 1:turned",
			want: "start=0/Update@n1 start=1/Update@n1 | 0:Starting 1:Starting"},
		{name: "paused when some had started, the others follow them", world: "parallel 2 Recreate paused n1 update=h2 current=h1 0:starting/h2? 1:turned",
			want: "start=1/Update@n1/h2 | 0:Starting 1:Starting"},
		{name: "the disruption floor forbids it", world: "ordered 2 Recreate floor=1 n1 update=h2 current=h1 0:ready 1:ready",
			want: "| 1:WaitingForTurn 0:WaitingForTurn"},
	})
}

func TestDisruptionFloor(t *testing.T) {
	check(t, []rule{
		{name: "an update keeps it", world: "ordered 4 max=4 floor=2 n1 update=h2 current=h1 0:ready 1:ready 2:ready 3:ready",
			want: "stop=3/Update stop=2/Update | 3:Stopping 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "percentages are rounded up", world: "ordered 3 max=3 floor=50% n1 update=h2 current=h1 0:ready 1:ready 2:ready",
			want: "stop=2/Update | 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "a budget below it still holds", world: "ordered 4 floor=1 n1 update=h2 current=h1 0:ready 1:ready 2:ready 3:ready",
			want: "stop=3/Update | 3:Stopping 2:WaitingForTurn 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "who is down already uses it, whatever it runs", world: "parallel 3 max=3 floor=2 n1 update=h3 current=h1 0:loop/h2 1:ready 2:ready",
			want: "stop=0/Update | 0:Stopping 2:WaitingForTurn 1:WaitingForTurn"},
		{name: "a floor of all says so", world: "ordered 2 floor=2 n1 update=h2 current=h1 0:ready 1:ready",
			want: "| 1:DisruptionFloor 0:DisruptionFloor"},
		{name: "a broken one is replaced in spite of it", world: "ordered 2 floor=2 n1 update=h2 current=h1 0:ready 1:loop",
			want: "stop=1/Update | 1:Stopping 0:WaitingForTurn"},
		{name: "a restart by hand keeps it", world: "ordered 2 floor=100% n1 0:ready 1:ready", change: asked(0), want: "| 0:DisruptionFloor"},
		{name: "also beside one that is down", world: "parallel 3 max=3 floor=2 n1 0:running 1:ready 2:ready", change: asked(1),
			want: "| 0:NotReady 1:WaitingForTurn"},
		{name: "one that is down may be restarted", world: "ordered 2 floor=2 n1 0:ready 1:running", change: asked(1), want: "stop=1/Restart | 1:Stopping"},
		{name: "a budget that selects the set is one, too", world: "ordered 2 max=2 n1 update=h2 current=h1 0:ready 1:ready", change: budgeted("100%"),
			want: "| 1:DisruptionFloor 0:DisruptionFloor"},
		{name: "the highest of all holds", world: "ordered 3 max=3 floor=1 n1 update=h2 current=h1 0:ready 1:ready 2:ready", change: budgeted("2", "50%"),
			want: "stop=2/Update | 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "the set's own, if that is it", world: "ordered 3 max=3 floor=2 n1 update=h2 current=h1 0:ready 1:ready 2:ready", change: budgeted("1"),
			want: "stop=2/Update | 2:Stopping 1:WaitingForTurn 0:WaitingForTurn"},
		{name: "scaling down asks for no floor", world: "ordered 1 floor=1 n1 0:ready 1:ready", want: "stop=1/ScaleDown | 1:Stopping"},
	})
}
