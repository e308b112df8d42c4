package sim

import (
	"time"

	"github.com/stead-project/stead/spec"
)

// change edits a set that is not being deleted, as its user.
func (w *World) change(edit func(*spec.Set)) bool {
	ref := w.someRef()
	old, rev := w.set(ref)
	if old == nil || old.Deleting {
		return false
	}
	set := spec.Clone(*old)
	edit(&set)
	set.Generation++
	w.putSet(set, rev)
	return true
}

// retain says what becomes of volumes, in all four combinations.
func (w *World) retain() bool {
	return w.change(func(s *spec.Set) {
		both := []spec.Retention{spec.Retain, spec.Delete, spec.Delete}
		s.Spec.Retention = &spec.RetentionPolicy{WhenScaled: both[w.r.IntN(3)], WhenDeleted: both[w.r.IntN(3)]}
	})
}

// claim adds a claim, has one grow, or changes how long its volumes lie in the trash.
func (w *World) claim() bool {
	return w.change(func(s *spec.Set) {
		claims := s.Spec.VolumeClaimTemplates
		if len(claims) < 2 && w.chance(2) || len(claims) == 0 {
			name := []string{"data", "log"}[len(claims)]
			s.Spec.VolumeClaimTemplates = append(claims, spec.ClaimTemplate{Metadata: spec.ObjectMeta{Name: name}, Spec: claimOf(1000)})
			return
		}
		c := &claims[w.r.IntN(len(claims))]
		if w.chance(2) {
			c.Spec = claimOf(c.Spec.Resources.Requests["storage"].Milli + 1000)
			return
		}
		c.Reclaim = &spec.Reclaim{After: &spec.Duration{Duration: time.Duration(w.r.IntN(60)) * time.Second}}
	})
}

func claimOf(milli int64) spec.ClaimSpec {
	return spec.ClaimSpec{Resources: spec.VolumeResources{Requests: map[string]spec.Quantity{"storage": {Milli: milli}}}}
}

// scale asks for another number of members.
func (w *World) scale() bool {
	return w.change(func(s *spec.Set) {
		n := int32(w.r.IntN(6))
		s.Spec.Replicas = &n
		if s.InitialReplicas == 0 {
			s.InitialReplicas = int(n)
		}
	})
}
