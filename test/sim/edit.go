package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/test/sim/rules"
)

// change edits a set that is not being deleted, as its user.
func (w user) change(edit func(*records.Set)) bool {
	ref := w.someRef()
	old, rev := w.set(ref)
	if old == nil || old.Deleting {
		return false
	}
	if old.Orphaned && w.chance(2) {
		return false
	}
	w.apply(old, rev, edit)
	return true
}

// apply has a set be as it is after an edit. Who applies one that is orphaned adopts it.
func (w user) apply(old *records.Set, seen store.Rev, edit func(*records.Set)) {
	set := spec.Clone(*old)
	set.Orphaned = false
	edit(&set)
	set.Generation++
	w.putSet(set, seen)
}

// retain says what becomes of volumes, in all four combinations.
func (w user) retain(s *records.Set) {
	both := []spec.Retention{spec.Retain, spec.Delete, spec.Delete}
	s.Spec.Retention = &spec.RetentionPolicy{WhenScaled: both[w.r.IntN(3)], WhenDeleted: both[w.r.IntN(3)]}
}

// claim adds a claim, has one grow, or changes how long its volumes lie in the trash.
func (w user) claim(s *records.Set) {
	claims := s.Spec.VolumeClaimTemplates
	if len(claims) < 2 && w.chance(2) || len(claims) == 0 {
		s.Spec.VolumeClaimTemplates = append(claims, spec.ClaimTemplate{Metadata: spec.ObjectMeta{Name: claimNames[len(claims)]}, Spec: claimOf(1000)})
		w.classify(s)
		return
	}
	c := &claims[w.r.IntN(len(claims))]
	if w.chance(2) {
		c.Spec.Resources = claimOf(c.Spec.Resources.Requests["storage"].Milli + 1000).Resources
		return
	}
	c.Reclaim = &spec.Reclaim{After: &scalar.Duration{Duration: time.Duration(w.r.IntN(60)) * time.Second}}
}

// claimNames are those that a set may have, in this order.
var claimNames = []string{"data", "log"}

func claimOf(milli int64) spec.ClaimSpec {
	return spec.ClaimSpec{Resources: spec.VolumeResources{Requests: map[string]scalar.Quantity{"storage": {Milli: milli}}}}
}

// scale asks for another number of members.
func (w user) scale(s *records.Set) {
	n := int32(w.r.IntN(6))
	s.Spec.Replicas = &n
	if s.InitialReplicas == 0 {
		s.InitialReplicas = int(n)
	}
}

// moveRange moves the range of ordinals, or reserves some.
func (w user) moveRange(s *records.Set) {
	o := &spec.Ordinals{Start: int32(w.r.IntN(4))}
	for range w.r.IntN(3) {
		first := int32(w.r.IntN(6))
		o.Reserved = append(o.Reserved, spec.OrdinalSpan{First: first, Last: first + int32(w.r.IntN(3))})
	}
	s.Spec.Ordinals = o
	if w.chance(3) {
		s.Spec.Ordinals = nil
	}
}

// orphan lets go of a set: nothing is done for it until somebody adopts it.
func (w user) orphan() bool {
	ref := w.someRef()
	old, rev := w.set(ref)
	if old == nil || old.Deleting || old.Orphaned {
		return false
	}
	set := spec.Clone(*old)
	set.Orphaned = true
	w.putSet(set, rev)
	return true
}

// adopt applies an orphaned set as it was, or without one of its claims, whose volumes
// nobody uses from then on.
func (w user) adopt() bool {
	ref := w.someRef()
	old, rev := w.set(ref)
	if old == nil || !old.Orphaned {
		return false
	}
	set := spec.Clone(*old)
	set.Orphaned = false
	if claims := set.Spec.VolumeClaimTemplates; len(claims) > 0 && w.chance(4) {
		set.Spec.VolumeClaimTemplates = claims[:len(claims)-1]
		set.Generation++
	}
	w.putSet(set, rev)
	return true
}

// bringBack asks for a volume from the trash, as control does. Whether one that is there by
// the word of its node alone is there a person looks first.
func (w user) bringBack() bool { return w.bringBackOf(w.someRef()) }

