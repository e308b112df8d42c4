package engine

import (
	"bytes"
	"context"
	"errors"
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

// The pauses after a turn that failed, doubling.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 5 * time.Second
)

// turn is one look at one set, and what is to be written for it.
type turn struct {
	gone    bool // there is no such set
	early   bool // the cache does not show the last commit yet; its event wakes us
	shared  []store.Guard
	units   []unit
	wake    time.Duration
	blocked []plan.Blocked
	err     error
}

// turn looks at a set at one revision, plans, and commits.
func (l *leader) turn(ctx context.Context, ref spec.SetRef) {
	began := time.Now()
	mem, now := l.memory(ref), l.cfg.Now()
	var t turn
	l.cfg.Cache.Look(func(v cache.View) { t = l.look(v, ref, mem, now) })
	if !t.early && !t.gone {
		l.meter.decided(ref, t.blocked, time.Since(began))
		l.place.note(ref, t.blocked)
	}
	switch {
	case t.gone:
		l.forget(ref)
		return
	case t.err != nil:
		l.log.Error("decision not written", "set", ref.String(), "err", t.err)
		l.pause(ref, mem)
		return
	case t.wake > 0:
		l.wake(ref, now.Add(t.wake))
	}
	if len(t.units) > 0 {
		l.commit(ctx, ref, mem, t)
	}
}

// look decides at one revision; nothing in it blocks.
func (l *leader) look(v cache.View, ref spec.SetRef, mem *memory, now time.Time) (t turn) {
	if v.Rev() < mem.notBefore {
		return turn{early: true}
	}
	w := v.World(ref)
	w.Awaited, w.AwaitFor = l.cold.awaited(v, now, l.cfg.Cold)
	if w.Set == nil {
		return l.lookAfter(v, w, now)
	}
	if l.place.waits(ref, v.Rev(), &w) {
		return turn{early: true}
	}
	w.Table = len(w.Slots) <= tableSize && w.Set.Replicas() <= tableSize
	w.VolumeID, w.Now = l.cfg.VolumeID, now.UTC()
	w.Free, w.Nodes = l.pool.free(v, missing(w), now), l.nodes(v, w.Nodes, now)
	w.Rest = mem.trials.rests(w, now)
	w.Outages = mem.outages.measure(now)
	w.Reached, w.Standstill = mem.standstill.reached, mem.standstill.measure(now)
	p := l.cfg.Next(w)
	mem.standstill.note(p, now)
	mem.outages.note(p.Outages, now)
	t.wake, t.blocked = p.Wake, p.Blocked
	l.pool.await(&t, now)
	if v.Hold() != nil {
		return t // no transaction would pass
	}
	t.shared = l.shared(v, ref)
	if t.units, t.err = units(v, ref, p, now); t.err != nil {
		return t
	}
	events := newLedger(v, ref, l.lease.id)
	for i := range t.units {
		events.write(&t.units[i], notes(ref, &t.units[i], now))
	}
	if removing(p) {
		return t
	}
	l.tell(v, w, mem, &t, now)
	l.report(v, w, p, mem, events, &t, now)
	return t
}

// shared are the guards of every transaction about a set.
func (l *leader) shared(v cache.View, ref spec.SetRef) []store.Guard {
	return []store.Guard{
		l.term.Guard(), v.Seen(store.EpochKey), store.NotHeld(), v.Seen(store.CountKey), v.Seen(store.SetKey(ref)),
	}
}

// lookAfter decides about what a set has left behind that is gone.
func (l *leader) lookAfter(v cache.View, w plan.World, now time.Time) (t turn) {
	if len(w.Slots) == 0 {
		return turn{gone: true}
	}
	if v.Hold() != nil {
		return turn{early: true} // its end wakes us
	}
	if len(w.Awaited) > 0 {
		return turn{early: true, wake: w.AwaitFor}
	}
	ref := w.Slots[0].ID.Ref()
	t.shared = l.shared(v, ref)
	t.units, t.err = units(v, ref, l.cfg.Next(w), now)
	t.gone = t.err == nil && len(t.units) == 0
	return t
}

func removing(p plan.Plan) bool {
	for _, a := range p.Actions {
		if _, ok := a.(plan.RemoveSet); ok {
			return true
		}
	}
	return false
}

// tell puts what became of the set before the actions. That lives began, and nothing
// else, is told alone only after a while: with the next action, or that they are ready,
// it costs no revision of its own.
func (l *leader) tell(v cache.View, w plan.World, mem *memory, t *turn, now time.Time) {
	u, begins, ok := telling(v, w.Set.Ref, w, now)
	alone := begins && len(t.units) == 0
	switch {
	case !alone:
		mem.tellDue = time.Time{}
	case mem.tellDue.IsZero():
		mem.tellDue = now.Add(beginDelay * l.cfg.StatusDelay)
	}
	switch {
	case now.Before(mem.tellDue):
		t.sooner(mem.tellDue.Sub(now))
	case ok:
		t.units = slices.Insert(t.units, 0, u)
	}
}

