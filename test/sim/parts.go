package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// initImages are what init containers run: the first ends with 0, the second sometimes, the third never.
var initImages = []string{"init-ends", "init-fails-at-times", "init-fails"}

// compose has the members of this run be of several containers, mostly. It is the second choice of every
// run: runs that were kept before there was such a thing are without.
func (w *Cluster) compose() bool {
	w.composed = !w.chance(4)
	for _, ref := range w.refs {
		if old, rev := w.set(ref); w.composed && old != nil && !old.Deleting {
			set := spec.Clone(*old)
			w.furnish(&set, w.r)
			if old.Generation > 1 {
				set.Generation++
			}
			w.putSet(set, rev)
		}
	}
	return true
}

// furnish gives a set's members init containers, sidecars, further containers and hooks, or takes them
// away.
func (w *Cluster) furnish(set *records.Set, r *rand.Rand) {
	s := &set.Spec.Template.Spec
	s.InitContainers, s.Containers = nil, s.Containers[:1]
	s.Containers[0].Lifecycle, s.Containers[0].LivenessProbe = someLifecycle(r), someProbe(r)
	for i := range r.IntN(4) {
		c := spec.Container{Name: fmt.Sprint("i", i), Image: initImages[max(0, r.IntN(8)-5)]}
		if r.IntN(2) == 0 {
			c.Image, c.RestartPolicy, c.Lifecycle = images[i], new(spec.RestartAlways), someLifecycle(r)
			c.StartupProbe, c.ReadinessProbe, c.LivenessProbe = someProbe(r), someProbe(r), someProbe(r)
		}
		s.InitContainers = append(s.InitContainers, c)
	}
	if r.IntN(3) == 0 {
		s.Containers = append(s.Containers, spec.Container{
			Name: "d", Image: images[0], ReadinessProbe: someProbe(r), LivenessProbe: someProbe(r), Lifecycle: someLifecycle(r),
		})
	}
}

func someProbe(r *rand.Rand) *spec.Probe {
	if r.IntN(2) == 0 {
		return nil
	}
	return &spec.Probe{}
}

func someLifecycle(r *rand.Rand) *spec.Lifecycle {
	l := spec.Lifecycle{PostStart: someHook(r), PreStop: someHook(r)}
	if l.PostStart == nil && l.PreStop == nil {
		return nil
	}
	return &l
}

// parts gives a set's members other containers.
func (w user) parts(s *records.Set) {
	if w.composed {
		w.furnish(s, w.r)
	}
}

// mendParts has all init containers and postStart hooks of a template succeed.
func mendParts(s *spec.MemberSpec) {
	for c, role := range s.All() {
		if role == spec.RoleInit && c.Image == initImages[2] {
			c.Image = initImages[0]
		}
		if c.Lifecycle == nil || c.Lifecycle.PostStart == nil {
			continue
		}
		if command := c.Lifecycle.PostStart.Exec.Command; command[0] == hookFails || command[0] == hookHangs {
			command[0] = hookQuick
		}
	}
}
