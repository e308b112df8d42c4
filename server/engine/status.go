package engine

import (
	"bytes"
	"time"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/store"
)

// addStatus adds the status when it differs, and warnings. What no member waits for
// (status, warnings, marks, history) is written with the next action, or alone when it has
// waited for StatusDelay: a thousand members that become ready in a second are not
// a thousand writes. Nor does each of a hundred starts in a row carry the status,
// which has a row for each member: one in StatusDelay does.
func (l *leader) addStatus(v cache.View, w plan.World, p plan.Plan, events *eventLog, e *evaluation) {
	ref, mem, now := e.ref, e.mem, e.now
	var d decision
	stored, _ := v.Status(ref)
	value := store.Encode(p.Status)
	if !bytes.Equal(value, store.Encode(stored)) {
		d.seen(v, store.StatusKey(ref))
		d.Then = append(d.Then, store.Put(store.StatusKey(ref), value))
	}
	causes := append(rolloutEvents(ref, p, now), warnings(ref, p, now)...)
	mem.recurrences.observe(causes, events.stored)
	events.recount(&d, causes, mem.recurrences.due)
	events.write(&d, causes)
	delay := l.statusDelay(len(w.Slots))
	if len(d.Then) > 0 && urgent(p) && now.Sub(mem.statusAt) < delay {
		mem.statusDue = mem.statusAt.Add(2 * delay) // alone only if no action takes it before
		e.wakeWithin(mem.statusDue.Sub(now))
		return
	}
	if len(d.Then) > 0 {
		e.decisions = append(e.decisions, d)
	}
	if len(e.decisions) > 0 && !urgent(p) {
		if mem.statusDue.IsZero() {
			mem.statusDue = now.Add(delay)
		}
		if now.Before(mem.statusDue) {
			e.wakeWithin(mem.statusDue.Sub(now))
			e.decisions = nil
			return
		}
	}
	mem.statusDue = time.Time{}
	if len(d.Then) > 0 {
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

// statusDelay grows with the set: its status is larger and changes more often.
func (l *leader) statusDelay(members int) time.Duration {
	return min(l.cfg.StatusDelay*time.Duration(1+members/tableSize), 10*l.cfg.StatusDelay)
}
