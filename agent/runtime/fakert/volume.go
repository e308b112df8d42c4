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
	users   map[records.VolumeID]map[spec.Identity]spec.Token
	trash   map[records.VolumeID]trashed
	scratch map[scratchKey]spec.Token
}

type scratchKey struct {
	id   spec.Identity
	name string
}

// trashed is a volume in the trash.
type trashed struct {
	entry runtime.Trashed
	until time.Time
}

func placeOf(id spec.Identity, claim spec.ClaimName) string {
	return fmt.Sprintf("/fake/volumes/%s/%s/%s-%d", id.Namespace, id.Set, claim, id.Ordinal)
}

// Ensure makes or checks a volume by its owner. The path exists only in name.
func (d *storage) Ensure(ctx context.Context, id spec.Identity, v records.MemberVolume, fresh bool, _ *runtime.Group) (string, error) {
	id = v.Owner(id)
	path := placeOf(id, v.Claim)
	return path, d.do(ctx, Call{"Ensure", id, string(v.Claim)}, func() error {
		there, err := d.isInPlace(path, v.ID)
		if err == nil && !there && (!fresh || d.made[v.ID]) {
			err = runtime.ErrAbsent
		}
		if err == nil {
			d.volumes[path], d.made[v.ID] = v.ID, true
		}
		return err
	})
}

// NoteUser notes a user of a volume.
func (d *storage) NoteUser(ctx context.Context, volume records.VolumeID, life spec.LifeID) error {
	return d.do(ctx, Call{"NoteUser", life.ID, string(volume)}, func() error {
		if d.users[volume] == nil {
			d.users[volume] = map[spec.Identity]spec.Token{}
		}
		d.users[volume][life.ID] = life.Token
		return nil
	})
}

// Users lists them.
func (d *storage) Users(ctx context.Context, volume records.VolumeID) (lives []spec.LifeID, err error) {
	err = d.do(ctx, Call{Op: "Users", Name: string(volume)}, func() error {
		for _, id := range slices.SortedFunc(maps.Keys(d.users[volume]), spec.Identity.Compare) {
			lives = append(lives, spec.LifeID{ID: id, Token: d.users[volume][id]})
		}
		return nil
	})
	return lives, err
}

// isInPlace reports whether a volume is in its place. ErrForeign: another one is.
func (d *storage) isInPlace(place string, id records.VolumeID) (bool, error) {
	have, there := d.volumes[place]
	if there && have != id {
		return false, fmt.Errorf("%s is of %s: %w", place, have, runtime.ErrForeign)
	}
	return there, nil
}

// order carries out an order about a volume, with what is known of it.
func (d *storage) order(ctx context.Context, op string, o records.VolumeOrder, f func(place string, inPlace, inTrash bool) error) error {
	return d.do(ctx, Call{op, o.ID, string(o.Claim)}, func() error {
		place := placeOf(o.ID, o.Claim)
		_, inTrash := d.trash[o.Volume]
		inPlace, err := d.isInPlace(place, o.Volume)
		if err != nil && !(inTrash && op == "Reclaim") {
			return err
		}
		return f(place, inPlace, inTrash)
	})
}

// Reclaim moves a volume into the trash, where its time runs by the host's clock.
func (d *storage) Reclaim(ctx context.Context, o records.VolumeOrder) error {
	return d.order(ctx, "Reclaim", o, func(place string, inPlace, inTrash bool) error {
		switch {
		case inTrash:
			return nil
		case !inPlace:
			return runtime.ErrAbsent
		}
		delete(d.volumes, place)
		d.trash[o.Volume] = trashed{
			runtime.Trashed{
				ID: o.ID, Claim: o.Claim, Volume: o.Volume, Number: o.Number, Class: o.Class,
				Turn: o.Turn, SizeBytes: o.SizeBytes,
			},
			time.Now().Add(o.Trash.Duration),
		}
		return nil
	})
}

// Grow looks whether a volume is in its place: nothing here has a size.
func (d *storage) Grow(ctx context.Context, o records.VolumeOrder) (bool, error) {
	return false, d.order(ctx, "Grow", o, func(_ string, inPlace, _ bool) error {
		if !inPlace {
			return runtime.ErrAbsent
		}
		return nil
	})
}

// Restore moves a volume back into its place.
func (d *storage) Restore(ctx context.Context, o records.VolumeOrder) error {
	return d.order(ctx, "Restore", o, func(place string, inPlace, inTrash bool) error {
		switch {
		case inPlace:
			return nil
		case !inTrash:
			return runtime.ErrAbsent
		}
		delete(d.trash, o.Volume)
		d.volumes[place] = o.Volume
		return nil
	})
}

