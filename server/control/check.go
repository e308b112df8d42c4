package control

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// projection is how the namespace will look once an apply is done: its own objects
// before those of the world.
type projection struct {
	sets      map[spec.SetRef]records.Set
	services  []*records.ServiceRecord
	endpoints []*records.EndpointsRecord
	slices    []*records.SliceRecord
	budgets   []*records.BudgetRecord
	policies  []*records.NetworkPolicyRecord
	claims    map[spec.Identity]*records.ClaimRecord
	files     map[dispatch.FileRef]string // given in this apply: of Secrets the type
	pruned    map[spec.SetRef]bool        // deleted by it
}

// refs are the sets of the apply, in order.
func (a *projection) refs() []spec.SetRef {
	return slices.SortedFunc(maps.Keys(a.sets), spec.SetRef.Compare)
}

// missing warns of ConfigMaps and Secrets that a set of this apply names and that
// are nowhere: its members wait for them.
func (a *projection) missing(v cache.View) []string {
	var out []string
	for _, ref := range a.refs() {
		set := a.sets[ref]
		for _, f := range dispatch.SourcesOf(ref.Namespace, &set.Spec) {
			if _, given := a.files[f]; !given && !exists(v, f) {
				out = append(out, fmt.Sprintf("set %s: there is no %s %s; members wait for it unless it is optional", ref, f.Kind, f.Name))
			}
		}
	}
	return out
}

func exists(v cache.View, f dispatch.FileRef) bool {
	if f.Kind == dispatch.KindSecret {
		r := v.Secret(f.Namespace, f.Name)
		return r != nil
	}
	r := v.Config(f.Namespace, f.Name)
	return r != nil
}

// ports warns of Services without members, and of a named targetPort that no set answers to, stored
// sets included.
func (a *projection) ports(v cache.View) (warnings []string) {
	for _, s := range a.services {
		switch {
		case s.Spec.IsAlias():
			continue
		case len(s.Spec.Selector) == 0:
			warnings = append(warnings, a.withoutEndpoints(v, s)...)
			continue
		}
		sets := a.selected(v, s)
		if len(sets) == 0 {
			warnings = append(warnings, fmt.Sprintf("Service %s/%s: no set has members that it selects; its name resolves to nothing", s.Namespace, s.Name))
			continue
		}
		for i := range s.Spec.Ports {
			p := &s.Spec.Ports[i]
			has := func(set records.Set) bool { return p.Target(&set.Spec.Template) != 0 }
			if p.TargetPort != nil && p.TargetPort.Name != "" && !slices.ContainsFunc(sets, has) {
				warnings = append(warnings, fmt.Sprintf("Service %s/%s: no set that it selects has a port named %s",
					s.Namespace, s.Name, p.TargetPort.Name))
			}
		}
	}
	return warnings
}

// selected are the sets whose members s selects.
func (a *projection) selected(v cache.View, s *records.ServiceRecord) []records.Set {
	var out []records.Set
	pick := func(set records.Set) {
		if selects, _ := s.Selects(&set); selects {
			out = append(out, set)
		}
	}
	for _, ref := range a.refs() {
		pick(a.sets[ref])
	}
	for _, ref := range v.Sets() {
		if _, given := a.sets[ref]; !given {
			set := v.Set(ref)
			pick(*set)
		}
	}
	return out
}

// keptProblems tells which volumes of an earlier set of the same name a new set
// cannot take back: another class, or smaller than asked for.
func keptProblems(now *records.Set, slots []plan.Slot) []string {
	var out []string
	for i := range slots {
		for _, c := range now.Spec.VolumeClaimTemplates {
			v := slots[i].Volumes[spec.ClaimName(c.Metadata.Name)]
			if v == nil || v.Fate == records.FateReclaiming || v.Fate == records.FateLost {
				continue
			}
			class, size := c.Spec.Class(), c.Spec.SizeBytes()
			if v.Class != class || v.SizeBytes < size {
				out = append(out, fmt.Sprintf(
					"set %s: the kept volume %s of %s (class %s, %d bytes) does not fit the claim (class %s, %d bytes); use another set name, or give it up with 'stead volume reclaim %s'",
					now.Ref, v.Claim, v.ID.MemberName(), v.Class, v.SizeBytes, class, size, records.VolumeName(v.ID, v.Claim)))
			}
		}
	}
	return out
}
