package engine

import (
	"maps"
	"slices"
	"sync"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// fencing is what came of fencing nodes in this process, as others told it. Its methods
// are safe for concurrent use.
type fencing struct {
	mu   sync.Mutex
	of   map[spec.NodeName]string
	news chan struct{} // has room for one
}

// Fencing tells the engine what came of it that node was to be fenced, for its members to
// show: a sentence without its subject; "": nothing is to be told any more.
func (e *Engine) Fencing(node spec.NodeName, text string) {
	e.fencing.mu.Lock()
	defer e.fencing.mu.Unlock()
	if e.fencing.of[node] == text {
		return
	}
	next := maps.Clone(e.fencing.of)
	if next == nil {
		next = map[spec.NodeName]string{}
	}
	if next[node] = text; text == "" {
		delete(next, node)
	}
	e.fencing.of = next
	select {
	case e.fencing.news <- struct{}{}:
	default: // one waits already
	}
}

// told returns nodes with what came of it for those that are silent.
func (f *fencing) told(nodes []plan.Node) []plan.Node {
	f.mu.Lock()
	of := f.of
	f.mu.Unlock()
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
