package fakert

import (
	"context"
	"fmt"
	"maps"

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
