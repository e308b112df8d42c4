package cache

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// volumeKey names one volume of an identity.
type volumeKey struct {
	claim  spec.ClaimName
	volume records.VolumeID
}

// currentReports are those of their nodes about the present volumes in their present turn, and that of
// the node that a person named about one that is wanted back; nil: none.
func (l *slot) currentReports() map[spec.ClaimName]*records.VolumeReport {
	var out map[spec.ClaimName]*records.VolumeReport
	add := func(claim spec.ClaimName, r *records.VolumeReport) {
		if out == nil {
			out = map[spec.ClaimName]*records.VolumeReport{}
		}
		out[claim] = r
	}
	for claim, q := range l.requests {
		if q.record == nil || q.record.Verb != records.VerbRestore || l.volumes[claim].mod != 0 {
			continue
		}
		r := l.reports[volumeKey{claim, q.record.Volume}].record
		if r != nil && (r.Node == q.record.Node || q.record.Node == "" && !r.Unproven) {
			add(claim, r)
		}
	}
	for claim, v := range l.volumes {
		if v.record == nil {
			continue
		}
		if r := l.reports[volumeKey{claim, v.record.UID}].record; r != nil && r.Node == v.record.Node && r.Turn == v.record.Turn {
			add(claim, r)
		}
	}
	return out
}

// leftOn are the nodes on which a volume of the identity was left; nil: none.
func (l *slot) leftOn() []spec.NodeName {
	var nodes []spec.NodeName
	for _, e := range l.reports {
		if e.record != nil && e.record.State == records.VolumeLeft {
			nodes = append(nodes, e.record.Node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// applyVolumeReport takes over one change of what a node reports of a volume:
// <claim>/<ordinal>/<volume id>.
func (s *state) applyVolumeReport(t *setState, parts []string, ev store.Event, ch *Changes) error {
	defer t.dropIdleSet(s)
	if len(parts) != 3 {
		return fmt.Errorf("decode %s: malformed key of a volume", ev.Key)
	}
	id, claim, err := identityOf(t.ref, store.KindVolume, parts[:2])
	if err != nil {
		return fmt.Errorf("decode %s: %w", ev.Key, err)
	}
	return s.changeSlot(t, id, ch, func(l *slot) error {
		key := volumeKey{claim, records.VolumeID(parts[2])}
		if old := l.reports[key].record; old != nil {
			delete(s.node(old.Node).reports, ev.Key)
			s.dropIdleNode(old.Node)
		}
		err := keep(s, l.reports, key, ev, func(r *records.VolumeReport) string { return store.VolumeReportKey(r.ID, r.Claim, r.Volume) })
		if now := l.reports[key].record; now != nil {
			s.node(now.Node).reports[ev.Key] = now
		}
		return err
	})
}

// moveVolume keeps the lists of volumes that each node has, and about which it has an order.
func (s *state) moveVolume(key string, old, now *records.Volume) {
	if old != nil {
		delete(s.placed[old.Node], key)
		if len(s.placed[old.Node]) == 0 {
			delete(s.placed, old.Node)
		}
	}
	if now != nil {
		if s.placed[now.Node] == nil {
			s.placed[now.Node] = map[string]*records.Volume{}
		}
		s.placed[now.Node][key] = now
	}
	if old != nil && old.Ordered() {
		delete(s.node(old.Node).volumes, key)
		s.dropIdleNode(old.Node)
	}
	if now != nil && now.Ordered() {
		s.node(now.Node).volumes[key] = now
	}
}

// Volumes lists the set's volumes by ordinal and claim.
func (v View) Volumes(ref spec.SetRef) (list []*records.Volume) {
	for _, l := range v.find(ref).slots {
		for _, claim := range slices.Sorted(maps.Keys(l.view.Volumes)) {
			list = append(list, l.view.Volumes[claim])
		}
	}
	return list
}

// VolumesOn lists the volumes about which node has an order, in the order of their keys.
func (v View) VolumesOn(node spec.NodeName) []*records.Volume {
	if n := v.nodes[node]; n != nil {
		return inOrder(n.volumes)
	}
	return nil
}

// VolumeReportsOn lists what node reported of volumes, in the order of their keys.
func (v View) VolumeReportsOn(node spec.NodeName) []*records.VolumeReport {
	if n := v.nodes[node]; n != nil {
		return inOrder(n.reports)
	}
	return nil
}

// Volume is the volume of a claim now; nil: none.
func (v View) Volume(id spec.Identity, c spec.ClaimName) *records.Volume {
	return v.lookup(id).volumes[c].record
}

// VolumeReport is what a node reported of a volume, whichever turn it was in; nil: nothing.
func (v View) VolumeReport(id spec.Identity, c spec.ClaimName, volume records.VolumeID) *records.VolumeReport {
	return v.lookup(id).reports[volumeKey{c, volume}].record
}

// VolumeRequest is what a user requests of the volume of a claim; nil: nothing.
func (v View) VolumeRequest(id spec.Identity, c spec.ClaimName) *records.VolumeRequest {
	return v.lookup(id).requests[c].record
}

// HasUsedVolumes reports whether a life was ready on a volume of the set that is kept.
func (v View) HasUsedVolumes(ref spec.SetRef) bool {
	return slices.ContainsFunc(v.find(ref).slots, func(l *slot) bool { return plan.VolumesState(&l.view) == records.VolumesUsed })
}

// RemovedSets lists the sets that are gone and leave something to do: volumes that are being given
// up or brought back, or of which a person asks something, or that the set was bootstrapped. Claims
// of a namespace with which something is to be done are among them.
func (v View) RemovedSets() []spec.SetRef {
	var refs []spec.SetRef
	for ref, t := range v.sets {
		if t.set.mod == 0 && (v.wasBootstrapped[ref] || slices.ContainsFunc(t.slots, (*slot).unfinished)) {
			refs = append(refs, ref)
		}
	}
	for _, of := range v.claims {
		for _, e := range of {
			if e.record != nil && v.claimUnfinished(e.record) {
				refs = append(refs, e.record.Identity().Ref())
			}
		}
	}
	slices.SortFunc(refs, spec.SetRef.Compare)
	return slices.Compact(refs)
}

// unfinished: a volume of it is to go or come, or moves, or a person asks something of one.
func (l *slot) unfinished() bool {
	if len(l.requests) > 0 || l.move.mod != 0 || l.moveAsk.mod != 0 {
		return true
	}
	for _, e := range l.volumes {
		if e.record != nil && (e.record.Fate.Going() || e.record.Fate.Ordered()) {
			return true
		}
	}
	return false
}
