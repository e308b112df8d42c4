package worker

import (
	"time"

	"github.com/stead-project/stead/agent/step"
)

// Done is something that was done for a life on its way to ready.
type Done struct {
	What      string // as people call it
	Container string // "": none in particular
	Began     time.Time
	Ended     time.Time
	Err       error
	Ready     bool // with it the life is ready for the first time
}

// whatOf are the operations that lead to a member that is ready.
var whatOf = map[step.Kind]string{
	step.OpenToken: "ledger", step.EnsureImage: "image", step.EnsureVolumes: "volumes", step.EnsureSandbox: "sandbox", step.AttachNetwork: "network",
	step.WriteFiles: "files", step.CreateContainer: "create", step.StartContainer: "start container",
}

// traceOp tells of an operation that began then and ended now.
func traceOp(w *subject, op step.Op, began time.Time, err error) {
	if w.c.Trace == nil || w.life == nil || w.state.ReadyOnce || whatOf[op.Kind] == "" {
		return
	}
	now := w.c.Now()
	if op.Kind == step.StartContainer {
		w.startedAt = now
	}
	w.c.Trace(w.life, Done{What: whatOf[op.Kind], Container: op.Container, Began: began, Ended: now, Err: err})
}

// traceReady tells that the life is ready for the first time.
func traceReady(w *subject) {
	if w.c.Trace == nil || w.life == nil || w.startedAt.IsZero() {
		return
	}
	w.c.Trace(w.life, Done{What: "become ready", Began: w.startedAt, Ended: w.c.Now(), Ready: true})
}
