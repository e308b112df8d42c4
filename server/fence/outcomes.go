package fence

import (
	"maps"
	"slices"
	"sync"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// Outcomes is what came of fencing nodes in this process: the Fencer sets it, and the engine
// shows it at the members that wait for a fence. Its methods are safe for concurrent use.
type Outcomes struct {
	changed *notify.Signal

	mu sync.Mutex
	of map[spec.NodeName]string // replaced, never changed
}

// NewOutcomes has none.
func NewOutcomes() *Outcomes { return &Outcomes{changed: notify.New()} }

// Set records what came of the last try to fence node, for its members to show: a sentence
// without its subject; "": there is nothing to show any more.
func (o *Outcomes) Set(node spec.NodeName, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[node] == text {
		return
	}
	next := maps.Clone(o.of)
	if next == nil {
		next = map[spec.NodeName]string{}
	}
	next[node] = text
	if text == "" {
		delete(next, node)
	}
	o.of = next
	o.changed.Notify()
}

// C delivers when an outcome changed since it was last received from.
func (o *Outcomes) C() <-chan struct{} { return o.changed.C() }

// Annotate returns nodes in which each silent one has its outcome.
func (o *Outcomes) Annotate(nodes []plan.Node) []plan.Node {
	o.mu.Lock()
	of := o.of
	o.mu.Unlock()
	if len(of) == 0 {
		return nodes
	}
	out := slices.Clone(nodes)
	for i := range out {
		if out[i].Session == nil {
			out[i].Fencing = of[out[i].Node.Name]
		}
	}
	return out
}
