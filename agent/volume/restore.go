package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// ownerOf is what the owner file of a volume says.
func (v *Volumes) ownerOf(id spec.Identity, claim spec.ClaimName, volume records.VolumeID, number int) owner {
	return owner{Cluster: v.cluster, Namespace: id.Namespace, Set: id.Set, Ordinal: id.Ordinal,
		Claim: claim, Volume: volume, Number: number}
}

// ordered is the volume of an order, in the directory of its class.
type ordered struct {
	*os.Root
	want       owner
	place, bin string // where it is, or would be, in use and in the trash
}

// openFor checks an order and opens the directory of its class; the caller closes it.
func (v *Volumes) openFor(o records.VolumeOrder) (at ordered, err error) {
	if err := checkIdentity(o.ID, string(o.Claim), string(o.Volume)); err != nil {
		return at, err
	}
	at = ordered{
		want:  v.ownerOf(o.ID, o.Claim, o.Volume, o.Number),
		place: placeOf(o.ID, o.Claim), bin: filepath.Join(v.trashAt(o.Class), string(o.Volume)),
	}
	at.Root, err = v.open(o.Class)
	return at, err
}

// Restore implements runtime.Volumes. It is one rename; the note of how long the volume
// had to stay in the trash is removed after it, so that none is there without.
func (v *Volumes) Restore(ctx context.Context, o records.VolumeOrder) (err error) {
	defer wrap.Error(&err, "restore volume %s of %s", o.Claim, o.ID)
	at, err := v.openFor(o)
	if err != nil {
		return err
	}
	defer at.Close()
	inPlace, err := isInPlace(at.Root, at.place, at.want)
	if err != nil {
		return err
	}
	v.notes.Lock() // a note written in the trash meanwhile would end up in its place
	defer v.notes.Unlock()
	if !inPlace {
		if err := v.moveBack(at); err != nil {
			return err
		}
	}
	if err := v.step("sync"); err != nil {
		return err
	}
	if err := except(v.writer.SyncDir(at.Root, filepath.Dir(at.bin)), fs.ErrNotExist); err != nil {
		return err
	}
	if err := v.writer.SyncDir(at.Root, filepath.Dir(at.place)); err != nil {
		return err
	}
	err = v.do("remove note", func() error { return at.Remove(filepath.Join(at.place, noteFile)) })
	if except(err, fs.ErrNotExist) != nil {
		return err
	}
	return errors.Join(v.writer.SyncDir(at.Root, at.place), ctx.Err())
}

func (v *Volumes) moveBack(at ordered) error {
	if err := at.inTrash(); err != nil {
		return err
	}
	if err := unmounted(filepath.Join(at.Name(), at.bin)); err != nil {
		return err
	}
	if err := v.makeRoom(at.Root, at.place); err != nil {
		return err
	}
	// Who brings a copy back that a move left behind says that it is the volume again.
	err := v.breakSeal(at.Root, at.bin)
	if err == nil {
		err = v.do("move back", func() error { return at.Rename(at.bin, at.place) })
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: it is being erased", runtime.ErrAbsent)
	}
	return err
}

// inTrash fails unless the volume is in the trash, and not half erased.
func (at ordered) inTrash() error {
	have, err := readOwner(at.Root, at.bin)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: it is neither at %s nor in the trash", runtime.ErrAbsent, filepath.Join(at.Name(), at.place))
	case err != nil:
		return err
	case have.unsealed() != at.want:
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
func (v *Volumes) Lost(ctx context.Context, o records.VolumeOrder) (_ records.VolumeState, err error) {
	defer wrap.Error(&err, "look for volume %s of %s", o.Claim, o.ID)
	at, err := v.openFor(o)
	if err != nil {
		return "", err
	}
	defer at.Close()
	inPlace, err := isInPlace(at.Root, at.place, at.want)
	if err != nil {
		return "", err
	}
	if inPlace {
		is, err := kindAt(at.Root, at.place)
		if err != nil {
			return "", err
		}
		if is != kindNone {
			return records.VolumeFound, nil
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
