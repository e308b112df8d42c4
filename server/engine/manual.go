package engine

import (
	"context"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Term is one leadership worked by hand: for a simulation, which owns order and
// time. Run does the same by itself; the two are not to be mixed.
type Term struct{ l *leader }

// Start is the beginning of the server's process: see Config.Cold. The cache must show the
// store.
func (e *Engine) Start() {
	e.cfg.Cache.Look(func(v cache.View) { e.cold.begin(v, e.cfg.Now()) })
}

// Begin begins a term that was won. The cache must show the term's creation.
func (e *Engine) Begin(term store.Leadership) *Term {
	l := e.leader(term)
	l.begin()
	return &Term{l}
}

// Link adds a link to the chain of the store.
func (t *Term) Link(ctx context.Context) { _, _ = t.l.link(ctx) }

// Turn looks at a set once, plans, and commits, in the caller's goroutine. It tells
// nobody when to look again: look whenever it may matter.
func (t *Term) Turn(ctx context.Context, ref spec.SetRef) {
	t.l.endCount(ctx)
	t.l.turn(ctx, ref)
}