// Lost looks for a volume.
func (d *storage) Lost(ctx context.Context, o records.VolumeOrder) (state records.VolumeState, err error) {
	err = d.order(ctx, "Lost", o, func(_ string, inPlace, inTrash bool) error {
		switch {
		case inPlace:
			state = records.VolumeFound
		case inTrash:
			state = records.VolumeTrashed
		default:
			state = records.VolumeAbsent
		}
		return nil
	})
	return state, err
}

// InPlace lists nothing: what a host says of its volumes is tried on directories.
func (d *storage) InPlace(context.Context) ([]records.HostVolume, error) { return nil, nil }

// Trash lists what is in the trash.
func (d *storage) Trash(ctx context.Context) (out []runtime.Trashed, err error) {
	err = d.do(ctx, Call{Op: "Trash"}, func() error {
		for _, t := range d.trash {
			t.entry.Left = max(0, time.Until(t.until))
			out = append(out, t.entry)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b runtime.Trashed) int { return cmp.Compare(a.Volume, b.Volume) })
	return out, err
}

// Erase forgets what is in the trash and whose time is over.
func (d *storage) Erase(ctx context.Context, _ string, id records.VolumeID) error {
	return d.do(ctx, Call{Op: "Erase", Name: string(id)}, func() error {
		if t, there := d.trash[id]; there && time.Now().Before(t.until) {
			return fmt.Errorf("its time is not over: %w", runtime.ErrExists)
		}
		delete(d.trash, id)
		delete(d.made, id)
		delete(d.users, id)
		return nil
	})
}

// PutVolume puts a volume into a place, whatever is there, as a person may.
func (d *storage) PutVolume(id spec.Identity, claim spec.ClaimName, v records.VolumeID) {
	d.with(func() { d.volumes[placeOf(id, claim)] = v })
}

// DropVolumes deletes the volumes of these claims of an identity, as a lost disk does.
func (d *storage) DropVolumes(id spec.Identity, claims ...spec.ClaimName) {
	d.with(func() {
		for _, c := range claims {
			delete(d.volumes, placeOf(id, c))
		}
	})
}

// Volumes lists the volumes that are in their places.
func (d *storage) Volumes() (ids []records.VolumeID) {
	d.with(func() { ids = slices.Sorted(maps.Values(d.volumes)) })
	return ids
}

// Scratch makes a directory of one life in name. ErrExists: there is another token's.
func (d *storage) Scratch(ctx context.Context, s runtime.Scratch) (string, error) {
	return fmt.Sprintf("/fake/scratch/%s/%s/%s", s.ID, s.Token, s.Name), d.do(ctx, Call{"Scratch", s.ID, s.Name}, func() error {
		key := scratchKey{s.ID, s.Name}
		if have, ok := d.scratch[key]; ok && have != s.Token {
			return fmt.Errorf("it exists for token %s: %w", have, runtime.ErrExists)
		}
		d.scratch[key] = s.Token
		return nil
	})
}

// SubPath mounts in name what is beside a life's scratch.
func (d *storage) SubPath(ctx context.Context, s runtime.SubPath) (string, error) {
	path := fmt.Sprintf("subpath/%s/%d", s.Container, s.Index)
	return fmt.Sprintf("/fake/%s/%s", s.ID, path), d.do(ctx, Call{"SubPath", s.ID, s.Container}, func() error {
		d.scratch[scratchKey{s.ID, path}] = spec.Token{}
		return nil
	})
}

// HostPath mounts in name what is beside a life's scratch.
func (d *storage) HostPath(ctx context.Context, p runtime.HostPath) (string, error) {
	path := "hostpath/" + p.Name
	return fmt.Sprintf("/fake/%s/%s", p.ID, path), d.do(ctx, Call{"HostPath", p.ID, p.Name}, func() error {
		d.scratch[scratchKey{p.ID, path}] = spec.Token{}
		return nil
	})
}

// RemoveScratch forgets everything Scratch, SubPath and HostPath made for the identity.
func (d *storage) RemoveScratch(ctx context.Context, id spec.Identity) error {
	return d.do(ctx, Call{Op: "RemoveScratch", ID: id}, func() error {
		maps.DeleteFunc(d.scratch, func(k scratchKey, _ spec.Token) bool { return k.id == id })
		return nil
	})
}

// Clean reports whether no scratch of the identity is left.
func (d *storage) Clean(ctx context.Context, id spec.Identity) (clean bool, err error) {
	clean = true
	err = d.do(ctx, Call{Op: "Clean", ID: id}, func() error {
		for k := range d.scratch {
			clean = clean && k.id != id
		}
		return nil
	})
	return clean && err == nil, err
}
