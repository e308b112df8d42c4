package engine

import (
	"context"
	"errors"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// The pauses after a decision that could not be written, doubling.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 5 * time.Second
)

// commit writes the decisions and notes what became of them. Whatever failed is
// decided again: a conflict is news, an unknown outcome shows in the next evaluation.
func (l *leader) commit(ctx context.Context, e *evaluation) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	txns := make([]store.Txn, len(e.decisions))
	for i, d := range e.decisions {
		txns[i] = d.Txn
	}
	var failure error
	began := time.Now()
	outcomes := store.CommitAll(ctx, l.cfg.Store, e.shared, txns)
	l.meter.committed(time.Since(began))
	for i, o := range outcomes {
		if o.Err == nil {
			e.mem.notBefore = max(e.mem.notBefore, o.Rev)
			l.committed(e, &e.decisions[i], o.Rev)
			continue
		}
		if failure == nil || !errors.Is(o.Err, store.ErrConflict) {
			failure = o.Err
		}
	}
	if failure == nil {
		e.mem.failures = 0
		return
	}
	if errors.Is(failure, store.ErrLeaseGone) {
		l.lease = eventLease{}
	}
	if e.mem.failures == 0 && !errors.Is(failure, store.ErrConflict) && !errors.Is(failure, store.ErrLeaseGone) && ctx.Err() == nil {
		l.log.Warn("decision not written, trying again", "set", e.ref.String(), "err", failure)
	}
	l.retryLater(e.ref, e.mem)
}

// committed notes a decision that was written.
func (l *leader) committed(e *evaluation, d *decision, rev store.Rev) {
	starts, now := d.starts(), l.cfg.Now()
	if d.freed != nil {
		l.pool.startQuarantine(d.freed, now)
	}
	if _, grows := d.action.(plan.ChangeInPlace); grows || len(starts) > 0 {
		l.placement.began(rev, e.avoiding && len(starts) > 0)
	}
	l.traceStarted(e, starts)
	for _, a := range starts {
		if a.NewAddress {
			l.pool.assigned[a.Member.Address] = rev
		}
		if a.Member.Reason == records.ReasonReplace {
			e.mem.backoff.replaced(a.Member.ID, now)
		}
		l.log.Info("member assigned", "member", a.Member.ID.String(), "token", a.Member.Token.String(), "node", string(a.Member.Node), "reason", string(a.Member.Reason))
	}
	switch a := d.action.(type) {
	case plan.Stop:
		l.log.Info("stop requested", "member", a.ID.String(), "token", a.Token.String(), "reason", string(a.Reason))
	case plan.Forget:
		l.log.Info("member record removed", "member", a.ID.String(), "token", a.Token.String())
	case plan.FlipMove:
		l.log.Info("volumes moved", "member", a.Move.ID.String(), "from", string(a.Move.From.Node), "to", string(a.Move.To.Node))
	case plan.BackMove:
		l.log.Info("volumes went back", "member", a.Move.ID.String(), "from", string(a.Move.To.Node), "to", string(a.Move.From.Node))
	case plan.ForwardMove:
		l.log.Info("copies of a move that went back are the volumes", "member", a.Move.ID.String(), "node", string(a.Move.To.Node))
	case plan.EndMove:
		if a.Move.Phase == moves.MoveAborting {
			e.mem.moveRests = e.mem.moveRests.aborted(a.Move.ID, now, a.Move.Why)
		}
	case plan.RemoveSet:
		l.log.Info("set removed", "set", e.ref.String())
	}
}

// retryLater evaluates the set again after a while that doubles with each failure.
func (l *leader) retryLater(ref spec.SetRef, mem *setMemory) {
	mem.failures++
	l.wakeAt(ref, l.cfg.Now().Add(backoff.After(firstPause, lastPause, mem.failures)))
}

// completeCount records that the count of a restore is complete, once each node has reported what it
// runs, or was excused. A node that joins meanwhile writes the count, and a server that reports
// which nodes it remembers writes the key of hellos: both are compared.
func (l *leader) completeCount(ctx context.Context) {
	var t store.Txn
	l.cfg.Cache.Look(func(v cache.View) {
		c := v.Count()
		if !c.Open(v.Epoch()) || len(proof.MissingNodes(v.Epoch(), c, v.Nodes())) > 0 {
			return
		}
		done := *c
		done.Done = true
		t = store.Txn{
			If: []store.Compare{
				l.term.Compare(), v.Seen(store.EpochKey), store.NotHeld(), v.Seen(store.CountKey),
				v.Seen(store.HellosKey),
			},
			Then: []store.Op{store.Put(store.CountKey, store.Encode(done))},
		}
		for _, m := range v.Memories() { // they are in the count now, and of no other use
			t.If = append(t.If, store.Seen(store.KnownKey(m.Server), m.Rev))
			t.Then = append(t.Then, store.Del(store.KnownKey(m.Server)))
		}
	})
	if len(t.Then) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch _, err := l.cfg.Store.Commit(ctx, t); {
	case err == nil:
		l.log.Info("restore completed: every node reported or was excused")
	case !errors.Is(err, store.ErrConflict): // a conflict is news, which starts another evaluation
		l.wakeAt(spec.SetRef{}, l.cfg.Now().Add(lastPause)) // no set is meant
	}
}
