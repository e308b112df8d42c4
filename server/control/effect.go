package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// shownMembers bounds the names in one sentence.
const shownMembers = 10

// changeEffects says what becomes of the members when old becomes now.
func changeEffects(old, now *spec.Set) []string {
	var out []string
	if effect := scaleEffect(old, now); effect != "" {
		out = append(out, effect)
	}
	if old.Spec.MinReadySeconds != now.Spec.MinReadySeconds {
		out = append(out, fmt.Sprintf("members count as available after %d s of being ready", now.Spec.MinReadySeconds))
	}
	return out
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
		out = append(out, memberNames(f.Kept)+" stay as they are until the rollout is resumed")
	case w.Set.Spec.UpdateStrategy.Type == spec.OnDeleteStrategy:
		out = append(out, memberNames(f.Kept)+" move on when they are restarted (OnDelete)")
	default:
		out = append(out, "the partition keeps "+memberNames(f.Kept)+" as they are")
	}
	return out
}

func memberNames(ids []spec.Identity) string {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		names = append(names, id.MemberName())
	}
	return bounded(names)
}

// createEffects says what a new set does. kept are volumes that stand there from
// an earlier set of this name.
func createEffects(now *spec.Set, kept []*spec.Volume) []string {
	var out []string
	if n := now.Replicas(); n > 0 {
		out = append(out, "creates "+members(now, now.Start(), now.Start()+n-1, false))
	}
	var back, going []string
	for _, v := range kept {
		name := string(v.Claim) + " of " + v.ID.MemberName()
		switch asked := slices.ContainsFunc(now.Spec.VolumeClaimTemplates, func(c spec.ClaimTemplate) bool {
			return c.Metadata.Name == string(v.Claim)
		}); {
		case !asked:
		case v.Fate == spec.FateReclaiming:
			going = append(going, name)
		default:
			back = append(back, name)
		}
	}
	if len(back) > 0 {
		out = append(out, "takes back the kept volumes "+bounded(back))
	}
	if len(going) > 0 {
		out = append(out, "waits until the volumes "+bounded(going)+" are given up, then makes new ones")
	}
	return out
}

func scaleEffect(old, now *spec.Set) string {
	first, last := old.Start(), old.Start()+old.Replicas()-1
	start, end := now.Start(), now.Start()+now.Replicas()-1
	if first != start && old.Replicas() > 0 && now.Replicas() > 0 {
		return fmt.Sprintf("moves %s to the ordinals %d to %d", now.Ref.Name, start, end)
	}
	head := fmt.Sprintf("scales %s %d → %d: ", now.Ref.Name, old.Replicas(), now.Replicas())
	switch {
	case now.Replicas() > old.Replicas():
		return head + "creates " + members(now, last+1, end, false)
	case now.Replicas() < old.Replicas():
		return head + "stops " + members(now, end+1, last, true) + "; " + volumesOf(now)
	}
	return ""
}

// volumesOf says what becomes of the volumes of members that a scale down stops.
func volumesOf(set *spec.Set) string {
	if p := set.Spec.Retention; p == nil || p.WhenScaled != spec.Delete || len(set.Spec.VolumeClaimTemplates) == 0 {
		return "volumes kept"
	}
	return "their volumes are given up, and erased " + trashText(set)
}

// trashText says when what is given up is erased: "data after 24h, log at once".
func trashText(set *spec.Set) string {
	var parts []string
	for i := range set.Spec.VolumeClaimTemplates {
		c := &set.Spec.VolumeClaimTemplates[i]
		when := "after " + spec.Duration{Duration: c.Trash()}.String()
		if c.Trash() == 0 {
			when = "at once"
		}
		parts = append(parts, c.Metadata.Name+" "+when)
	}
	return "(" + bounded(parts) + ")"
}

// members names db-<from> to db-<to>, or the other way round when down.
func members(s *spec.Set, from, to int, down bool) string {
	var names []string
	for o := from; o <= to && len(names) <= shownMembers; o++ {
		ordinal := o
		if down {
			ordinal = to - (o - from)
		}
		names = append(names, spec.Identity{Set: s.Ref.Name, Ordinal: ordinal}.MemberName())
	}
	text := strings.Join(names, ", ")
	if count := to - from + 1; count > shownMembers {
		text = fmt.Sprintf("%s and %d more", strings.Join(names[:shownMembers], ", "), count-shownMembers)
	}
	switch {
	case len(names) < 2:
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

// changeProblems tells what of a running set may not change.
func changeProblems(old, now *spec.Set) []spec.Problem {
	return spec.ValidateUpdate(&old.Spec, &now.Spec)
}
