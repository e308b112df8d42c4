package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

const (
	eventLife    = 24 * time.Hour // how long an event is kept
	eventRenewal = time.Hour      // a lease serves the events of this time
	maxEvents    = 100            // of one set
	eventsAStep  = 20             // one step tells no more
)

// note is an event to be written; its name is made of its cause, so that a cause
// is told once, also by another leader.
type note struct {
	name  string
	event records.Event
}

// notes are the events of an action; none for those that only mark.
func notes(ref spec.SetRef, u *unit, now time.Time) []note {
	var list []note
	add := func(kind string, id spec.Identity, token spec.Token, reason, text string) {
		list = append(list, note{
			fmt.Sprintf("%s-%d-%s", kind, id.Ordinal, token),
			records.Event{Ref: ref, Member: id.MemberName(), Type: "Normal", Reason: reason, Message: text, Count: 1, At: now.UTC()},
		})
	}
	started := func(a plan.Start) { add("begin", a.Member.ID, a.Member.Token, string(a.Member.Reason), a.Text) }
	switch a := u.action.(type) {
	case plan.Start:
		started(a)
	case plan.Stop:
		add("stop", a.ID, a.Token, string(a.Reason), a.Text)
	case plan.Forget:
		add("gone", a.ID, a.Token, "Gone", a.Text)
	case plan.SetVolumes:
		for _, vol := range a.Volumes {
			list = append(list, volumeNote(ref, vol.ID, vol.UID, vol.Turn, string(vol.Fate),
				fmt.Sprintf("volume %s of %s: %s: %s", vol.Claim, vol.ID.MemberName(), vol.Fate, a.Text), now))
		}
	case plan.DropVolume:
		list = append(list, volumeNote(ref, a.ID, a.Volume, a.Turn, "Gone",
			fmt.Sprintf("volume %s of %s is gone: %s", a.Claim, a.ID.MemberName(), a.Text), now))
	case plan.RestoreVolume:
		vol := a.Volume
		list = append(list, volumeNote(ref, vol.ID, vol.UID, vol.Turn, string(vol.Fate),
			fmt.Sprintf("volume %s of %s: %s: %s", vol.Claim, vol.ID.MemberName(), vol.Fate, a.Text), now))
	case plan.VoidRequest:
		list = append(list, volumeNote(ref, a.ID, a.Volume, 0, "RequestVoid",
			fmt.Sprintf("what was asked of volume %s of %s is not done: %s", a.Claim, a.ID.MemberName(), a.Text), now))
	}
	for _, a := range u.with {
		started(a)
	}
	return list
}

// volumeNote is what became of a volume in one of its turns.
func volumeNote(ref spec.SetRef, id spec.Identity, v records.VolumeID, turn int, fate, text string, now time.Time) note {
	return note{
		fmt.Sprintf("volume-%s-%s-%d", v, fate, turn),
		records.Event{Ref: ref, Member: id.MemberName(), Type: "Normal", Reason: "Volume" + fate, Message: text, Count: 1, At: now.UTC()},
	}
}

// warnings are the events of members that wait for what does not come by itself, nor
// because a person paused the rollout. The cause is the same in each life of a member.
func warnings(ref spec.SetRef, p plan.Plan, now time.Time) []note {
	var list []note
	for _, b := range p.Blocked {
		if plan.UnderWay(b.Reason) || b.Reason == plan.BlockedPaused {
			continue
		}
		list = append(list, note{
			fmt.Sprintf("wait-%d-%s", b.ID.Ordinal, b.Reason),
			records.Event{Ref: ref, Member: b.ID.MemberName(), Type: "Warning", Reason: b.Reason, Message: b.Text, Count: 1, At: now.UTC()},
		})
	}
	return list
}

// rolloutNotes are the events of a rollout that stands still, and of one that is given up
// for it.
func rolloutNotes(ref spec.SetRef, p plan.Plan, now time.Time) (list []note) {
	at := fmt.Sprintf("%s-%d", p.Reached.Aim, p.Reached.Arrived)
	add := func(name, reason, text string) {
		list = append(list, note{name, records.Event{Ref: ref, Type: "Warning", Reason: reason, Message: text, Count: 1, At: now.UTC()}})
	}
	for _, c := range p.Status.Conditions {
		if c.Type == plan.ConditionStalled && c.Status == "True" {
			add("stalled-"+at, c.Reason, c.Message)
		}
	}
	if from := p.Status.RolledBackFrom; from != "" {
		add("back-"+string(from), "RolledBack", fmt.Sprintf("revision %s did not become available in time; the members go back to %s until the template changes", from, p.Status.CurrentRevision))
	}
	return list
}

// repeats tells which causes came back, in one term. A cause that goes on is not told
// again, nor is one that a leader before told.
type repeats struct {
	now map[string]bool // there at the last look; nil: there was none
	due map[string]int  // the count that an event is to get, until it has it
}

// look takes the causes that are there now.
func (r *repeats) look(list []note, old map[string]*records.Event) {
	now := map[string]bool{}
	for _, n := range list {
		now[n.name] = true
		if e := old[n.name]; e != nil && r.now != nil && !r.now[n.name] {
			if r.due == nil {
				r.due = map[string]int{}
			}
			r.due[n.name] = e.Count + 1
		}
	}
	for name, count := range r.due {
		if e := old[name]; e == nil || e.Count >= count {
			delete(r.due, name)
		}
	}
	r.now = now
}

// ledger bounds the events of one set for one step.
type ledger struct {
	ref   spec.SetRef
	lease store.LeaseID
	old   map[string]*records.Event
	names []string        // of old, oldest first
	moved map[string]bool // of old, those removed or written anew in this step
	room  int             // how many may be added before old ones go
	told  int
}

func newLedger(v cache.View, ref spec.SetRef, lease store.LeaseID) *ledger {
	l := &ledger{ref: ref, lease: lease, old: v.Events(ref), moved: map[string]bool{}}
	l.room = maxEvents - len(l.old)
	return l
}

// write adds the events that were not told yet to u; beyond the bound the oldest go.
func (l *ledger) write(u *unit, list []note) {
	for _, n := range list {
		if l.lease == 0 || l.old[n.name] != nil || l.told == eventsAStep {
			continue
		}
		l.told++
		u.Then = append(u.Then, store.PutLeased(store.EventKey(l.ref, n.name), store.Encode(n.event), l.lease))
		if l.room--; l.room < 0 {
			u.remove(store.EventKey(l.ref, l.oldest()))
		}
	}
}

// raise counts what came back once more: the same event, with a higher count and the
// newest words.
func (l *ledger) raise(u *unit, list []note, due map[string]int) {
	for _, n := range list {
		count := due[n.name]
		if l.lease == 0 || count == 0 || l.moved[n.name] || l.told == eventsAStep {
			continue
		}
		l.told++
		l.moved[n.name] = true
		n.event.Count = count
		u.Then = append(u.Then, store.PutLeased(store.EventKey(l.ref, n.name), store.Encode(n.event), l.lease))
	}
}

// oldest takes the name of the oldest event off the list. There is one: where room is
// scarce there are many more than a step tells.
func (l *ledger) oldest() string {
	if l.names == nil {
		for name := range l.old {
			l.names = append(l.names, name)
		}
		slices.SortFunc(l.names, func(a, b string) int {
			return cmp.Or(l.old[a].At.Compare(l.old[b].At), strings.Compare(a, b))
		})
	}
	name := l.names[0]
	l.names = l.names[1:]
	if l.moved[name] {
		return l.oldest()
	}
	l.moved[name] = true
	return name
}
