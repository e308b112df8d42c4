package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

const (
	eventLife    = 24 * time.Hour // how long an event is kept
	eventRenewal = time.Hour      // a lease serves the events of this time
	maxEvents    = 100            // of one set
	eventsAtOnce = 20             // one evaluation writes no more
)

// namedEvent is an event to be written; its name is made of its cause, so that a cause
// is written once, also by another leader.
type namedEvent struct {
	name  string
	event records.Event
}

// actionEvents are the events of an action; none for those that only mark.
func actionEvents(ref spec.SetRef, d *decision, now time.Time) (list []namedEvent) {
	life := func(kind string, id spec.Identity, token spec.Token, reason, text string) {
		list = append(list, newEvent(ref, fmt.Sprintf("%s-%d-%s", kind, id.Ordinal, token), "Normal", id.MemberName(), reason, text, now))
	}
	volume := func(id spec.Identity, v records.VolumeID, turn int, what, text string) {
		list = append(list, newEvent(ref, fmt.Sprintf("volume-%s-%s-%d", v, what, turn), "Normal", id.MemberName(), "Volume"+what, text, now))
	}
	fate := func(v records.Volume, text string) {
		volume(v.ID, v.UID, v.Turn, string(v.Fate), fmt.Sprintf("volume %s of %s: %s: %s", v.Claim, v.ID.MemberName(), v.Fate, text))
	}
	starts := d.alsoStarts
	switch a := d.action.(type) {
	case plan.Start:
		starts = []plan.Start{a}
	case plan.Stop:
		life("stop", a.ID, a.Token, string(a.Reason), a.Text)
	case plan.ChangeInPlace:
		life(fmt.Sprintf("change-%d.%d", a.Change.ID.Epoch, a.Change.ID.Rev), a.ID, a.Token, string(records.ReasonUpdate), a.Text)
	case plan.OrderHook:
		if a.Text != "" {
			life("hook-"+a.Name(), a.ID, a.Token, "Hook", a.Text)
		}
	case plan.PutJobs:
		if a.Text != "" {
			list = append(list, newEvent(ref, a.Name, a.Type(), "", "Job", a.Text, now))
		}
	case plan.OrderJob:
		if a.Text != "" {
			life("hook-"+(&plan.OrderHook{Hook: a.Hook}).Name(), a.ID, a.Token, "Job", a.Text)
		}
	case plan.Forgotten:
		if a.Text != "" {
			life("forgotten", a.Identity.ID, a.Identity.LastToken, "Forgotten", a.Text)
		}
	case plan.Forget:
		life("gone", a.ID, a.Token, "Gone", a.Text)
	case plan.SetVolumes:
		for _, v := range a.Volumes {
			fate(v, a.Text)
		}
	case plan.RestoreVolume:
		fate(a.Volume, a.Text)
	case plan.LeaveVolume:
		volume(a.Left.ID, a.Left.Volume, 0, "Left", fmt.Sprintf("volume %s of %s on node %s is given up: %s", a.Left.Claim, a.Left.ID.MemberName(), a.Left.Node, a.Text))
	case plan.DropVolume:
		volume(a.ID, a.Volume, a.Turn, "Gone", fmt.Sprintf("volume %s of %s is gone: %s", a.Claim, a.ID.MemberName(), a.Text))
	case plan.VoidRequest:
		volume(a.ID, a.Volume, 0, "RequestVoid", fmt.Sprintf("the request about volume %s of %s was not carried out: %s", a.Claim, a.ID.MemberName(), a.Text))
	}
	list = append(list, moveEvents(ref, d.action, now)...)
	for _, a := range starts {
		life("begin", a.Member.ID, a.Member.Token, string(a.Member.Reason), a.Text)
	}
	return list
}

// newEvent is an event of a set, or of a member of it, that was there once.
func newEvent(ref spec.SetRef, name, kind, member, reason, text string, now time.Time) namedEvent {
	return namedEvent{name, records.Event{Ref: ref, Member: member, Type: kind, Reason: reason, Message: text, Count: 1, At: asStored(now)}}
}

