package plan

import "github.com/stead-project/stead/spec"

// firstEpoch is that of a store that was never restored.
const firstEpoch = 1

// unheard is a node that has not said since the store was restored what it runs (SAFETY
// S8): it may run lives that this store does not know, so nothing starts and no address
// is freed before it has, or is removed. "": all have.
func unheard(w *World) spec.NodeName {
	if w.Epoch <= firstEpoch {
		return ""
	}
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Facts == nil || n.Facts.Epoch < w.Epoch {
			return n.Node.Name
		}
	}
	return ""
}
