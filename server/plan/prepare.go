package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Prepare is what each node with a member of the set is to have before an update stops the first one that is well; nil:
// nothing. revision finds a stored one, hash is that of the set's template.
func Prepare(set *records.Set, st *records.SetStatus, hash spec.RevisionHash, revision func(spec.RevisionHash) *records.Revision) *records.Preparation {
	if set == nil || set.Deleting || set.Orphaned || set.Paused || st == nil || st.CurrentRevision == hash || st.RolledBackFrom == hash {
		return nil
	}
	target, current := revision(hash), revision(st.CurrentRevision)
	if target == nil || current == nil || set.Spec.UpdateStrategy.Type == spec.OnDeleteStrategy {
		return nil
	}
	images := newImages(&target.Template, &current.Template)
	if len(images) == 0 {
		return nil
	}
	return &records.Preparation{Ref: set.Ref, Revision: hash, Images: images, PullSecrets: target.Template.Spec.ImagePullSecrets}
}

// newImages are those that members of target run and those of current do not. Others are left alone: a pull would change
// what a member gets that runs, and is started again in place.
func newImages(target, current *spec.Template) (images []records.NewImage) {
	for c := range target.Spec.All() {
		known := slices.ContainsFunc(images, func(i records.NewImage) bool { return i.Image == c.Image })
		for old := range current.Spec.All() {
			known = known || old.Image == c.Image
		}
		if !known {
			images = append(images, records.NewImage{Image: c.Image, Policy: c.ImagePullPolicy})
		}
	}
	return images
}

// unprepared says why the update may not stop a member that is well: a node with a member that is not below the partition
// does not have the images of the revision where members go. nil: it may. Nodes that are silent, and those
// whose agents or servers do not prepare, are not waited for.
func (r rollout) unprepared() *Blocked {
	target, current := r.template(r.targetRevision), r.template(r.current)
	if r.world.prepared || r.targetRevision == r.current || target == nil || current == nil || len(newImages(target, current)) == 0 {
		return nil
	}
	var first *Blocked
	for i := range r.world.Nodes {
		n := &r.world.Nodes[i]
		if !n.Connected() || n.Facts == nil || !n.Facts.Prepares || !r.updatesOn(n.Node.Name) {
			continue
		}
		p := n.Facts.PreparedFor(r.world.Set.Ref, r.targetRevision)
		switch {
		case p == nil:
			if first == nil {
				first = &Blocked{Reason: causes.BlockedPulling, Text: fmt.Sprintf(
					"%s: node %s is pulling those of revision %s, and no member is stopped before", causes.AwaitsImages, n.Node.Name, r.targetRevision)}
			}
		case !p.Done:
			return &Blocked{Reason: causes.BlockedReason(p.Cause), Text: fmt.Sprintf(
				"%s: node %s does not get those of revision %s, and no member is stopped before: %s", causes.AwaitsImages, n.Node.Name, r.targetRevision, p.Message)}
		}
	}
	return first
}

// updatesOn: the node has a member that is not below the partition, whatever it runs: of those that are left out of a
// folded world it is not known on which node they run what.
func (r rollout) updatesOn(node spec.NodeName) bool {
	if r.world.Folded != nil && r.world.Folded.byNode[node] > 0 {
		return true
	}
	return slices.ContainsFunc(r.members, func(t *memberState) bool {
		return t.Member != nil && t.Member.Node == node && !r.belowPartition(t)
	})
}
