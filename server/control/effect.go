package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// shownMembers bounds the names in one sentence.
const shownMembers = 10

// claimEffects says what becomes of claims that grow or are added.
func claimEffects(old, now *records.Set) (out []string) {
	was := map[string]int64{}
	for i := range old.Spec.VolumeClaimTemplates {
		c := &old.Spec.VolumeClaimTemplates[i]
		was[c.Metadata.Name] = c.Spec.SizeBytes()
	}
	for i := range now.Spec.VolumeClaimTemplates {
		c := &now.Spec.VolumeClaimTemplates[i]
		switch size, known := was[c.Metadata.Name]; {
		case !known:
			out = append(out, fmt.Sprintf("adds the claim %s: members get it with their next life", c.Metadata.Name))
		case c.Spec.SizeBytes() > size:
			out = append(out, fmt.Sprintf("grows the volumes of the claim %s from %s to %s", c.Metadata.Name, sizeText(size), sizeText(c.Spec.SizeBytes())))
		case c.Spec.SizeBytes() < size: // only an adoption allows it
			out = append(out, fmt.Sprintf("the volumes of the claim %s keep their size; new ones have %s", c.Metadata.Name, sizeText(c.Spec.SizeBytes())))
		}
	}
	return out
}

// retentionEffects says what a changed retention policy will cost, or keeps from now on.
func retentionEffects(old, now *records.Set) (out []string) {
	if len(now.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	of := func(s *records.Set) spec.RetentionPolicy {
		if s.Spec.Retention == nil {
			return spec.RetentionPolicy{}
		}
		return *s.Spec.Retention
	}
	was, is := of(old), of(now)
	say := func(before, after spec.Retention, when string) {
		switch {
		case (before == spec.Delete) == (after == spec.Delete):
		case after == spec.Delete:
			out = append(out, fmt.Sprintf("%s will cost data: the volumes are given up then, and erased %s; until now they were kept", when, trashText(now)))
		default:
			out = append(out, when+" keeps the volumes from now on")
		}
	}
	say(was.WhenScaled, is.WhenScaled, "scaling down")
	say(was.WhenDeleted, is.WhenDeleted, "deleting the set")
	return out
}

// changeEffects says what becomes of the members when old becomes now.
func changeEffects(old, now *records.Set) []string {
	var out []string
	if effect := scaleEffect(old, now); effect != "" {
		out = append(out, effect)
	}
	out = append(out, claimEffects(old, now)...)
	out = append(out, retentionEffects(old, now)...)
	if t := old.Template(); !maps.Equal(t.Metadata.Labels, now.Spec.Template.Metadata.Labels) {
		if t.Metadata.Labels = now.Spec.Template.Metadata.Labels; now.SameLife(old.Template(), t) {
			out = append(out, "the members' labels change at once; nobody restarts for them")
		}
	}
	out = append(out, lossEffects(old, now)...)
	if old.Spec.MinReadySeconds != now.Spec.MinReadySeconds {
		out = append(out, fmt.Sprintf("members count as available after %d s of being ready", now.Spec.MinReadySeconds))
	}
	return out
}

// lossEffects says what a new bound of guarded lives means.
func lossEffects(old, now *records.Set) []string {
	switch bound := now.Spec.Bound(); {
	case old.Spec.Bound() == bound:
		return nil
	case bound == 0:
		return []string{"from their next lives on members wait for a node that is silent (nodeLoss Hold)"}
	default:
		d := spec.Duration{Duration: bound}
		out := []string{fmt.Sprintf("from its next life on a member ends by itself when its node has reached no server for %s, whatever the reason, and begins elsewhere (nodeLoss Replace)", d)}
		if len(now.Spec.VolumeClaimTemplates) > 0 {
			out = append(out, "volumes that are not shared stay on their nodes: a member with one ends all the same, and begins when its node is back")
		}
		return out
	}
}

// updateEffects says whom the update of w's set restarts, or that it waits for people.
func updateEffects(w plan.World) []string {
	f := plan.Foretell(w)
	var out []string
	switch n := len(f.Restarts); {
	case n == 1:
		out = append(out, "restarts "+f.Restarts[0].MemberName())
	case n > 1 && w.Set.Spec.UpdateStrategy.Type == spec.RecreateStrategy:
		out = append(out, fmt.Sprintf("stops %s all at once, then starts them again (Recreate)", memberNames(f.Restarts)))
	case n > 1:
		out = append(out, fmt.Sprintf("restarts %s in this order, at most %d down", memberNames(f.Restarts), f.AtMost))
	}
	switch {
	case len(f.Kept) == 0:
	case w.Set.Paused:
		out = append(out, memberNames(f.Kept)+number(f.Kept, " stays as it is", " stay as they are")+" until the rollout is resumed")
	case w.Set.Spec.UpdateStrategy.Type == spec.OnDeleteStrategy:
		out = append(out, memberNames(f.Kept)+number(f.Kept, " moves on when it is restarted", " move on when they are restarted")+" (OnDelete)")
	default:
		out = append(out, "the partition keeps "+memberNames(f.Kept)+number(f.Kept, " as it is", " as they are"))
	}
	return out
}

// number is the word for one member or for several.
func number(ids []spec.Identity, one, several string) string {
	if len(ids) == 1 {
		return one
	}
	return several
}

func memberNames(ids []spec.Identity) string {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		names = append(names, id.MemberName())
	}
	return bounded(names)
}