// bringBackOf does it for one set, or one claim.
func (w user) bringBackOf(ref spec.SetRef) bool {
	var asked *records.VolumeRequest
	v := w.view()
	x := v.World(ref)
	for _, n := range w.nodes {
		for _, r := range v.VolumeReportsOn(n.name) {
			id := v.Identity(r.ID)
			m := v.Member(r.ID)
			if r.ID.Ref() == ref && r.State == records.VolumeTrashed && m == nil && v.Volume(r.ID, r.Claim) == nil && !rules.Orphaned(x.Set) &&
				(asked == nil || w.chance(2)) && together(x, r) && (!r.Unproven || n.hasTrashed(r.Volume)) {
				asked = &records.VolumeRequest{ID: r.ID, Claim: r.Claim, Volume: r.Volume, Verb: records.VerbRestore, Node: r.Node}
				if id != nil {
					asked.Token = id.LastToken
				}
			}
		}
	}
	if asked == nil {
		return false
	}
	return w.ask("wants volume %s of %s back", *asked)
}

// together: a person who looks does not bring a volume back to one node while the
// identity has another one elsewhere, or is about to: its member could never begin.
func together(x plan.World, r *records.VolumeReport) bool {
	for _, s := range x.Slots {
		if s.ID != r.ID {
			continue
		}
		for claim, vol := range s.Volumes {
			if claim != r.Claim && vol.Node != r.Node {
				return false
			}
		}
		for claim := range s.Asked {
			if claim != r.Claim {
				return false
			}
		}
	}
	return true
}

// loseNodes says what becomes of members whose node is silent.
func (w user) loseNodes(s *records.Set) { s.Spec.NodeLoss = someLoss(w.r) }

// someLoss is mostly Replace, with a bound that passes in a run.
func someLoss(r *rand.Rand) *spec.NodeLoss {
	if r.IntN(4) == 0 {
		return nil
	}
	return &spec.NodeLoss{Policy: spec.NodeLossReplace, After: &scalar.Duration{Duration: time.Duration(10+r.IntN(30)) * time.Second}}
}

// giveUp asks for the end of one volume that nobody uses and nobody wants, as control
// does.
func (w user) giveUp() bool {
	ref := w.someRef()
	x := w.view().World(ref)
	if rules.Orphaned(x.Set) {
		return false
	}
	var asked *records.VolumeRequest
	r := rules.Read(x)
	for vol, s := range volumesOf(x) {
		if s.Member == nil && !r.IsWanted(s.ID.Ordinal) && !vol.Fate.Ordered() && (asked == nil || w.chance(2)) {
			asked = new(request(s, vol, records.VerbReclaim))
		}
	}
	if asked == nil {
		return false
	}
	if w.chance(2) {
		asked.Trash = &scalar.Duration{Duration: time.Duration(w.r.IntN(30)) * time.Second}
	}
	return w.ask("gives up volume %s of %s", *asked)
}

// deadline says how long a rollout may stand still, and what becomes of it then.
func (w user) deadline(s *records.Set) {
	seconds := s.Spec.MinReadySeconds + int32(10+w.r.IntN(40))
	s.Spec.ProgressDeadlineSeconds = &seconds
	rolling(&s.Spec.UpdateStrategy).OnFailure = []string{"", spec.OnFailureRollback, spec.OnFailureRollback}[w.r.IntN(3)]
	if w.chance(2) {
		s.Spec.Template.Spec.Containers[0].Image = images[4+w.r.IntN(3)]
	}
}

// recreate has all stop before any starts on another template.
func (w user) recreate(s *records.Set) {
	s.Spec.UpdateStrategy = spec.UpdateStrategy{Type: spec.RecreateStrategy}
	s.Spec.Template.Spec.Containers[0].Image = images[w.r.IntN(len(images))]
}

// pause holds the rollout back, or lets it go on.
func (w user) pause(s *records.Set) { s.Paused = !s.Paused }

// setFloor says how many members must stay available, and asks for another template.
func (w user) setFloor(s *records.Set) {
	s.Spec.Disruption = w.floor()
	s.Spec.Template.Spec.Containers[0].Image = images[w.r.IntN(4)]
}

// rename gives a set another governing service, as control does: not before the rename
// before it is complete, and with a restart of all.
func (w user) rename() bool {
	ref := w.someRef()
	old, rev := w.set(ref)
	if old == nil || old.Deleting || old.Orphaned {
		return false
	}
	x := w.view().World(ref)
	if x.Status == nil || x.Status.ServiceName == "" || plan.Former(old, x.Status, x.Slots) != "" {
		return false
	}
	names := []string{"", "web", "data"}
	at := slices.Index(names, old.Spec.ServiceName)
	w.apply(old, rev, func(set *records.Set) {
		set.Spec.ServiceName, set.RestartedAt = names[(at+1+w.r.IntN(2))%3], fmt.Sprint(w.clock.UnixNano())
		w.note("the user renames the service %s to %s", old.Service(), set.Service())
	})
	return true
}
