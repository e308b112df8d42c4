package engine

import (
	"context"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// ManualTerm is one leadership worked by hand: for a simulation, which owns order and
// time. Run does the same by itself; the two are not to be mixed.
type ManualTerm struct{ l *leader }

// Start is the start of the server's process: see Config.Cold. The cache must show the
// store.
func (e *Engine) Start() {
	e.cfg.Cache.Look(func(v cache.View) { e.coldStart.start(v, e.cfg.Now()) })
}

// Begin starts a term that was won. The cache must show the term's creation.
func (e *Engine) Begin(term store.Leadership) *ManualTerm {
	l := e.leader(term)
	l.startQuarantines()
	return &ManualTerm{l}
}

// Link adds a link to the chain of the store.
func (t *ManualTerm) Link(ctx context.Context) { _, _ = t.l.link(ctx) }

// Reconcile evaluates a set once and commits, in the caller's goroutine. When to do so again is the
// caller's to know: whenever it may matter.
func (t *ManualTerm) Reconcile(ctx context.Context, ref spec.SetRef) {
	t.l.completeCount(ctx)
	t.l.reconcile(ctx, ref)
}
