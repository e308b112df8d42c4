package engine

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// joinTime bounds the calls to the store of one offer: after it the reports are written by themselves.
const joinTime = 5 * time.Second

// joint is what is decided about one set because of reports that are not stored yet. Reports and
// decisions are one transaction, which is written whole or not at all: no decision is written
// without the reports that it was made with. It compares what either relied on (SAFETY S7), the
// key of a report at the revision before: its new value comes with this very transaction.
//
// Its evaluation has a memory of its own, a copy that takes the place of the set's when the transaction was
// written, and is dropped when not: what was seen of a world that nobody stored counts for nothing (SAFETY S18).
type joint struct {
	evaluation
	reports []int // indexes of those offered
	txn     store.Txn
	whole   bool // txn has all that was decided
}

// joinedRest is how long a set is left alone after a transaction with reports that had all that was
// decided: mostly the next report comes before, and is evaluated with what is stored by then.
const joinedRest = 5 * time.Millisecond

// join decides about the sets of reports as if these were stored, and stores them with what was
// decided, if anything was. It returns the revisions of those that were stored; 0: it was not, or that is not known.
func (l *leader) join(ctx context.Context, reports []cache.JudgedReport) []store.Rev {
	stored := make([]store.Rev, len(reports))
	began, now, lastStart, lastAvoid := time.Now(), l.cfg.Now(), l.placement.lastStart, l.placement.lastAvoid
	var joints []joint
	l.cfg.Cache.Look(func(v cache.View) { joints = l.joints(v, reports, now) })
	if len(joints) == 0 {
		return stored
	}
	txns := make([]store.Txn, len(joints))
	for i := range joints {
		txns[i] = joints[i].txn
	}
	times := took{began, time.Now()}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	began = time.Now()
	outcomes := store.CommitAll(ctx, l.cfg.Store, nil, txns)
	l.meter.committed(time.Since(began))
	l.placement.lastStart, l.placement.lastAvoid = lastStart, lastAvoid
	for i, o := range outcomes {
		j := &joints[i]
		j.took = times
		l.release(j)
		if o.Err != nil {
			l.notJoined(j, o.Err)
			continue
		}
		for _, k := range j.reports {
			stored[k] = o.Rev
		}
		l.meter.decided(j.ref, j.blocked, times.decided.Sub(times.began))
		l.joined(j, now, o.Rev)
	}
	return stored
}

// joined takes over what was decided with reports, as of any evaluation that was written.
func (l *leader) joined(j *joint, now time.Time, rev store.Rev) {
	l.sets[j.ref] = j.mem
	j.mem.failures, j.mem.notBefore = 0, max(j.mem.notBefore, rev)
	if j.whole {
		j.mem.joined = rev
	}
	l.placement.observe(j.ref, j.blocked)
	for i := range j.decisions {
		l.committed(&j.evaluation, &j.decisions[i], rev)
	}
	if j.wake > 0 {
		l.wakeAt(j.ref, now.Add(j.wake))
	}
}

// notJoined drops what was decided with reports that were not stored with it; the set is evaluated
// again as the cache shows it.
func (l *leader) notJoined(j *joint, err error) {
	if errors.Is(err, store.ErrLeaseGone) {
		l.lease = eventLease{}
	}
	l.enqueue(j.ref)
}

// joints evaluates the sets of reports at one revision, each with its reports laid over it, and
// returns those of which something is to be written.
func (l *leader) joints(v cache.View, reports []cache.JudgedReport, now time.Time) (list []joint) {
	if missing, _ := l.coldStart.missing(v, now, l.cfg.Cold); len(missing) > 0 || v.Hold() != nil || v.Count().Open(v.Epoch()) {
		return nil
	}
	bySet := map[spec.SetRef][]int{}
	var refs []spec.SetRef
	for i := range reports {
		ref := reports[i].Report.ID.Ref()
		if bySet[ref] == nil {
			refs = append(refs, ref)
		}
		bySet[ref] = append(bySet[ref], i)
	}
	for _, ref := range refs {
		j := joint{reports: bySet[ref]}
		of := make([]cache.JudgedReport, len(j.reports))
		for i, k := range j.reports {
			of[i] = reports[k]
		}
		if l.decideWith(v, ref, of, now, &j) {
			l.reserve(v, &j)
			list = append(list, j)
		}
	}
	return list
}

