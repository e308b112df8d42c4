package engine

import (
	"time"

	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
)

// took says when a decision began and when it was made; its transaction followed.
type took struct{ began, decided time.Time }

// ofApply are the reasons of lives that an apply asked for: they belong to its trace, others have traces of their own.
var ofApply = map[records.Reason]bool{records.ReasonCreate: true, records.ReasonScaleUp: true, records.ReasonUpdate: true}

// traceStarts names the spans of the lives that p begins.
func (l *leader) traceStarts(p *plan.Plan, set *records.Set) {
	if l.cfg.Trace == nil {
		return
	}
	for i, a := range p.Actions {
		if start, ok := a.(plan.Start); ok {
			parent := ""
			if ofApply[start.Member.Reason] {
				parent = set.Trace
			}
			start.Member.Trace = l.cfg.Trace.New(parent)
			p.Actions[i] = start
		}
	}
}

// traceStarted tells how long it took until lives were begun.
func (l *leader) traceStarted(e *evaluation, starts []plan.Start) {
	if l.cfg.Trace == nil {
		return
	}
	now := time.Now()
	for _, a := range starts {
		l.cfg.Trace.Tell(trace.Span{Name: "decide", Parent: a.Member.Trace, Began: e.took.began, Ended: e.took.decided})
		l.cfg.Trace.Tell(trace.Span{Name: "store", Parent: a.Member.Trace, Began: e.took.decided, Ended: now})
	}
}
