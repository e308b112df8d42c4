package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
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
	return problems, collision(ahead), nil
}

// collision refuses a template that shares its hash with another revision: it would
// be taken for that one. Chance alone makes this once in 2^40 templates.
func collision(w plan.World) []string {
	for _, r := range w.Revisions {
		if r.Hash == w.TemplateHash && !w.Set.SameLife(r.Template, w.Set.Template()) {
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
		p.What = fmt.Sprintf("is being renamed already, from %q to %q, and members run that were begun before", former, was.Service())
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