// report adds the status when it differs, and warnings. What nobody waits for
// (status, warnings, marks, history) is written with the next action, or alone when it has
// waited for StatusDelay: a thousand members that become ready in a second are not
// a thousand writes. Nor does each of a hundred starts in a row carry the status,
// which has a row for each member: one in StatusDelay does.
func (l *leader) report(v cache.View, w plan.World, p plan.Plan, mem *memory, events *ledger, t *turn, now time.Time) {
	ref := w.Set.Ref
	var u unit
	stored, _ := v.Status(ref)
	value := store.Encode(p.Status)
	if !bytes.Equal(value, store.Encode(stored)) {
		u.seen(v, store.StatusKey(ref))
		u.Then = append(u.Then, store.Put(store.StatusKey(ref), value))
	}
	causes := append(rolloutNotes(ref, p, now), warnings(ref, p, now)...)
	mem.repeats.look(causes, events.old)
	events.raise(&u, causes, mem.repeats.due)
	events.write(&u, causes)
	delay := l.statusDelay(len(w.Slots))
	if len(u.Then) > 0 && urgent(p) && now.Sub(mem.statusAt) < delay {
		mem.statusDue = mem.statusAt.Add(2 * delay) // alone only if no action takes it before
		t.sooner(mem.statusDue.Sub(now))
		return
	}
	if len(u.Then) > 0 {
		t.units = append(t.units, u)
	}
	if len(t.units) > 0 && !urgent(p) {
		if mem.statusDue.IsZero() {
			mem.statusDue = now.Add(delay)
		}
		if now.Before(mem.statusDue) {
			t.sooner(mem.statusDue.Sub(now))
			t.units = nil
			return
		}
	}
	mem.statusDue = time.Time{}
	if len(u.Then) > 0 {
		mem.statusAt = now
	}
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

func (t *turn) sooner(d time.Duration) {
	if t.wake == 0 || d < t.wake {
		t.wake = d
	}
}

// statusDelay grows with the set: its status is larger and changes more often.
func (l *leader) statusDelay(members int) time.Duration {
	return min(l.cfg.StatusDelay*time.Duration(1+members/tableSize), 10*l.cfg.StatusDelay)
}

// commit writes the units and notes what became of them. Whatever failed is
// decided anew: a conflict is news, an unknown outcome shows in the next look.
func (l *leader) commit(ctx context.Context, ref spec.SetRef, mem *memory, t turn) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	txns := make([]store.Txn, len(t.units))
	for i, u := range t.units {
		txns[i] = u.Txn
	}
	var failure error
	began := time.Now()
	outcomes := store.CommitAll(ctx, l.cfg.Store, t.shared, txns)
	l.meter.committed(time.Since(began))
	for i, o := range outcomes {
		if o.Err == nil {
			mem.notBefore = max(mem.notBefore, o.Rev)
			l.done(ref, mem, &t.units[i], o.Rev)
			continue
		}
		if failure == nil || !errors.Is(o.Err, store.ErrConflict) {
			failure = o.Err
		}
	}
	if failure == nil {
		mem.failed = 0
		return
	}
	if errors.Is(failure, store.ErrLeaseGone) {
		l.lease = eventLease{}
	}
	if mem.failed == 0 && !errors.Is(failure, store.ErrConflict) && !errors.Is(failure, store.ErrLeaseGone) && ctx.Err() == nil {
		l.log.Warn("decision not written, trying again", "set", ref.String(), "err", failure)
	}
	l.pause(ref, mem)
}

// done notes a committed unit.
func (l *leader) done(ref spec.SetRef, mem *memory, u *unit, rev store.Rev) {
	starts := u.with
	if a, ok := u.action.(plan.Start); ok {
		starts = []plan.Start{a}
	}
	now := l.cfg.Now()
	if u.freed != nil {
		l.pool.see(u.freed, now)
	}
	if len(starts) > 0 {
		l.place.begunAt = max(l.place.begunAt, rev)
	}
	for _, a := range starts {
		if a.NewAddress {
			l.pool.given[a.Member.Address] = rev
		}
		if a.Member.Reason == records.ReasonReplace {
			mem.trials.begun(a.Member.ID, now)
		}
		l.log.Info("member assigned", "member", a.Member.ID.String(), "token", a.Member.Token.String(), "node", string(a.Member.Node), "reason", string(a.Member.Reason))
	}
	switch a := u.action.(type) {
	case plan.Stop:
		l.log.Info("stop requested", "member", a.ID.String(), "token", a.Token.String(), "reason", string(a.Reason))
	case plan.Forget:
		l.log.Info("member record removed", "member", a.ID.String(), "token", a.Token.String())
	case plan.RemoveSet:
		l.log.Info("set removed", "set", ref.String())
	}
}

// pause looks at the set again after a while that doubles with each failure.
func (l *leader) pause(ref spec.SetRef, mem *memory) {
	mem.failed = min(max(2*mem.failed, firstPause), lastPause)
	l.wake(ref, l.cfg.Now().Add(mem.failed))
}
