package sim

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/store"
)

// Plant is a fault put in on purpose, to show that a judge finds it. The zero Plant
// is none.
type Plant struct {
	// Name is how it is called in tests and files of runs.
	Name string

	// Of hosts and agents.
	ForgetfulAgent   bool // a restarted agent has an empty ledger (S1)
	AbsenceIsAnOrder bool // what a whole list does not name is stopped (S2)
	AgentsGoBack     bool // lists of an older time are taken (S8)
	LateStartLands   bool // a start lands though its container was removed

	// Of the store and its restore.
	RestoreKeepsEpoch bool   // tokens are used again (S8)
	RestoreAtOnce     bool   // it is decided before the nodes have said what they run (S8)
	Unguarded         string // guards of keys that begin so are left out of every transaction (S7)

	// Of the planner: what it is shown, and what it is made to say.
	See func(w *plan.World)
	Say func(w plan.World, p *plan.Plan)
}

func (p Plant) world(w plan.World) plan.World {
	if p.See != nil {
		w.Slots, w.Nodes = slices.Clone(w.Slots), slices.Clone(w.Nodes)
		p.See(&w)
	}
	return w
}

func (p Plant) plan(w plan.World, x plan.Plan) plan.Plan {
	if p.Say != nil {
		p.Say(w, &x)
	}
	return x
}

func (p Plant) txn(t store.Txn) store.Txn {
	if p.Unguarded != "" {
		t.If = slices.DeleteFunc(slices.Clone(t.If), func(g store.Guard) bool { return strings.HasPrefix(g.Key, p.Unguarded) })
	}
	return t
}

// PlantNamed finds a plant; "" is none.
func PlantNamed(name string) (Plant, bool) {
	if name == "" {
		return Plant{}, true
	}
	for _, p := range Plants {
		if p.Name == name {
			return p, true
		}
	}
	return Plant{}, false
}

// Plants are all there are.
var Plants = []Plant{}
