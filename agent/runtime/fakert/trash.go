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
func (d *storage) Reclaim(ctx context.Context, o records.VolumeOrder) error {
	if err := d.intercept(ctx, Call{"Reclaim", o.ID, string(o.Claim)}); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	place := placeOf(o.ID, o.Claim)
	have, there := d.volumes[place]
	switch _, moved := d.trash[o.Volume]; {
	case moved:
		return nil
	case !there:
		return fmt.Errorf("volume %s: %w", place, runtime.ErrAbsent)
	case have != o.Volume:
		return fmt.Errorf("volume %s: it is of %s: %w", place, have, runtime.ErrForeign)
	}
	delete(d.volumes, place)
	d.trash[o.Volume] = trashed{
		runtime.Trashed{
			ID: o.ID, Claim: o.Claim, Volume: o.Volume, Number: o.Number, Class: o.Class,
			Turn: o.Turn, SizeBytes: o.SizeBytes,
		},
		d.now().Add(o.Trash.Duration),
	}
	return nil
}

// Restore moves a volume back into its place.
func (d *storage) Restore(ctx context.Context, o records.VolumeOrder) error {
	if err := d.intercept(ctx, Call{"Restore", o.ID, string(o.Claim)}); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	place := placeOf(o.ID, o.Claim)
	have, there := d.volumes[place]
	_, moved := d.trash[o.Volume]
	switch {
	case there && have == o.Volume:
		return nil
	case there:
		return fmt.Errorf("volume %s: it is of %s: %w", place, have, runtime.ErrForeign)
	case !moved:
		return fmt.Errorf("volume %s: %w", place, runtime.ErrAbsent)
	}
	delete(d.trash, o.Volume)
	d.volumes[place] = o.Volume
	return nil
}

// Lost looks for a volume.
func (d *storage) Lost(ctx context.Context, o records.VolumeOrder) (records.VolumeState, error) {
	if err := d.intercept(ctx, Call{"Lost", o.ID, string(o.Claim)}); err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	place := placeOf(o.ID, o.Claim)
	have, there := d.volumes[place]
	_, moved := d.trash[o.Volume]
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
func (d *storage) Trash(ctx context.Context) ([]runtime.Trashed, error) {
	if err := d.intercept(ctx, Call{Op: "Trash"}); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []runtime.Trashed
	for _, t := range d.trash {
		t.entry.Left = max(0, t.until.Sub(d.now()))
		out = append(out, t.entry)
	}
	slices.SortFunc(out, func(a, b runtime.Trashed) int { return cmp.Compare(a.Volume, b.Volume) })
	return out, nil
}

// Erase forgets what lies in the trash and whose time is over.
func (d *storage) Erase(ctx context.Context, _ string, id records.VolumeID) error {
	if err := d.intercept(ctx, Call{Op: "Erase", Name: string(id)}); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t, there := d.trash[id]
	if there && d.now().Before(t.until) {
		return fmt.Errorf("erase volume %s: its time is not over: %w", id, runtime.ErrExists)
	}
	delete(d.trash, id)
	delete(d.made, id)
	return nil
}

// PutVolume puts a volume into a place, whatever stands there, as a person may.
func (d *storage) PutVolume(id spec.Identity, claim spec.ClaimName, v records.VolumeID) {
	d.with(func() { d.volumes[placeOf(id, claim)] = v })
}

// Volumes lists the volumes that stand in their places.
func (d *storage) Volumes() (ids []records.VolumeID) {
	d.with(func() {
		for _, id := range d.volumes {
			ids = append(ids, id)
		}
	})
	slices.Sort(ids)
	return ids
}
