package control

import (
	"fmt"
	"maps"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

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

// changeEffects says what the edit from old to now means for the lives that begin later, and
// for volumes: what no forecast of the present can tell.
func changeEffects(old, now *records.Set) []string {
	out := claimEffects(old, now)
	out = append(out, retentionEffects(old, now)...)
	if t := old.Template(); !maps.Equal(t.Metadata.Labels, now.Spec.Template.Metadata.Labels) {
		t.Metadata.Labels = now.Spec.Template.Metadata.Labels
		if now.SameLife(old.Template(), t) {
			out = append(out, "the members' labels change at once, without a restart")
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
		return []string{"from their next lives on, members of a silent node wait for it (nodeLoss Hold)"}
	default:
		d := scalar.Duration{Duration: bound}
		out := []string{fmt.Sprintf("from its next life on, a member stops by itself when its node has reached no server for %s, for whatever reason, and starts on another node (nodeLoss Replace)", d)}
		if len(now.Spec.VolumeClaimTemplates) > 0 {
			out = append(out, "volumes that are not shared stay on their nodes: a member with one stops all the same, and starts when its node is back")
		}
		return out
	}
}

// trashText says when what is given up is erased: "data after 24h, log at once".
func trashText(set *records.Set) string {
	var parts []string
	for i := range set.Spec.VolumeClaimTemplates {
		c := &set.Spec.VolumeClaimTemplates[i]
		when := "after " + scalar.Duration{Duration: c.Trash()}.String()
		if c.Trash() == 0 {
			when = "at once"
		}
		parts = append(parts, c.Metadata.Name+" "+when)
	}
	return "(" + bounded(parts) + ")"
}
