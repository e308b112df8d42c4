package control

import (
	"fmt"
	"maps"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// changeEffects says what the edit from old to now means for the lives that start later, and
// for volumes: what no forecast of the present can tell.
func changeEffects(old, now *records.Set) []string {
	out := append(claimEffects(old, now), retentionEffects(old, now)...)
	if t := old.Template(); !maps.Equal(t.Metadata.Labels, now.Spec.Template.Metadata.Labels) {
		t.Metadata.Labels = now.Spec.Template.Metadata.Labels
		if now.SameLife(old.Template(), t) {
			out = append(out, "the members' labels change at once, without a restart")
		}
	}
	out = append(out, lossEffects(old.Spec.Bound(), now)...)
	if old.Spec.MinReadySeconds != now.Spec.MinReadySeconds {
		out = append(out, fmt.Sprintf("members count as available after %d s of being ready", now.Spec.MinReadySeconds))
	}
	return out
}

// claimEffects says what becomes of claims that grow or are added.
func claimEffects(old, now *records.Set) (out []string) {
	for i := range now.Spec.VolumeClaimTemplates {
		c := &now.Spec.VolumeClaimTemplates[i]
		name, size := c.Metadata.Name, c.Spec.SizeBytes()
		switch was := old.Spec.Claim(spec.ClaimName(name)); {
		case was == nil:
			out = append(out, fmt.Sprintf("adds the claim %s: members get it with their next life", name))
		case size > was.Spec.SizeBytes():
			out = append(out, fmt.Sprintf("grows the volumes of the claim %s from %s to %s", name, sizeText(was.Spec.SizeBytes()), sizeText(size)))
		case size < was.Spec.SizeBytes(): // only an adoption allows it
			out = append(out, fmt.Sprintf("the volumes of the claim %s keep their size; new ones have %s", name, sizeText(size)))
		}
	}
	return out
}

// retentionEffects says what a changed retention policy will cost, or keeps from now on. Both
// sets have their defaults.
func retentionEffects(old, now *records.Set) (out []string) {
	if len(now.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	say := func(before, after spec.Retention, when string) {
		switch {
		case before == after:
		case after == spec.Delete:
			out = append(out, fmt.Sprintf("%s will cost data: the volumes are given up then, and erased %s; until now they were kept", when, trashText(now)))
		default:
			out = append(out, when+" keeps the volumes from now on")
		}
	}
	was, is := old.Spec.Retention, now.Spec.Retention
	say(was.WhenScaled, is.WhenScaled, "scaling down")
	say(was.WhenDeleted, is.WhenDeleted, "deleting the set")
	return out
}

// lossEffects says what the bound of guarded lives means, if it is not the one of before.
func lossEffects(before time.Duration, now *records.Set) []string {
	switch bound := now.Spec.Bound(); bound {
	case before:
		return nil
	case 0:
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

// trashText says when the set's volumes are erased once they are given up: "(data after 24h,
// log at once)".
func trashText(set *records.Set) string {
	return "(" + listed(set.Spec.VolumeClaimTemplates, func(c spec.ClaimTemplate) string { return erased(c.Metadata.Name, c.Trash()) }) + ")"
}

// erased is "data after 24h": when volumes of a claim that were given up are erased.
func erased(claim string, trash time.Duration) string {
	if trash == 0 {
		return claim + " at once"
	}
	return claim + " after " + scalar.Duration{Duration: trash}.String()
}
