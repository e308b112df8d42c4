package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// claims decides about the PersistentVolumeClaims of an apply; conflicts tell why what is there does
// not allow it.
func (d *draft) claims(o *manifest.Objects) (conflicts []string, err error) {
	for _, m := range o.Claims {
		e, old, now, err := claimEdit(m, d.stored)
		if err != nil {
			return nil, err
		}
		var wrong []manifest.Problem
		switch {
		case old == nil:
			var nodes []plan.Node
			d.cfg.Cache.Look(func(v cache.View) { nodes = d.cfg.Planner.Nodes(v) })
			var warnings []string
			wrong, warnings = unknownClasses("claim "+string(now.Namespace)+"/"+now.Name, []claimedClass{{"spec.storageClassName", now.Spec.Class()}}, nodes)
			alone, warning := unshared(now, nodes)
			if len(wrong) == 0 {
				wrong = alone
			}
			if warning != "" {
				warnings = []string{warning} // which says it all
			}
			d.warnings = append(d.warnings, warnings...)
		case old.Deleting:
			wrong = []manifest.Problem{{Path: "metadata.name", What: fmt.Sprintf("claim %s/%s is being deleted", now.Namespace, now.Name),
				Fix: "wait until it is gone ('stead get pvc'), and apply again"}}
		default:
			wrong = manifest.ValidateClaimUpdate(&old.Spec, &now.Spec)
			if size, was := now.Spec.SizeBytes(), old.Spec.SizeBytes(); size > was {
				e.applied.Effects = append(e.applied.Effects, fmt.Sprintf("grows the volume from %s to %s", sizeText(was), sizeText(size)))
			}
		}
		conflicts = append(conflicts, texts(o.Locate("PersistentVolumeClaim", now.Namespace, now.Name, wrong))...)
		d.edits = append(d.edits, e)
		d.after.claims[now.Identity()] = now
	}
	return conflicts, nil
}

// claimEdit makes the claim of m, or makes it equal to m.
func claimEdit(m spec.PersistentVolumeClaim, kvs map[string]store.KV) (e edit, old, now *records.ClaimRecord, err error) {
	type record = records.ClaimRecord
	now = &record{Meta: records.MetaOf(m.Metadata), Spec: m.Spec}
	e, err = objectEdit(proto.KindClaim, kvs, now, func(was *record) bool {
		old = was
		return sameJSON(was.Spec, now.Spec)
	}, func(r *record) any { return manifest.OfClaim(r) })
	return e, old, now, err
}

// missingClaims warns of claims that a set of this apply names and that are nowhere, and of those
// that have the name of a member's own volume, which Kubernetes would take for it.
func (a *projection) missingClaims(v cache.View) (out []string) {
	for _, ref := range a.refs() {
		set := a.sets[ref]
		for _, name := range set.Spec.Template.Spec.ClaimNames() {
			if a.claims[spec.ClaimIdentity(ref.Namespace, name)] == nil && cache.ClaimOf(v, ref.Namespace, name).Record == nil {
				out = append(out, fmt.Sprintf("set %s: there is no PersistentVolumeClaim %s; members wait for it", ref, name))
			}
		}
		for id := range a.claims {
			if name, _ := id.Ref().ClaimName(); id.Namespace == ref.Namespace && ownVolume(&set, name) {
				out = append(out, fmt.Sprintf("set %s: a member has a volume of its own named %s, and does not use the PersistentVolumeClaim of that name", ref, name))
			}
		}
	}
	return out
}

// ownVolume reports whether a volume of a member of set has the name.
func ownVolume(set *records.Set, name string) bool {
	for i := range set.Spec.VolumeClaimTemplates {
		member, is := strings.CutPrefix(name, set.Spec.VolumeClaimTemplates[i].Metadata.Name+"-")
		if of, _, err := spec.ParseMemberName(member); is && err == nil && of == set.Ref.Name {
			return true
		}
	}
	return false
}

// deleteClaim marks a claim. The engine removes it when no life uses its volume any more, and gives the
// volume up: Kubernetes' protection of claims in use.
func (s objects) deleteClaim(ctx context.Context, ns spec.Namespace, name string) (*proto.DeleteResponse, error) {
	gone := notFound(proto.KindClaim, ns, name)
	if v, err := volumes(s).findVolume(ctx, string(ns), name, ""); err == nil {
		gone = precondition("volume %s is kept for %s and no claim's; 'stead volume reclaim %s' gives it up", name, v.ID.MemberName(), name)
	}
	out := &proto.DeleteResponse{}
	err := editRecord(ctx, s.shared, store.ClaimKey(ns, name), "claim "+name, gone, func(now *records.ClaimRecord) (bool, error) {
		was := now.Deleting
		now.Deleting = true
		var c *plan.ClaimState
		s.cfg.Cache.Look(func(v cache.View) { c = cache.ClaimOf(v, ns, name) })
		out.Effects = describeClaimDeletion(c)
		return !was, nil
	}, nil)
	return out, err
}

// describeClaimDeletion says what becomes of the volume of a claim, and for what that waits.
func describeClaimDeletion(c *plan.ClaimState) (out []string) {
	if vol := c.Volume(); vol != nil {
		out = append(out, fmt.Sprintf("gives up %s, %s: moved to the trash of node %s; restorable for %s with 'stead volume restore %s', then deleted permanently",
			nameOf(*vol), sizeText(vol.SizeBytes), vol.Node, scalar.Duration{Duration: vol.Trash()}, vol.UID))
	}
	if user := c.User(spec.Identity{}); user != "" {
		out = append(out, fmt.Sprintf("waits until nothing uses its volume: %s may; no life starts with it any more", user))
	}
	return out
}
