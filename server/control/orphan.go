package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// editable refuses an edit that nobody would carry out.
func editable(set *records.Set) error {
	switch {
	case set.Deleting:
		return precondition("set %s is being deleted", set.Ref)
	case set.Orphaned:
		return precondition("set %s is orphaned; apply it again to adopt its members, or delete it", set.Ref)
	}
	return nil
}

// orphanSet lets go of a set: its record stays, with its uid, and nothing is done for
// its members until apply adopts them. The spec stays, and so does the generation: a
// file that was read before may be applied.
func (s objects) orphanSet(ctx context.Context, ref spec.SetRef) (*proto.DeleteResponse, error) {
	out := &proto.DeleteResponse{}
	err := s.editSet(ctx, ref, func(now *records.Set) (bool, error) {
		if now.Deleting {
			return false, precondition("set %s is being deleted; it cannot be orphaned any more", ref)
		}
		was := now.Orphaned
		now.Orphaned = true
		if !was {
			edited(ctx, now, now, proto.CascadeOrphan)
		}
		out.Effects = describeOrphaned(s.forecast(now))
		return !was, nil
	})
	return out, err
}

// otherSet refuses to adopt the members of a set with the manifest of another.
func otherSet(old *records.Set, read manifest.SeenSet) []manifest.Problem {
	if read.UID == "" || read.UID == old.UID {
		return nil
	}
	return []manifest.Problem{{
		Path: "metadata.uid", What: fmt.Sprintf("is %s, but the orphaned set %s has %s: this is the manifest of another set", read.UID, old.Ref, old.UID),
		Fix: "remove metadata.uid to adopt the members all the same",
	}}
}

// adoptProblems tells where a set does not suit the members and volumes that are there.
// was is the set as it was orphaned, w its world as it will be.
func adoptProblems(was *records.Set, w plan.World) (out []manifest.Problem) {
	for i := range w.Set.Spec.VolumeClaimTemplates {
		out = append(out, classProblem(i, &w.Set.Spec.VolumeClaimTemplates[i], w.Slots)...)
	}
	for _, u := range inUse(w) {
		if !w.Set.Spec.Selector.Matches(u.template.Metadata.Labels) {
			out = append(out, manifest.Problem{
				Path: "spec.selector", What: fmt.Sprintf("does not select %s, whose revision %s has the labels %s", u.whose, u.hash, labelText(u.template.Metadata.Labels)),
				Fix: "select members by labels that they have",
			})
		}
		for i := range was.Spec.VolumeClaimTemplates {
			if name := was.Spec.VolumeClaimTemplates[i].Metadata.Name; w.Set.Spec.Claim(spec.ClaimName(name)) == nil && u.template.Mounts(name) {
				out = append(out, manifest.Problem{
					Path: "spec.volumeClaimTemplates", What: fmt.Sprintf("the claim %q must not go: %s mounts it on revision %s", name, u.whose, u.hash),
					Fix: "keep it until every member runs a template without it; its volumes stay in any case",
				})
			}
		}
	}
	return out
}

// usedRevision is a revision that a member runs, or begins with when it dies now.
type usedRevision struct {
	hash     spec.RevisionHash
	whose    string
	template *spec.Template
}

// inUse lists the revisions in use: each once, with the first whose it is.
func inUse(w plan.World) (out []usedRevision) {
	add := func(h spec.RevisionHash, whose string) {
		known := slices.ContainsFunc(out, func(u usedRevision) bool { return u.hash == h })
		for _, r := range w.Revisions {
			if r.Hash == h && !known {
				out = append(out, usedRevision{h, whose, &r.Template})
			}
		}
	}
	for i := range w.Slots {
		t := &w.Slots[i]
		if t.Member != nil {
			add(t.Member.Revision, t.ID.MemberName())
		}
		if t.Identity != nil {
			add(t.Identity.Due, t.ID.MemberName())
		}
	}
	if w.Status != nil {
		add(w.Status.CurrentRevision, "the current revision")
	}
	return out
}

// addedProblems tells of claims that a set gets, or gets back, and whose volumes are there
// from before, of another class.
func addedProblems(was *records.Set, w plan.World) (out []manifest.Problem) {
	for i := range w.Set.Spec.VolumeClaimTemplates {
		c := &w.Set.Spec.VolumeClaimTemplates[i]
		if was.Spec.Claim(spec.ClaimName(c.Metadata.Name)) == nil {
			out = append(out, classProblem(i, c, w.Slots)...)
		}
	}
	return out
}

// classProblem: a volume does not move to another class.
func classProblem(at int, c *spec.ClaimTemplate, slots []plan.Slot) []manifest.Problem {
	for i := range slots {
		v := slots[i].Volumes[spec.ClaimName(c.Metadata.Name)]
		if v == nil || v.Fate == records.FateReclaiming || v.Class == c.Spec.Class() {
			continue
		}
		return []manifest.Problem{{
			Path: fmt.Sprintf("spec.volumeClaimTemplates[%d].spec.storageClassName", at),
			What: fmt.Sprintf("is %q, but the volume of %s is of class %q, and a volume does not move to another", c.Spec.Class(), v.ID.MemberName(), v.Class),
			Fix:  "write " + v.Class,
		}}
	}
	return nil
}

func labelText(labels map[string]string) string {
	var out []string
	for name, value := range labels {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
