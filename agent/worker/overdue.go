package worker

import (
	"fmt"
	"sync"

	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/spec"
)

// lend ends when an operation has had one of the node's places for Tuning.Place: the
// place goes to the next member, and what takes so long is told. The operation itself is
// waited for, since nothing can be done about the member while it may still have an
// effect. Whoever calls give when it has ended may call it in any case.
func (w *Worker) lend(op step.Op) (give func()) {
	leave := sync.OnceFunc(w.leave)
	ended := false // guarded by mu
	stop := w.c.after(w.c.Tuning.Place, func() {
		leave()
		w.mu.Lock()
		defer w.mu.Unlock()
		if !ended {
			w.tellOverdue(op)
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

// tellOverdue repeats the last report with what is wrong now. The caller holds the lock.
func (w *Worker) tellOverdue(op step.Op) {
	if w.last == nil {
		return
	}
	verb := "created"
	if op.Kind == step.StartContainer {
		verb = "started"
	}
	r := *w.last
	r.Cause, r.Message = spec.CauseStartError, fmt.Sprintf("container %s: it has been %s for %s without an end; the host's runtime or disk does not answer. "+
		"Other members go on; this one goes on by itself when it does", op.Container, verb, w.c.Tuning.Place)
	r.Seq, r.At = w.c.Seq(), w.c.Now()
	w.last = &r
	w.c.Report(r)
	w.log.Warn("operation overdue", "token", r.Token, "reason", r.Message)
}
