package engine

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// tableSize is up to how many members a set's stored status has a row for each;
// Explain makes the rows of larger ones.
const tableSize = 100

// evaluation is what came of looking at one set at one revision.
type evaluation struct {
	ref spec.SetRef
	mem *setMemory
	now time.Time

	setGone   bool            // there is no such set
	postponed bool            // the cache does not show the last commit yet; its event starts another
	shared    []store.Compare // of every transaction
	decisions []decision      // to be written, in this order
	wake      time.Duration   // until the next evaluation, though nothing changed; 0: none
	blocked   []plan.Blocked
	avoiding  bool // lives that begin may keep those of other sets away
	err       error
	took      took
}

// reconcile evaluates a set at one revision and writes what was decided.
func (l *leader) reconcile(ctx context.Context, ref spec.SetRef) {
	began := time.Now()
	mem, now := l.remembered(ref), l.cfg.Now()
	var e evaluation
	l.cfg.Cache.Look(func(v cache.View) { e = l.evaluate(v, ref, mem, now) })
	if !e.postponed && !e.setGone {
		l.meter.decided(ref, e.blocked, time.Since(began))
		l.placement.observe(ref, e.blocked)
	}
	switch {
	case e.setGone:
		l.forget(ref)
		return
	case e.err != nil:
		l.log.Error("decision not written", "set", ref.String(), "err", e.err)
		l.retryLater(ref, mem)
		return
	case e.wake > 0:
		l.wakeAt(ref, now.Add(e.wake))
	}
	if len(e.decisions) > 0 {
		e.took = took{began, time.Now()}
		l.commit(ctx, &e)
	}
}

// evaluate decides at one revision; nothing in it blocks.
func (l *leader) evaluate(v cache.View, ref spec.SetRef, mem *setMemory, now time.Time) evaluation {
	l.takeChanges(v)
	e := evaluation{ref: ref, mem: mem, now: now}
	if v.Rev() < mem.notBefore {
		e.postponed = true
		return e
	}
	set := cache.OfSet(v, ref)
	w := set.World()
	w.Awaited, w.AwaitFor = l.coldStart.missing(v, now, l.cfg.Cold)
	if w.Set == nil {
		w.Slots = set.Slots()
		l.evaluateRemoved(v, w, &e)
		return e
	}
	if l.placement.mustWait(ref, v.Rev(), &w) {
		e.postponed = true
		return e
	}
	rests := mem.statusRests(now, l.statusDelay(set.Identities()))
	w.Table = !rests && set.Identities() <= tableSize && w.Set.Replicas() <= tableSize
	w.VolumeID, w.Now = l.cfg.VolumeID, asStored(now)
	w.Nodes = l.withSilence(v, w.Nodes, now)
	w = mem.members.in(set, w)
	w.Free = l.pool.candidates(v, addressesWanted(w), now)
	w.Rest = mem.backoff.waits(func(id spec.Identity) *records.Report { return set.Slot(id.Ordinal).Report }, now)
	w.MoveRest = mem.moveRests.waits(now)
	w.Outages = mem.outages.measure(now)
	w.Reached, w.Standstill = mem.stall.reached, mem.stall.measure(now)
	p := l.cfg.Next(w)
	if p.Unfold {
		w = whole(set, w)
		p = l.cfg.Next(w)
	}
	mem.stall.observe(p, now)
	e.avoiding = avoids(&w)
	mem.outages = mem.outages.observe(p.Outages, now)
	e.wake, e.blocked = p.Wake, p.Blocked
	l.pool.wakeWhenRested(&e, now)
	if v.Hold() != nil {
		return e // no transaction would pass
	}
	l.traceStarts(&p, w.Set)
	e.shared = l.shared(v, ref)
	e.decisions, e.err = decisions(v, ref, p, now)
	if e.err != nil {
		return e
	}
	events := newEventLog(v, ref, l.lease.id)
	for i := range e.decisions {
		events.write(&e.decisions[i], actionEvents(ref, &e.decisions[i], now))
	}
	if !removes(p) {
		l.addHistory(v, w, &e)
		l.addStatus(v, w, p, events, &e)
	}
	return e
}

// shared are the guards of every transaction about a set.
func (l *leader) shared(v cache.View, ref spec.SetRef) []store.Compare {
	return []store.Compare{
		l.term.Compare(), v.Seen(store.EpochKey), store.NotHeld(), v.Seen(store.CountKey), v.Seen(store.FormatKey), v.Seen(store.SetKey(ref)),
	}
}

