package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// ReclaimVolume implements proto.ControlServer. It writes a request; the engine gives
// the volume up, if what was judged here holds then.
func (s volumes) ReclaimVolume(ctx context.Context, r *proto.ReclaimVolumeRequest) (*proto.VolumeResponse, error) {
	if r.GetNode() != "" {
		return s.reclaimUnknown(ctx, r)
	}
	vol, err := s.findVolume(ctx, r.GetNamespace(), r.GetName(), r.GetVolume())
	if err != nil {
		return nil, err
	}
	q := records.VolumeRequest{ID: vol.ID, Claim: vol.Claim, Volume: vol.UID, Verb: records.VerbReclaim}
	out := &proto.VolumeResponse{Volume: string(vol.UID)}
	if r.GetLost() {
		if r.TrashMillis != nil {
			return nil, invalid("a lost volume is not moved to the trash: leave the trash period out")
		}
		q.Verb = records.VerbLost
		return out, s.ask(ctx, q, nil, r.GetDryRun(), func(f plan.Forecast) { out.Effects = describeLoss(f, vol) })
	}
	if q.Trash, err = trashOf(r); err != nil {
		return nil, err
	}
	if vol.Fate == records.FateReclaiming {
		out.Effects = []string{nameOf(vol) + " is being given up already"}
		return out, nil
	}
	return out, s.ask(ctx, q, nil, r.GetDryRun(), func(f plan.Forecast) { out.Effects = describeReclaim(f, vol) })
}

// trashOf is how long a volume is to lie in the trash; nil: as its claim says.
func trashOf(r *proto.ReclaimVolumeRequest) (*scalar.Duration, error) {
	switch {
	case r.TrashMillis == nil:
		return nil, nil
	case r.GetTrashMillis() < 0:
		return nil, invalid("the trash period must be 0 or more")
	}
	return &scalar.Duration{Duration: time.Duration(r.GetTrashMillis()) * time.Millisecond}, nil
}

// describeLoss says what it means to say that a volume is lost.
func describeLoss(f plan.Forecast, vol records.Volume) []string {
	off := slices.ContainsFunc(f.Steps, func(step plan.ForecastStep) bool {
		drop, is := step.Action.(plan.DropVolume)
		return is && drop.Volume == vol.UID && drop.Left
	})
	check, or := fmt.Sprintf("node %s searches for it once more; if it is there, it is kept", vol.Node), "else "
	if off {
		or, check = "", fmt.Sprintf("node %s is recorded as off, so it is not searched; if it returns, the volume goes to its trash for %s",
			vol.Node, scalar.Duration{Duration: vol.Trash()})
	}
	out := []string{
		fmt.Sprintf("gives up as lost %s, number %d, %s on node %s", nameOf(vol), vol.Number, sizeText(vol.SizeBytes), vol.Node),
		check,
	}
	if set := f.Before.Set; set != nil && !set.Deleting && set.Range().Has(vol.ID.Ordinal) {
		out = append(out, fmt.Sprintf("%s%s starts with a new, empty one (volume-new says replaced)", or, vol.ID.MemberName()))
	}
	out = append(out, leftEffects(f.Before, vol)...)
	if waitsForNode(f, vol.ID) {
		out = append(out, fmt.Sprintf("waits until node %s, which is silent, is back; if it is off for good, say so first: stead node fence %s --i-have-powered-off", vol.Node, vol.Node))
	}
	return out
}

// waits adds for what an order to a node waits.
func waits(effects []string, f plan.Forecast, id spec.Identity, node spec.NodeName) []string {
	if waitsForNode(f, id) {
		effects = append(effects, fmt.Sprintf("waits until node %s, which is silent, is back", node))
	}
	return effects
}

// waitsForNode reports whether something about an identity waits for a silent node for ever.
func waitsForNode(f plan.Forecast, id spec.Identity) bool {
	return slices.ContainsFunc(f.Never, func(b plan.Blocked) bool { return b.ID == id && b.Reason == causes.BlockedNodeSilent })
}