// createEffects says what a new set does. kept are volumes that stand there from
// an earlier set of this name; inherits: they hold its data.
func createEffects(now *records.Set, kept []*records.Volume, inherits bool) []string {
	var out []string
	if now.Replicas() > 0 {
		out = append(out, "creates "+members(now, ordinals(now.Range(), nil, false)))
	}
	out = append(out, lossEffects(&records.Set{}, now)...)
	var back, rest, going []string
	for _, v := range kept {
		name := string(v.Claim) + " of " + v.ID.MemberName()
		switch asked := slices.ContainsFunc(now.Spec.VolumeClaimTemplates, func(c spec.ClaimTemplate) bool {
			return c.Metadata.Name == string(v.Claim)
		}); {
		case !asked:
		case v.Fate == records.FateReclaiming || v.Fate == records.FateLost:
			going = append(going, name)
		case now.Range().Has(v.ID.Ordinal):
			back = append(back, name)
		default:
			rest = append(rest, name)
		}
	}
	if len(back) > 0 {
		out = append(out, "takes back the kept volumes "+bounded(back))
	}
	if len(rest) > 0 {
		out = append(out, "keeps the volumes "+bounded(rest)+", whose members are not wanted now")
	}
	if inherits {
		out = append(out, "goes on with the data of the earlier set of this name: it counts as bootstrapped, and a member with a new disk joins the others")
	}
	if len(going) > 0 {
		out = append(out, "waits until the volumes "+bounded(going)+" are given up, then makes new ones")
	}
	return out
}

// scaleEffect says who comes and who goes, in this order: members that come are
// available before others go.
func scaleEffect(old, now *records.Set) string {
	was, is := old.Range(), now.Range()
	come, gone := ordinals(is, &was, false), ordinals(was, &is, true)
	var parts []string
	if come.count > 0 {
		parts = append(parts, "creates "+members(now, come))
	}
	if gone.count > 0 {
		parts = append(parts, "stops "+members(now, gone)+"; "+volumesOf(now))
	}
	switch {
	case len(parts) == 0:
		return ""
	case old.Replicas() == now.Replicas():
		return fmt.Sprintf("moves %s: %s", now.Ref.Name, strings.Join(parts, ", then "))
	}
	return fmt.Sprintf("scales %s %d → %d: %s", now.Ref.Name, old.Replicas(), now.Replicas(), strings.Join(parts, ", then "))
}

// some are so many ordinals, of which the first are listed.
type some struct {
	first []int
	count int
}

// ordinals are those of r that are not in without (nil: nobody), in one direction.
func ordinals(r spec.OrdinalRange, without *spec.OrdinalRange, down bool) (list some) {
	for o := r.Next(0); o < r.End; o = r.Next(o + 1) {
		if without != nil && without.Has(o) {
			continue
		}
		list.count++
		switch {
		case list.count <= shownMembers:
			list.first = append(list.first, o)
		case down:
			list.first = append(list.first[1:], o)
		}
	}
	if down {
		slices.Reverse(list.first)
	}
	return list
}

// members names members of a set, and whether one comes after the other.
func members(s *records.Set, list some) string {
	names := make([]string, 0, len(list.first))
	for _, o := range list.first {
		names = append(names, spec.Identity{Set: s.Ref.Name, Ordinal: o}.MemberName())
	}
	text := strings.Join(names, ", ")
	if more := list.count - len(names); more > 0 {
		text = fmt.Sprintf("%s and %d more", text, more)
	}
	switch {
	case list.count < 2:
		return text
	case s.Spec.PodManagementPolicy == spec.Parallel:
		return text + " at once"
	}
	return text + " in this order"
}

func bounded(names []string) string {
	if len(names) > shownMembers {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shownMembers], ", "), len(names)-shownMembers)
	}
	return strings.Join(names, ", ")
}