// warnings are the events of members that wait for what does not come by itself, nor
// because a person paused the rollout. The cause is the same in each life of a member.
func warnings(ref spec.SetRef, p plan.Plan, now time.Time) (list []namedEvent) {
	for _, b := range p.Blocked {
		if !b.Reason.ComesByItself() && b.Reason != causes.BlockedPaused {
			name := fmt.Sprintf("wait-%d-%s", b.ID.Ordinal, b.Reason)
			list = append(list, newEvent(ref, name, "Warning", b.ID.MemberName(), string(b.Reason), b.Text, now))
		}
	}
	return list
}

// rolloutEvents are the events of a rollout that does not come further, and of one that is given up
// for that.
func rolloutEvents(ref spec.SetRef, p plan.Plan, now time.Time) (list []namedEvent) {
	for _, c := range p.Status.Conditions {
		if c.Type == plan.ConditionStalled && c.Status == "True" {
			name := fmt.Sprintf("stalled-%s-%d", p.Reached.Aim, p.Reached.Arrived)
			list = append(list, newEvent(ref, name, "Warning", "", c.Reason, c.Message, now))
		}
	}
	if from := p.Status.RolledBackFrom; from != "" {
		text := fmt.Sprintf("revision %s did not become available in time; the members return to %s until the template changes", from, p.Status.CurrentRevision)
		list = append(list, newEvent(ref, "back-"+string(from), "Warning", "", "RolledBack", text, now))
	}
	return list
}

// recurrences notices which causes came back, in one term. A cause that persists is not written
// again, nor is one that an earlier leader wrote.
type recurrences struct {
	present map[string]bool // at the last evaluation; nil: there was none
	due     map[string]int  // the count that an event is to get, until it has it
}

// observe takes the causes that are there now. old finds the event of a name that is stored; nil: none is.
func (r *recurrences) observe(list []namedEvent, old func(name string) *records.Event) {
	if len(list)+len(r.due) == 0 && r.present != nil && len(r.present) == 0 {
		return
	}
	now := map[string]bool{}
	for _, n := range list {
		now[n.name] = true
		if e := old(n.name); e != nil && r.present != nil && !r.present[n.name] {
			if r.due == nil {
				r.due = map[string]int{}
			}
			r.due[n.name] = e.Count + 1
		}
	}
	for name, count := range r.due {
		if e := old(name); e == nil || e.Count >= count {
			delete(r.due, name)
		}
	}
	r.present = now
}

// eventLog bounds the events of one set that one evaluation writes.
type eventLog struct {
	set       cache.SetView
	lease     store.LeaseID
	rewritten map[string]bool // of the stored ones, those removed or written anew
	space     int             // how many may be added before old ones go
	written   int
}

func newEventLog(v cache.View, ref spec.SetRef, lease store.LeaseID) *eventLog {
	set := cache.OfSet(v, ref)
	return &eventLog{set: set, lease: lease, rewritten: map[string]bool{}, space: maxEvents - set.EventCount()}
}

// write adds the events that are not stored yet to d; beyond the bound the oldest go.
func (l *eventLog) write(d *decision, list []namedEvent) {
	for _, n := range list {
		if l.lease == 0 || l.set.Event(n.name) != nil || l.written == eventsAtOnce {
			continue
		}
		l.put(d, n)
		l.space--
		if l.space < 0 {
			d.remove(store.EventKey(l.set.Ref, l.takeOldest()))
		}
	}
}

// recount counts what came back once more: the same event, with a higher count and the
// newest text.
func (l *eventLog) recount(d *decision, list []namedEvent, due map[string]int) {
	for _, n := range list {
		count := due[n.name]
		if l.lease == 0 || count == 0 || l.rewritten[n.name] || l.written == eventsAtOnce {
			continue
		}
		l.rewritten[n.name] = true
		n.event.Count = count
		l.put(d, n)
	}
}

func (l *eventLog) put(d *decision, n namedEvent) {
	l.written++
	op := store.PutRecord(store.EventKey(l.set.Ref, n.name), n.event)
	op.Lease = l.lease
	d.add(op)
}

// takeOldest takes the oldest event, of those the first by name. There is one: where space is
// scarce there are many more than are written at once.
func (l *eventLog) takeOldest() (oldest string) {
	var at time.Time
	for name, e := range l.set.Events() {
		if l.rewritten[name] || oldest != "" && cmp.Or(at.Compare(e.At), strings.Compare(oldest, name)) < 0 {
			continue
		}
		oldest, at = name, e.At
	}
	l.rewritten[oldest] = true
	return oldest
}