// RestoreVolume implements proto.ControlServer.
func (s volumes) RestoreVolume(ctx context.Context, r *proto.RestoreVolumeRequest) (*proto.VolumeResponse, error) {
	if u, err := s.findUnknown(r.GetNamespace(), r.GetName(), spec.NodeName(r.GetNode())); err != nil || u != nil {
		return s.restoreUnknown(ctx, u, err)
	}
	said, err := s.findTrashed(ctx, r.GetNamespace(), r.GetName(), spec.NodeName(r.GetNode()))
	if err != nil {
		return nil, err
	}
	if r.GetNode() == "" && said.Unproven {
		return nil, precondition("only node %s reports volume %s; the store has no record of it there, "+
			"as after a restore from a backup, or because the report is wrong. To trust that node, add --node %s", said.Node, said.Volume, said.Node)
	}
	q := records.VolumeRequest{ID: said.ID, Claim: said.Claim, Volume: said.Volume, Verb: records.VerbRestore, Node: said.Node}
	out := &proto.VolumeResponse{Volume: string(said.Volume)}
	return out, s.ask(ctx, q, &said, false, func(f plan.Forecast) {
		out.Effects = waits([]string{fmt.Sprintf("brings back volume %s (%s), number %d, from the trash of node %s",
			records.VolumeName(said.ID, said.Claim), said.Volume, said.Number, said.Node)}, f, said.ID, said.Node)
	})
}

// findTrashed is the volume in the trash that a person names by its id, as it is shown,
// or, if there is no other in the trash, by the name that it had. node has it; "": any, and
// what nodes say without proof comes last.
func (s volumes) findTrashed(ctx context.Context, ns, name string, node spec.NodeName) (records.VolumeReport, error) {
	all, err := stored[records.VolumeReport](ctx, s.shared, store.KindVolumeReport, namespace(ns))
	if err != nil {
		return records.VolumeReport{}, err
	}
	found := slices.DeleteFunc(all, func(r records.VolumeReport) bool {
		had := records.VolumeName(r.ID, r.Claim)
		named := name != "" && (had == name || trashName(had, r.Volume) == name || string(r.Volume) == name)
		return !named || r.State != records.VolumeTrashed || node != "" && r.Node != node
	})
	if proven := slices.DeleteFunc(slices.Clone(found), func(r records.VolumeReport) bool { return r.Unproven }); node == "" && len(proven) > 0 {
		found = proven
	}
	if len(found) == 0 {
		return records.VolumeReport{}, absent(
			"no volume %s of namespace %s is in the trash of a node; see 'stead volume ls'", name, namespace(ns))
	}
	return only(found, name, " in the trash", func(r records.VolumeReport) string {
		return fmt.Sprintf("%s is the claim %s of %s, number %d on node %s", r.Volume, r.Claim, r.ID.MemberName(), r.Number, r.Node)
	})
}

// only returns the one that was found, or refuses a name that several have.
func only[V any](found []V, name, where string, describe func(V) string) (one V, err error) {
	if len(found) == 1 {
		return found[0], nil
	}
	var each []string
	for _, v := range found {
		each = append(each, describe(v))
	}
	return one, invalid("%s is the name of %d volumes%s; name one by its id: %s", name, len(found), where, strings.Join(each, ", "))
}

// describeReclaim says what it means to give a volume up.
func describeReclaim(f plan.Forecast, vol records.Volume) []string {
	trash := scalar.Duration{Duration: vol.Trash()}
	if v := newTeller(f).changed()[vol.UID]; v != nil {
		trash = scalar.Duration{Duration: v.Trash()}
	}
	lies := fmt.Sprintf("moved to the trash of node %s; restorable for %s with 'stead volume restore %s', then deleted permanently",
		vol.Node, trash, vol.UID)
	if trash.Duration == 0 {
		lies = fmt.Sprintf("deleted permanently by node %s at once", vol.Node)
	}
	out := []string{fmt.Sprintf("gives up %s, number %d, %s on node %s", nameOf(vol), vol.Number, sizeText(vol.SizeBytes), vol.Node), lies}
	return waits(append(out, leftEffects(f.Before, vol)...), f, vol.ID, vol.Node)
}

// leftEffects says what a volume less means for a set that is gone and may come back.
func leftEffects(w plan.World, vol records.Volume) []string {
	if w.Set != nil && !w.Set.Deleting {
		return nil
	}
	var others []string
	for i := range w.Slots {
		for claim, v := range w.Slots[i].Volumes {
			if v.ID.Ordinal != vol.ID.Ordinal && plan.Kept(v) {
				others = append(others, records.VolumeName(v.ID, claim))
			}
		}
	}
	if len(others) == 0 {
		return nil
	}
	slices.Sort(others)
	return []string{fmt.Sprintf("warning: %s of the deleted set %s stay; applied again, it continues with these, and %s copies the data from the other members. "+
		"Give up fewer than half of the members' volumes, or all of them to start with new ones",
		listed(others, func(name string) string { return name }), vol.ID.Set, vol.ID.MemberName())}
}

