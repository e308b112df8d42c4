package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// programs are what an argument has a member do in place of its image, mostly well.
var programs = []string{"good-5", "good-6", "good-5", "good-6", "crash", "never"}

// differ has a set be edited, and mostly has everybody do some of what follows.
func (w *Cluster) differ() bool {
	w.differs = true
	return w.editAndGoOn(user{w}.editDifferences)
}

// editAndGoOn has a set be edited, and everybody do some of what follows.
func (w *Cluster) editAndGoOn(edit func(*records.Set)) bool {
	did := user{w}.change(edit)
	for range w.r.IntN(12) {
		w.advance(time.Second)
		_, _, _ = w.someServer().campaign(), w.someNode().start(), w.connect()
		w.moveRound()
	}
	return did
}

// editDifferences has members of a set differ, or differ otherwise, now and then with another template beside it, a partition or a pause; or goes
// back to an earlier revision.
func (w user) editDifferences(s *records.Set) {
	if w.chance(4) && w.undo(s) {
		return
	}
	c := &s.Spec.Template.Spec.Containers[0]
	switch w.r.IntN(8) {
	case 0:
		s.Spec.Members = nil
	case 1, 2:
		s.Spec.Members = someDifferences(w.r)
	default:
		w.differOnce(s)
	}
	if w.chance(8) {
		c.Env = []spec.EnvVar{{Name: "M", Value: []string{"a", "b"}[w.r.IntN(2)]}}
		if w.chance(3) {
			c.Env = nil
		}
	}
	if w.chance(10) {
		c.Image = images[w.r.IntN(len(images))]
	}
	if w.chance(6) {
		rolling(&s.Spec.UpdateStrategy).Partition = new(int32(w.r.IntN(5)))
	}
	if w.chance(10) {
		s.Paused = !s.Paused
	}
}

// differOnce changes one entry, takes it away, or has it be of other members.
func (w user) differOnce(s *records.Set) {
	all := s.Spec.Members
	if len(all) == 0 {
		s.Spec.Members = someDifferences(w.r)
		return
	}
	i := w.r.IntN(len(all))
	d := &all[i]
	switch {
	case w.chance(4):
		s.Spec.Members = slices.Delete(all, i, i+1)
	case w.chance(2):
		d.Ordinals = someOrdinals(w.r)
	case len(d.Env) > 0:
		d.Env[0].Value += "-"
	case len(d.Args) > 0:
		d.Args[0] = programs[w.r.IntN(len(programs))]
	}
}

// undo has a set be as an earlier revision says, as control does.
func (w user) undo(s *records.Set) bool {
	all := w.view().World(s.Ref).Revisions
	if len(all) == 0 {
		return false
	}
	to := all[w.r.IntN(len(all))]
	service := s.RestartedAt // of a rename that may be under way
	s.SetRevision(to)
	s.RestartedAt = service
	w.note("the user goes back to revision %d of %s", to.Number, s.Ref.Name)
	w.count("rollout undone")
	return true
}

// someDifferences are entries of which no two say the same of a member.
func someDifferences(r *rand.Rand) (list spec.Differences) {
	value := func() string { return []string{"a", "b", "c"}[r.IntN(3)] }
	for kind := range 4 {
		if r.IntN(2) == 0 {
			continue
		}
		d := spec.Difference{Ordinals: someOrdinals(r), Container: containerName}
		switch kind {
		case 0:
			d.Env = []spec.EnvVar{{Name: "M", Value: value()}}
		case 1:
			d.Args = []string{programs[r.IntN(len(programs))]}
		case 2:
			d.Resources = &spec.ResourceRequirements{Requests: map[string]scalar.Quantity{"cpu": {Milli: int64(1 + r.IntN(2))}}}
		case 3:
			d.Env = []spec.EnvVar{{Name: "N", Value: value()}}
		}
		list = append(list, d)
	}
	return list
}

// someOrdinals are few, so that most members run the same by the next revision.
func someOrdinals(r *rand.Rand) []spec.OrdinalSpan {
	first := int32(r.IntN(5))
	list := []spec.OrdinalSpan{{First: first, Last: first + int32(r.IntN(4)/3)}}
	if r.IntN(4) == 0 {
		list = append(list, spec.OrdinalSpan{First: first + 3, Last: first + 3})
	}
	return list
}

// mendDifferences has all members do well.
func mendDifferences(s *records.Set) {
	for i := range s.Spec.Members {
		if d := &s.Spec.Members[i]; len(d.Args) > 0 && d.Args[0] != programs[0] && d.Args[0] != programs[1] {
			d.Args[0] = programs[0]
		}
	}
}
