package worker

import (
	"sync"

	"github.com/stead-project/stead/agent/step"
)

// occupyPlace ends when an operation has had one of the node's places for Tuning.Place: the
// place goes to the next member, and what takes so long is told. The operation itself is
// waited for, since nothing can be done about the member while it may still have an
// effect. Whoever calls release when it has ended may call it in any case.
func (w *actor) occupyPlace(op step.Op) (release func()) {
	leave := sync.OnceFunc(w.leavePlace)
	ended := false // guarded by mu
	stop := w.c.after(w.c.Tuning.Place, func() {
		leave()
		w.mu.Lock()
		defer w.mu.Unlock()
		if !ended {
			w.reportOverdue(op)
		}
	})
	return func() {
		stop()
		leave()
		w.mu.Lock()
		defer w.mu.Unlock()
		ended = true
	}
}
