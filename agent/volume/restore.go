package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
)

// ownerOf is what the owner file of an order's volume says.
func (v *Volumes) ownerOf(o records.VolumeOrder) owner {
	return owner{Cluster: v.cluster, Namespace: o.ID.Namespace, Set: o.ID.Set, Ordinal: o.ID.Ordinal,
		Claim: o.Claim, Volume: o.Volume, Number: o.Number}
}

// Restore implements runtime.Volumes. It is one rename; the note of how long the volume
// had to lie in the trash goes after it, so that none lies there without.
func (v *Volumes) Restore(ctx context.Context, o records.VolumeOrder) error {
	if err := v.restore(o); err != nil {
		return fmt.Errorf("restore volume %s of %s: %w", o.Claim, o.ID, err)
	}
	return ctx.Err()
}

func (v *Volumes) restore(o records.VolumeOrder) error {
	root, err := v.openFor(o)
	if err != nil {
		return err
	}
	defer root.Close()
	want, place, bin := v.ownerOf(o), placeOf(o.ID, o.Claim), filepath.Join(v.trashAt(o.Class), string(o.Volume))
	stands, err := v.isInPlace(root, place, want)
	if err != nil {
		return err
	}
	v.notes.Lock() // a note written in the trash meanwhile would end up in its place
	defer v.notes.Unlock()
	if !stands {
		if err := v.inTrash(root, place, bin, want); err != nil {
			return err
		}
		if err := unmounted(filepath.Join(root.Name(), bin)); err != nil {
			return err
		}
		if err := v.makeRoom(root, place); err != nil {
			return err
		}
		if err := v.step("move back"); err != nil {
			return err
		}
		if err := root.Rename(bin, place); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: it is being erased", runtime.ErrAbsent)
		} else if err != nil {
			return err
		}
	}
	if err := v.step("sync"); err != nil {
		return err
	}
	if err := except(v.writer.SyncDir(root, filepath.Dir(bin)), fs.ErrNotExist); err != nil {
		return err
	}
	if err := v.writer.SyncDir(root, filepath.Dir(place)); err != nil {
		return err
	}
	if err := v.step("remove note"); err != nil {
		return err
	}
	if err := except(root.Remove(filepath.Join(place, noteFile)), fs.ErrNotExist); err != nil {
		return err
	}
	return v.writer.SyncDir(root, place)
}

// openFor checks an order and opens the directory of its class.
func (d *disks) openFor(o records.VolumeOrder) (*os.Root, error) {
	if err := checkIdentity(o.ID, string(o.Claim), string(o.Volume)); err != nil {
		return nil, err
	}
	return d.open(o.Class)
}

// isInPlace reports whether the volume is in its place; an error says what else is.
func (v *Volumes) isInPlace(root *os.Root, place string, want owner) (bool, error) {
	path := filepath.Join(root.Name(), place)
	have, err := readOwner(root, place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		found, err := contents(root, place)
		if len(found) > 0 {
			err = fmt.Errorf("%w: %s holds %q and no owner file; nothing was touched", runtime.ErrExists, path, found)
		}
		return false, err
	case err != nil:
		return false, fmt.Errorf("%w: the owner file in %s cannot be read (%w); nothing was touched", runtime.ErrForeign, path, err)
	case have != want:
		return false, fmt.Errorf("%w: %s holds %s, wanted is %s; nothing was touched", runtime.ErrForeign, path, have, want)
	}
	return true, nil
}

// inTrash fails unless the volume lies in the trash, and not half erased.
func (v *Volumes) inTrash(root *os.Root, place, bin string, want owner) error {
	have, err := readOwner(root, bin)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: it is neither at %s nor in the trash", runtime.ErrAbsent, filepath.Join(root.Name(), place))
	case err != nil:
		return err
	case have != want:
		return fmt.Errorf("%w: the trash contains %s", runtime.ErrForeign, have)
	}
	return nil
}

// makeRoom makes what is above place, and removes an empty directory there.
func (v *Volumes) makeRoom(root *os.Root, place string) error {
	if err := v.writer.MakeDirs(root, filepath.Dir(place)); err != nil {
		return err
	}
	for _, path := range []string{filepath.Join(place, ownerDraft), place} {
		if err := except(root.Remove(path), fs.ErrNotExist); err != nil {
			return err
		}
	}
	return nil
}

// Lost implements runtime.Volumes.
func (v *Volumes) Lost(ctx context.Context, o records.VolumeOrder) (records.VolumeState, error) {
	state, err := v.lost(ctx, o)
	if err != nil {
		return "", fmt.Errorf("look for volume %s of %s: %w", o.Claim, o.ID, err)
	}
	return state, nil
}

func (v *Volumes) lost(ctx context.Context, o records.VolumeOrder) (records.VolumeState, error) {
	root, err := v.openFor(o)
	if err != nil {
		return "", err
	}
	defer root.Close()
	place := placeOf(o.ID, o.Claim)
	stands, err := v.isInPlace(root, place, v.ownerOf(o))
	if err != nil {
		return "", err
	}
	if stands {
		if _, err := root.Lstat(filepath.Join(place, dataDir)); err == nil {
			return records.VolumeFound, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	// What is left of a volume without data goes into the trash, too.
	err = v.Reclaim(ctx, o)
	switch {
	case errors.Is(err, runtime.ErrAbsent):
		return records.VolumeAbsent, nil
	case err != nil:
		return "", err
	}
	return records.VolumeTrashed, nil
}
