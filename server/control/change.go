package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// change compares a set that changes with what is there, and says in e what comes of
// it. For an adoption or a rename it looks at a world that shows the set as it was read:
// no life started since it was orphaned, no name was complete since it was given.
func (d *draft) change(ctx context.Context, e *edit) (problems []manifest.Problem, conflicts []string, err error) {
	adopts := e.applied.GetOutcome() == adopted
	if adopts || e.renames {
		if err := d.cfg.Cache.Wait(ctx, e.seen); err != nil {
			return nil, nil, err
		}
	}
	ahead := d.ahead(e.now)
	forecast := plan.Preview(ahead)
	first, effects := changeEffects(e.was, e.now), describe(e.was, forecast)
	problems = addedProblems(e.was, ahead)
	if adopts {
		first, effects = describeAdoption(e.was, forecast)
		problems = adoptProblems(e.was, ahead)
	}
	if e.renames {
		problems = append(problems, renameProblems(e.was, ahead)...)
		first = append(first, fmt.Sprintf("renames the service %s → %s; both names resolve until every member has restarted", e.was.Service(), e.now.Service()))
	}
	e.applied.Effects = append(first, effects...)
	problems = append(problems, oldAgents(e.was, ahead)...)
	problems = append(problems, agentsWithoutHooks(e.was, ahead)...)
	return problems, collision(ahead), nil
}

// collision refuses a template that shares its hash with another revision: it would
// be taken for that one. Chance alone makes this once in 2^40 templates.
func collision(w plan.World) []string {
	for _, r := range w.Revisions {
		if r.Hash == w.TemplateHash && !w.Set.SameRevision(r) {
			return []string{fmt.Sprintf("set %s: the template has the same hash as its revision %d (%s), which is another; change an annotation of the template",
				w.Set.Ref, r.Number, r.Hash)}
		}
	}
	return nil
}

// fixed is the spec with which the new one is compared for what must not change. A
// rename that is meant is taken out; it restarts the members as "rollout restart" does,
// in the same write.
func (b editMeta) fixed(was, now *records.Set) *spec.SetSpec {
	old := was.Spec
	if b.rename && was.Service() != now.Service() {
		old.ServiceName, now.RestartedAt = now.Spec.ServiceName, b.now.Format(time.RFC3339Nano)
	}
	return &old
}

// renameProblems refuses a rename before the one before it is complete: there would be
// lives with a third name.
func renameProblems(was *records.Set, w plan.World) []manifest.Problem {
	p := manifest.Problem{Path: "spec.serviceName"}
	switch former := plan.Former(was, w.Status, w.Slots); {
	case w.Status == nil || w.Status.ServiceName == "":
		p.What, p.Fix = "cannot change yet: no server has looked at the set since it was made or Stead was upgraded", "try again"
	case former != "":
		p.What = fmt.Sprintf("is being renamed already, from %q to %q, and members run that started before", former, was.Service())
		p.Fix = fmt.Sprintf("wait until they have restarted ('stead rollout status %s'), or restart them ('stead rollout restart %s')", was.Ref.Name, was.Ref.Name)
	default:
		return nil
	}
	return []manifest.Problem{p}
}

// withoutService warns of sets that get a governing service without an object, though the
// former had one: what it said of ports and of members that are not ready is lost.
func (d *draft) withoutService(v cache.View) (out []string) {
	for _, e := range d.edits {
		if !e.renames {
			continue
		}
		ns, from, to := e.was.Ref.Namespace, e.was.Service(), d.after.sets[e.was.Ref]
		services := slices.Concat(d.after.services, v.Services(ns))
		served := func(name string) bool {
			return slices.ContainsFunc(services, func(s *records.ServiceRecord) bool { return s.Namespace == ns && s.Name == name })
		}
		if served(from) && !served(to.Service()) {
			out = append(out, fmt.Sprintf("set %s: there is no Service %s; there, not-ready members and ports follow the defaults instead of Service %s",
				e.was.Ref, to.Service(), from))
		}
	}
	return out
}

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
