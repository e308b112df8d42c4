package fakert

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// storage is the volumes of a host, its trash and the scratch directories of lives.
type storage struct {
	*machine
	volumes map[string]records.VolumeID // by place
	made    map[records.VolumeID]bool   // until they are erased
	trash   map[records.VolumeID]trashed
	scratch map[scratchKey]spec.Token
}

type scratchKey struct {
	id   spec.Identity
	name string
}

// Ensure makes or checks a volume by its owner. The path exists only in name.
func (d *storage) Ensure(ctx context.Context, id spec.Identity, v records.MemberVolume, fresh bool, _ *int64) (string, error) {
	if err := d.intercept(ctx, Call{"Ensure", id, string(v.Claim)}); err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	path := placeOf(id, v.Claim)
	switch have, ok := d.volumes[path]; {
	case ok && have != v.ID:
		return "", fmt.Errorf("volume %s: it is of %s: %w", path, have, runtime.ErrForeign)
	case !ok && (!fresh || d.made[v.ID]):
		return "", fmt.Errorf("volume %s: %w", path, runtime.ErrAbsent)
	}
	d.volumes[path], d.made[v.ID] = v.ID, true
	return path, nil
}

// DropVolumes deletes the volumes of these claims of an identity, as a lost disk does.
func (d *storage) DropVolumes(id spec.Identity, claims ...spec.ClaimName) {
	d.with(func() {
		for _, c := range claims {
			delete(d.volumes, placeOf(id, c))
		}
	})
}

// Scratch makes a directory of one life in name. ErrExists: another token's stands.
func (d *storage) Scratch(ctx context.Context, s runtime.Scratch) (string, error) {
	if err := d.intercept(ctx, Call{"Scratch", s.ID, s.Name}); err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := scratchKey{s.ID, s.Name}
	if have, ok := d.scratch[key]; ok && have != s.Token {
		return "", fmt.Errorf("scratch %s of %s exists for token %s: %w", s.Name, s.ID, have, runtime.ErrExists)
	}
	d.scratch[key] = s.Token
	return fmt.Sprintf("/fake/scratch/%s/%s/%s", s.ID, s.Token, s.Name), nil
}

// SubPath mounts in name what stands beside a life's scratch.
func (d *storage) SubPath(ctx context.Context, s runtime.SubPath) (string, error) {
	if err := d.intercept(ctx, Call{"SubPath", s.ID, s.Container}); err != nil {
		return "", err
	}
	path := fmt.Sprintf("subpath/%s/%d", s.Container, s.Index)
	d.with(func() { d.scratch[scratchKey{s.ID, path}] = spec.Token{} })
	return fmt.Sprintf("/fake/%s/%s", s.ID, path), nil
}

// RemoveScratch forgets everything Scratch and SubPath made for the identity.
func (d *storage) RemoveScratch(ctx context.Context, id spec.Identity) error {
	if err := d.intercept(ctx, Call{Op: "RemoveScratch", ID: id}); err != nil {
		return err
	}
	d.with(func() {
		maps.DeleteFunc(d.scratch, func(k scratchKey, _ spec.Token) bool { return k.id == id })
	})
	return nil
}

// Clean reports whether no scratch of the identity is left.
func (d *storage) Clean(ctx context.Context, id spec.Identity) (bool, error) {
	if err := d.intercept(ctx, Call{Op: "Clean", ID: id}); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for k := range d.scratch {
		if k.id == id {
			return false, nil
		}
	}
	return true, nil
}

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
