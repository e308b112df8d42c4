package dispatch

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// decide answers a report that need not be stored, or returns it as it is to be.
func (c *reportWriter) decide(p pendingReport, m *records.Member, last *records.Report, minReady time.Duration) (pendingReport, bool) {
	p.report.Session = p.se.id
	r, v := judge(p.report, p.se.machine, m, last, minReady)
	p.report, p.minor, p.first = r, isMinor(r, m, last), firstReady(&r, m, last)
	if v != keep {
		p.se.out.addStored(p.lifeID(), r.Seq, v == stale)
	}
	return p, v == keep
}

// commit writes units in as few transactions as may be, and returns those that
// the store could not take now.
func (c *reportWriter) commit(ctx context.Context, units []pendingReport) (left []pendingReport) {
	txns := make([]store.Txn, len(units))
	for i, p := range units {
		txns[i] = p.txn()
	}
	write, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	for i, o := range store.CommitAll(write, c.store, nil, txns) {
		switch p := units[i]; {
		case o.Err == nil:
			c.stored(p, o.Rev)
		case ctx.Err() != nil:
			return left
		case errors.Is(o.Err, store.ErrConflict), errors.Is(o.Err, store.ErrUnknown):
			left = append(left, c.retry(ctx, p)...)
		case errors.Is(o.Err, store.ErrTooLarge):
			c.log.Error("report dropped", "node", p.se.node, "member", p.report.ID.String(), "err", o.Err)
		default:
			left = append(left, p)
		}
	}
	return left
}

// txn writes the report, guarded by its member, by the report before it, for a write whose outcome was unknown may be done
// later than the next one, and by the session key as this session wrote it: its create-revision would not change when another session
// takes the key over by a put.
func (p pendingReport) txn() store.Txn {
	return store.Txn{
		If: []store.Compare{
			store.Seen(store.SessionKey(p.se.node), p.se.rev),
			store.Seen(store.MemberKey(p.report.ID), p.member),
			store.Seen(store.ReportKey(p.report.ID), p.old),
		},
		Then: []store.Op{store.PutRecord(store.ReportKey(p.report.ID), p.report)},
	}
}

func (c *reportWriter) stored(p pendingReport, rev store.Rev) {
	c.rev = max(c.rev, rev)
	c.writes.charge(p.se.node, len(store.Encode(p.report)))
	p.se.out.addStored(p.lifeID(), p.report.Seq, false)
	c.traceReady(p)
}

// retry reads what one report depends on from the store itself, and decides again:
// the session is over, the life is, it was stored after all, or it is tried again.
func (c *reportWriter) retry(ctx context.Context, p pendingReport) (left []pendingReport) {
	id := p.report.ID
	var minimum time.Duration
	c.cache.Look(func(v cache.View) { minimum = minReady(v, id) })
	for range attempts {
		read, cancel := context.WithTimeout(ctx, storeTime)
		_, kvs, err := c.store.Get(read, store.SessionKey(p.se.node), store.MemberKey(id), store.ReportKey(id))
		cancel()
		if err != nil {
			return []pendingReport{p}
		}
		if !p.se.owns(kvs[store.SessionKey(p.se.node)]) {
			p.se.cancel(errSessionOver)
			return nil // the node reports all again in its next session
		}
		last, _ := store.DecodeIn[records.Report](kvs, store.ReportKey(id)) // an unreadable one is written over
		member, err := store.DecodeIn[records.Member](kvs, store.MemberKey(id))
		if err != nil {
			c.log.Error("report dropped", "node", p.se.node, "err", err)
			return nil
		}
		p.member, p.old = kvs[store.MemberKey(id)].Mod, kvs[store.ReportKey(id)].Mod
		next, ok := c.decide(p, member, last, minimum)
		if !ok {
			return nil
		}
		write, cancel := context.WithTimeout(ctx, storeTime)
		rev, err := c.store.Commit(write, next.txn())
		cancel()
		if err == nil {
			c.stored(next, rev)
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return []pendingReport{p}
		}
	}
	return []pendingReport{p}
}

// verdict is what becomes of a report.
type verdict int

const (
	// keep: it says something new and is stored.
	keep verdict = iota
	// known: the store has it already, or something newer of this life.
	known
	// stale: it is of a life that the store does not know (any more).
	stale
)

// messageBytes bounds what a report says in words.
const messageBytes = 4096

// judge decides about r, which came from the machine at. m and last are
// the store's present life and report of the identity, nil when absent. It returns
// the report as it is to be stored: the phase never goes back, and a life that is
// over stays so (SAFETY S7). What another session reported is stored again, for only the reports of
// the node's present one count (SAFETY S15).
func judge(r records.Report, at machine, m *records.Member, last *records.Report, minReady time.Duration) (records.Report, verdict) {
	if m == nil || m.Token != r.Token || !at.has(m) {
		return r, stale
	}
	r = sanitized(r)
	r.Node = at.node
	if r.Phase.Over() {
		r.Ready = false
	}
	if r.Phase.Rank() == 0 {
		return r, known // of a newer agent; nothing here can use it
	}
	if last == nil || last.Token != r.Token {
		return r, keep
	}
	again := last.Session != r.Session
	if last.Phase.Over() || !r.Phase.Over() && r.Seq < last.Seq {
		return r, known // the end of a life is true whenever it was said
	}
	if r.Phase.Rank() < last.Phase.Rank() {
		r.Phase = last.Phase
	}
	r.ReadyOnce = r.ReadyOnce || last.Ready || last.ReadyOnce
	if !again && essenceOf(*last, minReady) == essenceOf(r, minReady) && reflect.DeepEqual(last.Containers, r.Containers) {
		return r, known
	}
	return r, keep
}

// essence is what of a report a decision or a user needs, beside its containers.
// ReadyFor counts only by whether it makes the member available.
type essence struct {
	phase               records.Phase
	ready, once, enough bool
	cause               causes.Cause
	message             string
	claim               records.Claim
	hook                hooks.HookResult
	change              inplace.ChangeResult
}

func essenceOf(r records.Report, minReady time.Duration) essence {
	return essence{r.Phase, r.Ready, r.Ready || r.ReadyOnce, r.ReadyFor >= minReady, r.Cause, r.Message, r.Claim, r.Hook, r.Change}
}
