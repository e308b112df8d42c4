package fakert

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// trashed is a volume in the trash.
type trashed struct {
	entry runtime.Trashed
	until time.Time
}

func placeOf(id spec.Identity, claim spec.ClaimName) string {
	return fmt.Sprintf("/fake/volumes/%s/%s/%s-%d", id.Namespace, id.Set, claim, id.Ordinal)
}

// Reclaim moves a volume into the trash, where its time runs by the host's clock.
func (h *Host) Reclaim(ctx context.Context, o records.VolumeOrder) error {
	if err := h.intercept(ctx, Call{"Reclaim", o.ID, string(o.Claim)}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	place := placeOf(o.ID, o.Claim)
	have, there := h.volumes[place]
	switch _, moved := h.trash[o.Volume]; {
	case moved:
		return nil
	case !there:
		return fmt.Errorf("volume %s: %w", place, runtime.ErrAbsent)
	case have != o.Volume:
		return fmt.Errorf("volume %s: it is of %s: %w", place, have, runtime.ErrForeign)
	}
	delete(h.volumes, place)
	h.trash[o.Volume] = trashed{
		runtime.Trashed{
			ID: o.ID, Claim: o.Claim, Volume: o.Volume, Number: o.Number, Class: o.Class,
			Turn: o.Turn, SizeBytes: o.SizeBytes,
		},
		h.now().Add(o.Trash.Duration),
	}
	return nil
}

// Restore moves a volume back into its place.
func (h *Host) Restore(ctx context.Context, o records.VolumeOrder) error {
	if err := h.intercept(ctx, Call{"Restore", o.ID, string(o.Claim)}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	place := placeOf(o.ID, o.Claim)
	have, there := h.volumes[place]
	_, moved := h.trash[o.Volume]
	switch {
	case there && have == o.Volume:
		return nil
	case there:
		return fmt.Errorf("volume %s: it is of %s: %w", place, have, runtime.ErrForeign)
	case !moved:
		return fmt.Errorf("volume %s: %w", place, runtime.ErrAbsent)
	}
	delete(h.trash, o.Volume)
	h.volumes[place] = o.Volume
	return nil
}

// Lost looks for a volume.
func (h *Host) Lost(ctx context.Context, o records.VolumeOrder) (records.VolumeState, error) {
	if err := h.intercept(ctx, Call{"Lost", o.ID, string(o.Claim)}); err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	place := placeOf(o.ID, o.Claim)
	have, there := h.volumes[place]
	_, moved := h.trash[o.Volume]
	switch {
	case there && have == o.Volume:
		return records.VolumeFound, nil
	case there:
		return "", fmt.Errorf("volume %s: it is of %s: %w", place, have, runtime.ErrForeign)
	case moved:
		return records.VolumeTrashed, nil
	}
	return records.VolumeAbsent, nil
}

// Trash lists what lies in the trash.
func (h *Host) Trash(ctx context.Context) ([]runtime.Trashed, error) {
	if err := h.intercept(ctx, Call{Op: "Trash"}); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []runtime.Trashed
	for _, t := range h.trash {
		t.entry.Left = max(0, t.until.Sub(h.now()))
		out = append(out, t.entry)
	}
	slices.SortFunc(out, func(a, b runtime.Trashed) int { return cmp.Compare(a.Volume, b.Volume) })
	return out, nil
}

// Erase forgets what lies in the trash and whose time is over.
func (h *Host) Erase(ctx context.Context, _ string, id records.VolumeID) error {
	if err := h.intercept(ctx, Call{Op: "Erase", Name: string(id)}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t, there := h.trash[id]
	if there && h.now().Before(t.until) {
		return fmt.Errorf("erase volume %s: its time is not over: %w", id, runtime.ErrExists)
	}
	delete(h.trash, id)
	delete(h.made, id)
	return nil
}

// PutVolume puts a volume into a place, whatever stands there, as a person may.
func (h *Host) PutVolume(id spec.Identity, claim spec.ClaimName, v records.VolumeID) {
	h.with(func() { h.volumes[placeOf(id, claim)] = v })
}

// Volumes lists the volumes that stand in their places.
func (h *Host) Volumes() (ids []records.VolumeID) {
	h.with(func() {
		for _, id := range h.volumes {
			ids = append(ids, id)
		}
	})
	slices.Sort(ids)
	return ids
}