// evaluateRemoved decides about what a removed set has left behind.
func (l *leader) evaluateRemoved(v cache.View, w plan.World, e *evaluation) {
	switch {
	case len(w.Slots) == 0 && w.Claim == nil:
		e.setGone = true
	case v.Hold() != nil:
		e.postponed = true // until the hold ends, which starts another evaluation
	case len(w.Awaited) > 0:
		e.postponed, e.wake = true, w.AwaitFor
	default:
		e.shared = l.shared(v, e.ref)
		e.decisions, e.err = decisions(v, e.ref, l.cfg.Next(w), e.now)
		e.setGone = e.err == nil && len(e.decisions) == 0
	}
}

func removes(p plan.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a plan.Action) bool { _, is := a.(plan.RemoveSet); return is })
}

// addHistory puts what became of the set before the actions. Lives that started are recorded only
// after a while when there is nothing else to write: with the next action, or with their being
// ready, they cost no revision of their own.
func (l *leader) addHistory(v cache.View, w plan.World, e *evaluation) {
	d, startsOnly, any := historyDecision(v, w, e.now, &e.mem.history)
	mem := e.mem
	switch {
	case !startsOnly || len(e.decisions) > 0:
		mem.historyDue = time.Time{}
	case mem.historyDue.IsZero():
		mem.historyDue = e.now.Add(startsDelay * l.cfg.StatusDelay)
	}
	switch {
	case e.now.Before(mem.historyDue):
		e.wakeWithin(mem.historyDue.Sub(e.now))
	case any:
		e.decisions = slices.Insert(e.decisions, 0, d)
	}
}

// wakeWithin has the set evaluated again after d at the latest.
func (e *evaluation) wakeWithin(d time.Duration) {
	if e.wake == 0 || d < e.wake {
		e.wake = d
	}
}

// statusRests: the status was written less than a delay ago, and is left as it is.
func (m *setMemory) statusRests(now time.Time, delay time.Duration) bool {
	return now.Sub(m.statusAt) < delay
}

// addStatus adds the status when it differs, and warnings. What no member waits for (status,
// warnings, marks, history) is written with the next action, or alone after StatusDelay: a
// thousand members that become ready in a second are not a thousand writes. Nor does each of a
// hundred starts in a row carry the status: one in StatusDelay does, and in between it is not looked
// at, nor made with a row for each member.
func (l *leader) addStatus(v cache.View, w plan.World, p plan.Plan, events *eventLog, e *evaluation) {
	ref, mem, now := e.ref, e.mem, e.now
	delay := l.statusDelay(cache.OfSet(v, ref).Identities())
	causes := append(rolloutEvents(ref, p, now), warnings(ref, p, now)...)
	mem.recurrences.observe(causes, events.set.Event)
	if mem.statusRests(now, delay) {
		switch {
		case urgent(p):
			mem.statusDue = mem.statusAt.Add(2 * delay) // alone only if no action takes it before
			e.wakeWithin(mem.statusDue.Sub(now))
		case len(e.decisions) > 0:
			e.waitForStatus(delay)
		default:
			e.wakeWithin(mem.statusAt.Add(delay).Sub(now)) // when it is looked at
		}
		return
	}
	var d decision
	stored := v.Status(ref)
	value := store.Encode(p.Status)
	if !bytes.Equal(value, store.Encode(stored)) {
		d.seen(v, store.StatusKey(ref))
		d.Then = append(d.Then, store.Put(store.StatusKey(ref), value))
	}
	events.recount(&d, causes, mem.recurrences.due)
	events.write(&d, causes)
	if len(d.Then) > 0 {
		e.decisions = append(e.decisions, d)
	}
	if len(e.decisions) > 0 && !urgent(p) && e.waitForStatus(delay) {
		return
	}
	mem.statusDue = time.Time{}
	if len(d.Then) > 0 {
		mem.statusAt = now
	}
}

// waitForStatus puts decisions off that nobody waits for, until a delay after the first of them; false: it is over.
func (e *evaluation) waitForStatus(delay time.Duration) bool {
	if e.mem.statusDue.IsZero() {
		e.mem.statusDue = e.now.Add(delay)
	}
	if !e.now.Before(e.mem.statusDue) {
		return false
	}
	e.wakeWithin(e.mem.statusDue.Sub(e.now))
	e.decisions = nil
	return true
}

// urgent: the plan does something that a member waits for.
func urgent(p plan.Plan) bool {
	for _, a := range p.Actions {
		switch a.(type) {
		case plan.MarkReady, plan.MarkBootstrapped, plan.ForgetBootstrapped, plan.PruneRevision:
		default:
			return true
		}
	}
	return false
}

// statusDelay grows with the set: its status is larger and changes more often.
func (l *leader) statusDelay(members int) time.Duration {
	return min(l.cfg.StatusDelay*time.Duration(1+members/tableSize), 10*l.cfg.StatusDelay)
}
