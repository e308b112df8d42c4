package agent

import (
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/spec"
)

// Images are those that the lives of this node need, or will after an update, as their templates write them.
func (a *Agent) Images() (refs []string) {
	a.workers.each(func(_ spec.Identity, w *worker.Worker) { refs = append(refs, w.Images()...) })
	if p := a.preparer.Load(); p != nil {
		refs = append(refs, p.Images()...)
	}
	return refs
}
