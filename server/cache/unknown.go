package cache

import (
	"cmp"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// moveUnknown replaces the unknown lives and volumes of node by those that it reports now.
func (s *state) moveUnknown(node spec.NodeName, old, now *records.NodeFacts, ch *Changes) {
	var before, after records.NodeFacts
	if old != nil {
		before = *old
	}
	if now != nil {
		after = *now
	}
	touched := map[spec.Identity]bool{}
	unknownNow(s.unknownLives, touched, before.Strays, after.Strays,
		func(l spec.LifeID) (spec.Identity, plan.NodeStray) { return l.ID, plan.NodeStray{Node: node, Stray: l} },
		func(x plan.NodeStray) bool { return x.Node == node },
		func(a, b plan.NodeStray) int {
			return cmp.Or(cmp.Compare(a.Node, b.Node), a.Stray.Token.Compare(b.Stray.Token))
		})
	unknownNow(s.unknownVolumes, touched, before.UnknownVolumes, after.UnknownVolumes,
		func(h records.HostVolume) (spec.Identity, plan.UnknownVolume) {
			return h.ID, plan.UnknownVolume{Node: node, HostVolume: h}
		},
		func(u plan.UnknownVolume) bool { return u.Node == node },
		func(a, b plan.UnknownVolume) int {
			return cmp.Or(cmp.Compare(a.Node, b.Node), a.HostVolume.Compare(&b.HostVolume))
		})
	for id := range touched {
		_ = s.changeSlot(s.set(id.Ref()), id, ch, func(*slot) error { return nil })
		ch.Sets[id.Ref()] = true
	}
}

// unknownNow takes what a node said out of all, and adds what it says now. Lists that were handed out are not changed.
func unknownNow[S, T any](all map[spec.Identity][]T, touched map[spec.Identity]bool, before, after []S, of func(S) (spec.Identity, T), its func(T) bool, order func(a, b T) int) {
	changed := map[spec.Identity]bool{}
	for _, said := range before {
		id, _ := of(said)
		if !changed[id] {
			changed[id] = true
			all[id] = slices.DeleteFunc(slices.Clone(all[id]), its)
		}
	}
	for _, said := range after {
		id, one := of(said)
		changed[id] = true
		all[id] = append(slices.Clone(all[id]), one)
	}
	for id := range changed {
		touched[id] = true
		slices.SortFunc(all[id], order)
		if len(all[id]) == 0 {
			delete(all, id)
		}
	}
}

// UnknownVolumes are the volumes of an identity that nodes have and the store does not know.
func UnknownVolumes(v View, id spec.Identity) []plan.UnknownVolume { return v.unknownVolumes[id] }

// AllUnknownVolumes are those of a namespace, by identity and node.
func AllUnknownVolumes(v View, ns spec.Namespace) (all []plan.UnknownVolume) {
	for id, list := range v.unknownVolumes {
		if id.Namespace == ns {
			all = append(all, list...)
		}
	}
	slices.SortFunc(all, func(a, b plan.UnknownVolume) int {
		return cmp.Or(a.HostVolume.Compare(&b.HostVolume), cmp.Compare(a.Node, b.Node))
	})
	return all
}

// PlacedOn lists the volumes whose records place them on node, in the order of their keys.
func PlacedOn(v View, node spec.NodeName) []*records.Volume { return inOrder(v.placed[node]) }
