package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// owned refuses an edit that nobody would carry out.
func owned(set *records.Set) error {
	switch {
	case set.Deleting:
		return status.Errorf(codes.FailedPrecondition, "set %s is being deleted", set.Ref)
	case set.Orphaned:
		return status.Errorf(codes.FailedPrecondition, "set %s is orphaned: nobody owns its members; apply it again to adopt them, or delete it", set.Ref)
	}
	return nil
}

// orphanSet lets go of a set: its record stays, with its uid, and nothing is done for
// its members until apply adopts them. The spec stays, and so does the generation: a
// file that was read before may be applied.
func (s *Server) orphanSet(ctx context.Context, ref spec.SetRef) (*proto.DeleteResponse, error) {
	out := &proto.DeleteResponse{}
	err := s.editSet(ctx, ref, func(now *records.Set) (bool, error) {
		if now.Deleting {
			return false, status.Errorf(codes.FailedPrecondition, "set %s is being deleted, and what stops does not start again; it cannot be orphaned any more", ref)
		}
		was := now.Orphaned
		if now.Orphaned = true; !was {
			edited(ctx, now, now, proto.CascadeOrphan)
		}
		s.cfg.Cache.Look(func(v cache.View) { out.Effects = orphanEffects(v.World(ref).Slots) })
		return !was, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// orphanEffects says what becomes of members that nobody owns any more.
func orphanEffects(slots []plan.Slot) []string {
	run, ending := lives(slots)
	var out []string
	if len(run) > 0 {
		out = append(out, "leaves "+memberNames(run)+" running; nobody replaces, updates, scales or stops them")
	}
	if len(ending) > 0 {
		out = append(out, "still stops "+memberNames(ending)+", as was told before; nobody replaces what is over")
	}
	return append(out, "names, addresses and volumes stay; applying the set again adopts them")
}

// lives tells the members that run, and those that were told to stop. Who is over is
// neither.
func lives(slots []plan.Slot) (run, ending []spec.Identity) {
	for i := range slots {
		switch t := &slots[i]; {
		case t.Member == nil || t.Report != nil && t.Report.Phase.Over():
		case t.Member.Goal == records.GoalStop:
			ending = append(ending, t.ID)
		default:
			run = append(run, t.ID)
		}
	}
	return run, ending
}

// adoptEffects says whom a set adopts, whom it creates and whom it stops. w is its world
// as it will be.
func adoptEffects(was *records.Set, w plan.World) []string {
	wanted, now := w.Set.Range(), w.Set
	run, ending := lives(w.Slots)
	there := map[int]bool{}
	var own, surplus []spec.Identity
	for _, id := range run {
		if there[id.Ordinal] = true; wanted.Has(id.Ordinal) {
			own = append(own, id)
		} else {
			surplus = append(surplus, id)
		}
	}
	missing := some{}
	for o := wanted.Next(0); o < wanted.End; o = wanted.Next(o + 1) {
		if there[o] {
			continue
		}
		if missing.count++; missing.count <= shownMembers {
			missing.first = append(missing.first, o)
		}
	}
	slices.Reverse(surplus)
	out := []string{"adopts nobody: no member runs"}
	if len(own) > 0 {
		out[0] = "adopts " + memberNames(own)
	}
	if missing.count > 0 {
		out = append(out, "creates "+members(now, missing))
	}
	if len(surplus) > 0 {
		out = append(out, fmt.Sprintf("stops %s, which the set does not want; %s", memberNames(surplus), volumesOf(now)))
	}
	if len(ending) > 0 {
		out = append(out, "waits for "+memberNames(ending)+", told to stop before")
	}
	for i := range was.Spec.VolumeClaimTemplates {
		name := was.Spec.VolumeClaimTemplates[i].Metadata.Name
		if !slices.ContainsFunc(now.Spec.VolumeClaimTemplates, func(c spec.ClaimTemplate) bool { return c.Metadata.Name == name }) {
			out = append(out, fmt.Sprintf("the claim %s goes; its volumes stay, and nobody uses them", name))
		}
	}
	return append(append(out, asked(w.Slots)...), claimEffects(was, now)...)
}

// asked says whose restart a person asked for before, and that it comes now.
func asked(slots []plan.Slot) []string {
	var ids []spec.Identity
	for i := range slots {
		if slots[i].Request != nil {
			ids = append(ids, slots[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return []string{"restarts " + memberNames(ids) + ", as was asked for before the set was orphaned"}
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
	templates := inUse(w)
	claims := map[string]bool{}
	for i := range w.Set.Spec.VolumeClaimTemplates {
		c := &w.Set.Spec.VolumeClaimTemplates[i]
		claims[c.Metadata.Name] = true
		out = append(out, classProblem(i, c, w.Slots)...)
	}
	for _, u := range templates {
		if !w.Set.Spec.Selector.Matches(u.template.Metadata.Labels) {
			out = append(out, manifest.Problem{
				Path: "spec.selector", What: fmt.Sprintf("does not select %s, whose revision %s has the labels %s", u.whose, u.hash, labelText(u.template.Metadata.Labels)),
				Fix: "select members by labels that they have",
			})
		}
		for i := range was.Spec.VolumeClaimTemplates {
			if name := was.Spec.VolumeClaimTemplates[i].Metadata.Name; !claims[name] && u.template.Mounts(name) {
				out = append(out, manifest.Problem{
					Path: "spec.volumeClaimTemplates", What: fmt.Sprintf("the claim %q must not go: %s mounts it on revision %s", name, u.whose, u.hash),
					Fix: "keep it until every member runs a template without it; its volumes stay in any case",
				})
			}
		}
	}
	return out
}

// use is a revision that a member runs, or begins with when it dies now.
type use struct {
	hash     spec.RevisionHash
	whose    string
	template *spec.Template
}

// inUse lists the revisions in use: each once, with the first whose it is.
func inUse(w plan.World) (out []use) {
	add := func(h spec.RevisionHash, whose string) {
		known := slices.ContainsFunc(out, func(u use) bool { return u.hash == h })
		for _, r := range w.Revisions {
			if r.Hash == h && !known {
				out = append(out, use{h, whose, &r.Template})
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
		if !slices.ContainsFunc(was.Spec.VolumeClaimTemplates, func(old spec.ClaimTemplate) bool { return old.Metadata.Name == c.Metadata.Name }) {
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
