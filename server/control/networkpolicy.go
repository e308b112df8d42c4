package control

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
	"github.com/stead-project/stead/store"
)

func networkPolicyEdit(m netpol.NetworkPolicy, kvs map[string]store.KV) (edit, *records.NetworkPolicyRecord, error) {
	type record = records.NetworkPolicyRecord
	now := &record{Meta: records.MetaOf(m.Metadata), Spec: m.Spec}
	e, err := objectEdit(proto.KindNetworkPolicy, kvs, now,
		func(old *record) bool { return sameJSON(old.Spec, now.Spec) }, func(r *record) any { return manifest.OfNetworkPolicy(r) })
	return e, now, err
}

// isolates reports whether a policy of this apply selects members of set.
func (a *projection) isolates(set *records.Set) bool {
	return slices.ContainsFunc(a.policies, func(r *records.NetworkPolicyRecord) bool { return r.Selects(set) })
}

// unenforced warns of policies that select no set, and of members on nodes whose agents do not enforce those of
// this apply: such members stay as they are, open, until their host has a newer agent.
func (a *projection) unenforced(v cache.View) (warnings []string) {
	old := map[spec.NodeName]bool{}
	for _, n := range v.Nodes() {
		if n.Facts != nil && !n.Facts.Carries(records.PolicyLevel) {
			old[n.Node.Name] = true
		}
	}
	for _, r := range a.policies {
		selects := false
		nodes := map[spec.NodeName]bool{}
		for _, ref := range a.allSets(v.Sets()) {
			set := v.Set(ref)
			if now, given := a.sets[ref]; given {
				set = &now
			}
			if !r.Selects(set) {
				continue
			}
			selects = true
			for node := range cache.NodesWith(v, ref) {
				if old[node] {
					nodes[node] = true
				}
			}
		}
		name := fmt.Sprintf("NetworkPolicy %s/%s", r.Namespace, r.Name)
		if !selects {
			warnings = append(warnings, name+": no set has members that it selects")
		}
		if len(nodes) > 0 {
			names := slices.Sorted(maps.Keys(nodes))
			warnings = append(warnings, fmt.Sprintf("%s: not enforced for members on %s, where the agent is too old: they run on, open, and do not start there again; upgrade stead on the hosts",
				name, place.Names(names[:min(len(names), place.MostNamed)])))
		}
	}
	return warnings
}

// isolatedBy warns of the sets that a policy selected.
func (s objects) isolatedBy(ns spec.Namespace, name string, after *projection) []string {
	return s.warn(ns, after, func(v cache.View, set *records.Set) string {
		if slices.ContainsFunc(cache.NetworkPolicies(v, ns), func(r *records.NetworkPolicyRecord) bool { return r.Name == name && r.Selects(set) }) {
			return fmt.Sprintf("set %s: what only this policy forbade is allowed now, and what only it allowed is not, where others select its members", set.Ref)
		}
		return ""
	})
}