// decideWith evaluates a set with reports laid over it; false: nothing is to be written with them.
func (l *leader) decideWith(v cache.View, ref spec.SetRef, reports []cache.JudgedReport, now time.Time, j *joint) bool {
	if len(reports) > mostJoined || slices.ContainsFunc(reports, func(r cache.JudgedReport) bool { return !r.Holds(v) }) {
		return false
	}
	if onlyMarks(v, ref, reports) {
		return false
	}
	l.takeChanges(v) // before the memory is copied
	mem := l.remembered(ref).clone()
	noteReports := func() {
		for i := range reports {
			mem.note(reports[i].Report.ID.Ordinal)
		}
	}
	noteReports()
	j.evaluation = l.evaluate(cache.WithReports(v, reports), ref, mem, now)
	noteReports() // whatever becomes of them
	if j.postponed || j.err != nil || len(j.decisions) == 0 {
		return false
	}
	decided := len(j.decisions)
	j.txn, j.decisions = j.together(reports)
	j.whole = len(j.decisions) == decided
	return len(j.decisions) > 0
}

// onlyMarks: of these reports nothing but marks can follow, for members of a Parallel set become
// ready that is not updated. To evaluate it twice would be in vain.
func onlyMarks(v cache.View, ref spec.SetRef, reports []cache.JudgedReport) bool {
	set, status := v.Set(ref), v.Status(ref)
	if set == nil || set.Spec.PodManagementPolicy != spec.Parallel || status == nil || status.CurrentRevision != status.UpdateRevision {
		return false
	}
	return !slices.ContainsFunc(reports, func(r cache.JudgedReport) bool { return !r.Report.Ready })
}

// together is the transaction of reports and of those decisions that fit beside them; the others are
// decided again. A report is not put where its life's record goes: Start and Forget remove
// the report with it.
func (e *evaluation) together(reports []cache.JudgedReport) (store.Txn, []decision) {
	compares := slices.Clone(e.shared)
	for i := range reports {
		compares = append(compares, reports[i].If...)
	}
	units := make([]store.Txn, len(e.decisions))
	for i := range e.decisions {
		units[i] = e.decisions[i].Txn
	}
	t, fitting := store.Together(compares, units)
	decisions := make([]decision, 0, len(fitting))
	for _, i := range fitting {
		decisions = append(decisions, e.decisions[i])
	}
	for i := range reports {
		r := reports[i].Report
		if !slices.ContainsFunc(decisions, func(d decision) bool { return d.endsRecordOf(r.ID) }) {
			t.Then = append(t.Then, store.PutRecord(store.ReportKey(r.ID), *r))
		}
	}
	return t, decisions
}

// endsRecordOf: the record of the identity's present life goes with the decision.
func (d *decision) endsRecordOf(id spec.Identity) bool {
	switch a := d.action.(type) {
	case plan.Start:
		return a.Member.ID == id
	case plan.Forget:
		return a.ID == id
	}
	return slices.ContainsFunc(d.alsoStarts, func(a plan.Start) bool { return a.Member.ID == id })
}

// starts are those that the decision is or was joined with.
func (d *decision) starts() []plan.Start {
	if a, ok := d.action.(plan.Start); ok {
		return []plan.Start{a}
	}
	return d.alsoStarts
}

// notCommitted is a revision that no cache shows.
const notCommitted = store.Rev(math.MaxInt64)

// reserve keeps for j what it is about to use, until release: the sets after it in the same offer are
// evaluated at the same revision.
func (l *leader) reserve(v cache.View, j *joint) {
	for i := range j.decisions {
		for _, a := range j.decisions[i].starts() {
			l.placement.began(notCommitted, j.avoiding)
			if a.NewAddress {
				l.pool.assigned[a.Member.Address] = notCommitted
			}
		}
	}
}

// release gives back what was reserved for j.
func (l *leader) release(j *joint) {
	for i := range j.decisions {
		for _, a := range j.decisions[i].starts() {
			if l.pool.assigned[a.Member.Address] == notCommitted {
				delete(l.pool.assigned, a.Member.Address)
			}
		}
	}
}

// clone shares nothing that changes with m but what the store's records say.
func (m *setMemory) clone() *setMemory {
	c := *m
	c.backoff, c.recurrences.due = maps.Clone(m.backoff), maps.Clone(m.recurrences.due)
	c.history.moved.ordinals, c.history.moved.nodes, c.history.open = maps.Clone(m.history.moved.ordinals), maps.Clone(m.history.moved.nodes), maps.Clone(m.history.open)
	return &c
}
