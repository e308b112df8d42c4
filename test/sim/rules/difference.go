package rules

import (
	"encoding/json"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// Runs is what the member of an ordinal runs by a template and what members have of their own, as text that is equal for what is the
// same to a life (SEMANTICS Part 3, Differences).
func Runs(t *spec.Template, members spec.Differences, ordinal int) string {
	own := MemberTemplate(t, members, ordinal)
	return string(encoded(own.Spec)) + string(encoded(own.Metadata.Annotations))
}

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// MemberTemplate is what the member of an ordinal runs.
func MemberTemplate(t *spec.Template, members spec.Differences, ordinal int) spec.Template {
	own := spec.Clone(*t)
	for _, d := range members {
		if !slices.ContainsFunc(d.Ordinals, func(s spec.OrdinalSpan) bool { return int(s.First) <= ordinal && ordinal <= int(s.Last) }) {
			continue
		}
		for key, value := range d.NodeSelector {
			put(&own.Spec.NodeSelector, key, value)
		}
		for c := range own.Spec.All() {
			if c.Name == d.Container {
				differs(c, d)
			}
		}
	}
	return own
}

// differs has a container be as an entry says.
func differs(c *spec.Container, d spec.Difference) {
	for _, e := range d.Env {
		if i := slices.IndexFunc(c.Env, func(x spec.EnvVar) bool { return x.Name == e.Name }); i >= 0 {
			c.Env[i] = e
		} else {
			c.Env = append(c.Env, e)
		}
	}
	if len(d.Args) > 0 {
		c.Args = slices.Clone(d.Args)
	}
	if d.Resources == nil {
		return
	}
	for name, q := range d.Resources.Requests {
		put(&c.Resources.Requests, name, q)
	}
	for name, q := range d.Resources.Limits {
		put(&c.Resources.Limits, name, q)
	}
}

func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

// ofRevision is the content of a revision, stored or to be; nil: it is not known.
func (r *Reading) ofRevision(h spec.RevisionHash) (*spec.Template, spec.Differences) {
	for _, v := range r.x.Revisions {
		if v.Hash == h {
			return &v.Template, v.Members
		}
	}
	if h == r.x.TemplateHash {
		t := r.x.Set.Template()
		return &t, r.x.Set.Spec.Members
	}
	return nil, nil
}

// sameFor: the member of an ordinal runs the same by two revisions, of which one has differences.
func (r *Reading) sameFor(o int, a, b spec.RevisionHash) bool {
	from, had := r.ofRevision(a)
	to, has := r.ofRevision(b)
	return a != b && from != nil && to != nil && len(had)+len(has) > 0 && Runs(from, had, o) == Runs(to, has, o)
}

// reaches: the life counts as one of its target from now on, by which it runs the same.
func (r *Reading) reaches(o int) bool {
	s := r.Slot(o)
	return s.Member != nil && s.Identity != nil && s.Member.Goal == records.GoalRun && !r.Vacant(o) && !r.held(o) && s.Member.Change == nil && !r.unknownChange(o) && r.sameFor(o, s.Member.Revision, r.target(o))
}

// counts is the revision of which a life counts from now on: that to which it was changed in place, as its node says; or its target, by
// which it runs the same. "": that of its record.
func (r *Reading) counts(o int) spec.RevisionHash {
	s := r.Slot(o)
	switch {
	case s.Member == nil || s.Identity == nil || s.Member.Goal != records.GoalRun || r.Vacant(o):
	case r.wasChanged(o) != "":
		return r.wasChanged(o)
	case r.IsWanted(o) && r.reaches(o):
		return r.target(o)
	}
	return ""
}

// promotions judges which lives a plan has count as ones of another revision, and returns the world in which they do: exactly those of
// which that is so, before anybody is stopped, changed or begins.
func (j *Judge) promotions(x plan.World, p plan.Plan) plan.World {
	c := &planChecker{Judge: j, Reading: Read(x), p: p}
	promoted := map[int]bool{}
	for i, a := range p.Actions {
		a, is := a.(plan.Promote)
		if !is {
			continue
		}
		o := a.ID.Ordinal
		promoted[o] = true
		s := c.Slot(o)
		switch {
		case c.counts(o) == "":
			c.fail("differences", "%s counts as one of revision %s as it is", c.Name(o), a.Revision)
		case a.Token != s.Member.Token || a.Revision != c.counts(o):
			c.fail("differences", "%s %s counts as one of revision %s: it is %s of %s", c.Name(o), a.Token, a.Revision, s.Member.Token, c.counts(o))
		case i > 0 && disturbs(p.Actions[:i]):
			c.fail("differences", "%s counts as one of revision %s after something else is done", c.Name(o), a.Revision)
		}
	}
	x.Slots = slices.Clone(x.Slots)
	for i := range x.Slots {
		s := &x.Slots[i]
		o := s.ID.Ordinal
		to := c.counts(o)
		if x.Set.Deleting || to == "" || len(promoted) == 0 && !disturbs(p.Actions) {
			continue
		}
		if !promoted[o] {
			c.fail("differences", "%s runs what revision %s says, and counts as one of %s", c.Name(o), to, s.Member.Revision)
		}
		m, rec := *s.Member, *s.Identity
		switch {
		case c.wasChanged(o) != "":
			m.Change, m.Changed = nil, c.result(o).ID
		case rec.AvailableOn == m.Revision:
			rec.AvailableOn = to
		}
		m.Revision, rec.Due = to, to
		s.Member, s.Identity = &m, &rec
	}
	return x
}

// disturbs: a life begins or is to stop.
func disturbs(actions []plan.Action) bool {
	return slices.ContainsFunc(actions, func(a plan.Action) bool {
		switch a.(type) {
		case plan.Start, plan.Stop, plan.ChangeInPlace:
			return true
		}
		return false
	})
}
