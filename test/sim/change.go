package sim

import (
	"context"
	"fmt"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/changes"
	"github.com/stead-project/stead/spec/scalar"
)

// change has a set be edited in what changes in place, and mostly has everybody do some of what follows.
func (w *Cluster) change() bool {
	w.changes = true
	return w.editAndGoOn(user{w}.editInPlace)
}

// editInPlace gives members other images or resources, now and then with something else beside it, or goes back to an earlier revision;
// and says what may change in place.
func (w user) editInPlace(s *records.Set) {
	u := &s.Spec.UpdateStrategy
	if len(u.InPlace) == 0 && !w.chance(6) || w.chance(12) {
		u.InPlace = [][]changes.Kind{{changes.Resources, changes.Image}, {changes.Image, changes.Resources}, {changes.Image}, {changes.Resources}}[w.r.IntN(4)]
		if u.Type != "" {
			*u = spec.UpdateStrategy{InPlace: u.InPlace}
		}
	}
	if w.chance(5) && w.undo(s) {
		return
	}
	if w.chance(3) {
		w.editResources(s)
	}
	if w.chance(2) {
		s.Spec.Template.Spec.Containers[0].Image = append(images[:4:4], images[:4]...)[w.r.IntN(8)]
		if w.chance(6) {
			s.Spec.Template.Spec.Containers[0].Image = images[4+w.r.IntN(3)]
		}
	}
	for c, role := range s.Spec.Template.Spec.All() {
		if role == spec.RoleSidecar && w.chance(3) {
			c.Image = images[w.r.IntN(4)]
		}
	}
	switch w.r.IntN(16) {
	case 0:
		s.Spec.Template.Spec.Containers[0].Env = []spec.EnvVar{{Name: "M", Value: fmt.Sprint(w.r.IntN(3))}}
	case 1:
		rolling(u).Partition = new(int32(w.r.IntN(5)))
	case 2:
		s.Paused = !s.Paused
	case 3:
		w.scale(s)
	case 4:
		rolling(u).MaxUnavailable = &scalar.IntOrPercent{Number: int32(1 + w.r.IntN(3))}
	}
}

func (w user) editResources(s *records.Set) {
	r := &s.Spec.Template.Spec.Containers[0].Resources
	some := func() map[string]scalar.Quantity {
		return map[string]scalar.Quantity{"cpu": {Milli: int64(1 + w.r.IntN(3))}, "memory": {Milli: int64(1000 * (20 + w.r.IntN(30)))}}
	}
	r.Requests = some()
	if w.chance(3) {
		r.Limits = map[string]scalar.Quantity{"memory": {Milli: int64(1000 * (50 + w.r.IntN(50)))}}
	}
	if w.chance(8) {
		r.Requests, r.Limits = nil, nil
	}
}

// Resize implements runtime.Runtime. What a process uses of memory, and what the host says, differs each time.
func (h hostRuntime) Resize(_ context.Context, id runtime.ContainerID, r runtime.Resources) error {
	return h.act(id.ID, "Resize", func(p *place) error {
		w, b := h.n.w, p.box(id.Name)
		switch {
		case b.state == "":
			return runtime.ErrNotFound
		case b.alive.IsZero():
			return runtime.ErrNotRunning
		case w.chance(12) && !w.judge.settling:
			return fmt.Errorf("resize: %w", runtime.ErrUnavailable)
		case w.chance(6) && r.MemoryBytes > 0 && r.MemoryBytes < 80:
			w.count("fault: change refused")
			return fmt.Errorf("it uses more than %d bytes: %w", r.MemoryBytes, runtime.ErrRefused)
		}
		w.judge.resizes(b, r)
		b.resources = r
		return nil
	})
}
