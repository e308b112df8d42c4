package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// fates are the volumes that there are at first, by what a forecast says of them: those that
// stay, those that go, and for how long each claim of these lies in the trash.
type fates struct {
	stay, going []*records.Volume
	trash       map[spec.ClaimName]time.Duration
}

// fatesOf are the fates of the volumes of these members; nil: of all.
func (t *teller) fatesOf(ids []spec.Identity) fates {
	f := fates{trash: map[spec.ClaimName]time.Duration{}}
	changed := t.changed()
	for i := range t.Before.Slots {
		slot := &t.Before.Slots[i]
		if ids != nil && !slices.Contains(ids, slot.ID) {
			continue
		}
		for _, claim := range slices.Sorted(maps.Keys(slot.Volumes)) {
			v := slot.Volumes[claim]
			now := cmp.Or(changed[v.UID], v)
			if !now.Fate.Going() {
				f.stay = append(f.stay, v)
				continue
			}
			f.going = append(f.going, v)
			f.trash[claim] = now.Trash()
		}
	}
	return f
}

// changed are the volumes about which something is decided, as they are last.
func (t *teller) changed() map[records.VolumeID]*records.Volume {
	list := map[records.VolumeID]*records.Volume{}
	note := func(volumes []records.Volume) {
		for i := range volumes {
			list[volumes[i].UID] = &volumes[i]
		}
	}
	for _, step := range t.Steps {
		switch a := step.Action.(type) {
		case plan.Stop:
			note(a.Volumes)
		case plan.SetVolumes:
			note(a.Volumes)
		}
	}
	return list
}

// erased says when what goes is erased: "(data after 24h, log at once)".
func (f fates) erased() string {
	return "(" + listed(slices.Sorted(maps.Keys(f.trash)), func(c spec.ClaimName) string { return erased(string(c), f.trash[c]) }) + ")"
}

// volumesOf says what becomes of the volumes of members that stop.
func (t *teller) volumesOf(ids []spec.Identity) string {
	switch f := t.fatesOf(ids); {
	case len(f.going) > 0:
		return "; their volumes are given up, and erased " + f.erased()
	case len(f.stay) > 0:
		return "; volumes kept"
	}
	return ""
}

func volumeNames(list []*records.Volume) string {
	return listed(list, func(v *records.Volume) string { return records.VolumeName(v.ID, v.Claim) })
}

// ofMembers names volumes as "data of db-0".
func ofMembers(list []*records.Volume) string {
	return listed(list, func(v *records.Volume) string { return string(v.Claim) + " of " + v.ID.MemberName() })
}

// describeCreation tells what a new set does, and what it does with volumes that an earlier
// set of its name left behind.
func describeCreation(f plan.Forecast) []string {
	out := append(describe(nil, f), lossEffects(0, f.Before.Set)...)
	t := newTeller(f)
	used := map[records.VolumeID]bool{}
	inherits := false
	for _, step := range f.Steps {
		switch a := step.Action.(type) {
		case plan.Start:
			for _, mount := range a.Member.Volumes {
				used[mount.ID] = true
			}
		case plan.MarkBootstrapped:
			inherits = a.Inherited
		}
	}
	var back, rest, replaced []*records.Volume
	kept := t.fatesOf(nil)
	for _, v := range slices.Concat(kept.stay, kept.going) {
		switch {
		case t.set.Spec.Claim(v.Claim) == nil:
		case used[v.UID]:
			back = append(back, v)
		case v.Fate.Ordered():
			replaced = append(replaced, v)
		default:
			rest = append(rest, v)
		}
	}
	if len(back) > 0 {
		out = append(out, "takes back the kept volumes "+ofMembers(back))
	}
	if len(rest) > 0 {
		out = append(out, "keeps the volumes "+ofMembers(rest)+", whose members are not wanted now")
	}
	if inherits {
		out = append(out, "continues with the data of the earlier set of this name: it counts as bootstrapped, and a member with a new disk joins the others")
	}
	if len(replaced) > 0 {
		out = append(out, "waits until the volumes "+ofMembers(replaced)+" are given up, then makes new ones")
	}
	return out
}

// describeDeletion says which members stop, in their order, and which volumes stay or go.
func describeDeletion(f plan.Forecast) []string {
	t := newTeller(f)
	gone := sentence{stops, slices.Clone(f.Ending)}
	for _, step := range f.Steps {
		if stop, is := step.Action.(plan.Stop); is {
			gone.members = append(gone.members, stop.ID)
		}
	}
	var out []string
	if len(gone.members) > 0 {
		out = append(out, t.say(gone))
	}
	kept := t.fatesOf(nil)
	if len(kept.stay) > 0 {
		out = append(out, fmt.Sprintf("keeps the volumes %s; a set of the same name takes them back", volumeNames(kept.stay)))
	}
	if len(kept.going) > 0 {
		out = append(out, fmt.Sprintf("gives up the volumes %s, and erases them %s", volumeNames(kept.going), kept.erased()))
	}
	return append(out, t.never()...)
}

// describeOrphaned says what becomes of members that nobody owns any more.
func describeOrphaned(f plan.Forecast) []string {
	var out []string
	if run := running(f, func(int) bool { return true }); len(run) > 0 {
		out = append(out, "leaves "+memberNames(run)+" running; they are not replaced, updated, scaled or stopped")
	}
	if len(f.Ending) > 0 {
		out = append(out, "still stops "+memberNames(f.Ending)+", as requested before; ended members are not replaced")
	}
	return append(out, "names, addresses and volumes stay; applying the set again adopts them")
}

// running are the members that run at first, and whose ordinals are in question.
func running(f plan.Forecast, of func(ordinal int) bool) (ids []spec.Identity) {
	for i := range f.Before.Slots {
		slot := &f.Before.Slots[i]
		if slot.Member != nil && slot.Member.Goal == records.GoalRun && (slot.Report == nil || !slot.Report.Phase.Over()) && of(slot.ID.Ordinal) {
			ids = append(ids, slot.ID)
		}
	}
	return ids
}

// describeAdoption says whom a set adopts, and then what it does with them.
func describeAdoption(was *records.Set, f plan.Forecast) (first, rest []string) {
	now := f.Before.Set
	first = []string{"adopts no member: none runs"}
	if own := running(f, now.Range().Has); len(own) > 0 {
		first[0] = "adopts " + memberNames(own)
	}
	rest = describe(was, f)
	if len(f.Ending) > 0 {
		rest = append(rest, "waits for "+memberNames(f.Ending)+number(f.Ending, ", which was", ", which were")+" requested to stop before")
	}
	for i := range was.Spec.VolumeClaimTemplates {
		if name := was.Spec.VolumeClaimTemplates[i].Metadata.Name; now.Spec.Claim(spec.ClaimName(name)) == nil {
			rest = append(rest, fmt.Sprintf("the claim %s is removed; its volumes stay, unused", name))
		}
	}
	return first, append(rest, claimEffects(was, now)...)
}