func sizeText(bytes int64) string { return (scalar.Quantity{Milli: bytes * 1000}).String() }

// ask writes what a person asks of a volume, unless the planner would refuse it: guarded
// by all that the judgement rests on. said is of a volume in the trash. judged is told the
// world in which it holds.
func (s volumes) ask(ctx context.Context, q records.VolumeRequest, said *records.VolumeReport, dryRun bool, judged func(plan.Forecast)) error {
	var w plan.World
	var guards []store.Compare
	key := store.VolumeRequestKey(q.ID, q.Claim)
	s.cfg.Cache.Look(func(v cache.View) {
		w = s.cfg.Planner.World(v, q.ID.Ref(), nil)
		if id := v.Identity(q.ID); id != nil {
			q.Token = id.LastToken
		}
		guards = []store.Compare{
			v.Seen(store.SetKey(q.ID.Ref())), v.Seen(store.MemberKey(q.ID)), v.Seen(store.IdentityKey(q.ID)),
			v.Seen(key), v.Seen(store.VolumeKey(q.ID, q.Claim)),
		}
	})
	what := "volume " + records.VolumeName(q.ID, q.Claim)
	if why := plan.Refusal(w, q, said); why != "" {
		return precondition("%s: %s; nothing was changed", what, why)
	}
	forecast := plan.Preview(asked(w, q, said))
	judged(forecast)
	if dryRun {
		return nil
	}
	q.At = time.Now().UTC()
	txn := store.Txn{If: guards, Then: []store.Op{store.Put(key, store.Encode(q))}}
	if q.Verb == records.VerbRestore {
		if err := s.restores(ctx, comesAs(forecast, q, said), &txn); err != nil {
			return err
		}
	}
	return s.commit(ctx, what, txn)
}

// comesAs is the volume that a request brings, as it will count; nil: it takes the place of one that counts. said is that of one in the
// trash.
func comesAs(f plan.Forecast, q records.VolumeRequest, said *records.VolumeReport) *records.VolumeReport {
	switch {
	case said != nil:
		return said
	case slotOf(f.Before.Slots, q.ID).Volumes[q.Claim] != nil:
		return nil
	}
	out := &records.VolumeReport{ID: q.ID, Claim: q.Claim}
	for _, step := range f.Steps {
		if a, is := step.Action.(plan.RestoreVolume); is && a.Volume.UID == q.Volume {
			out.SizeBytes = a.Volume.SizeBytes
		}
	}
	return out
}

// asked is w with what a person asks of a volume.
func asked(w plan.World, q records.VolumeRequest, said *records.VolumeReport) plan.World {
	slot := slotOf(w.Slots, q.ID)
	slot.Asked = maps.Clone(slot.Asked)
	if slot.Asked == nil {
		slot.Asked = map[spec.ClaimName]*records.VolumeRequest{}
	}
	slot.Asked[q.Claim] = &q
	if said != nil {
		slot.Said = maps.Clone(slot.Said)
		if slot.Said == nil {
			slot.Said = map[spec.ClaimName]*records.VolumeReport{}
		}
		slot.Said[q.Claim] = said
	}
	return w
}

// findVolume is the volume that a person names as it is shown, or by its id. A name is
// compared whole, never taken apart: it may be that of several. known is the id that the
// caller has seen under the name; "": none.
func (s volumes) findVolume(ctx context.Context, ns, name, known string) (records.Volume, error) {
	all, err := stored[records.Volume](ctx, s.shared, store.KindVolume, namespace(ns))
	if err != nil {
		return records.Volume{}, err
	}
	found := slices.DeleteFunc(all, func(v records.Volume) bool {
		return name == "" || records.VolumeName(v.ID, v.Claim) != name && string(v.UID) != name
	})
	if len(found) == 0 {
		return records.Volume{}, absent("there is no volume %s in namespace %s; see 'stead volume ls'", name, namespace(ns))
	}
	one, err := only(found, name, "", func(v records.Volume) string {
		return fmt.Sprintf("%s is the claim %s of %s", v.UID, v.Claim, v.ID.MemberName())
	})
	if err == nil && known != "" && known != string(one.UID) {
		return one, conflict("%s is another volume now (%s, not %s); nothing was changed", name, one.UID, known)
	}
	return one, err
}

// nameOf names a volume beyond doubt.
func nameOf(v records.Volume) string {
	return fmt.Sprintf("volume %s (%s)", records.VolumeName(v.ID, v.Claim), v.UID)
}
