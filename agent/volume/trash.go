package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

const (
	// trashDir is in the directory of each storage class: a move into it is one rename.
	// No namespace has such a name.
	trashDir = ".trash"
	// erasing begins the name of what is being deleted.
	erasing = "erasing-"
)

// placeOf is where a volume is in the directory of its class.
func placeOf(id spec.Identity, claim spec.ClaimName) string {
	return filepath.Join(string(id.Namespace), string(id.Set), string(claim)+"-"+strconv.Itoa(id.Ordinal))
}

// trashAt is the directory of this node's trash in that of a storage class: on a shared one
// each node has its own, for it counts how long what it gave up lies there.
func (v *Volumes) trashAt(class string) string {
	if slices.Contains(v.shared, class) {
		return trashDir + "-" + string(v.node)
	}
	return trashDir
}

// Reclaim implements runtime.Volumes. The note of how long the volume is to lie in the
// trash is written before it is moved there, so that none lies there without.
func (v *Volumes) Reclaim(ctx context.Context, o records.VolumeOrder) error {
	if err := v.reclaim(o); err != nil {
		return fmt.Errorf("reclaim volume %s of %s: %w", o.Claim, o.ID, err)
	}
	return ctx.Err()
}

func (v *Volumes) reclaim(o records.VolumeOrder) error {
	root, err := v.openFor(o)
	if err != nil {
		return err
	}
	defer root.Close()
	want, place, bin := v.ownerOf(o), placeOf(o.ID, o.Claim), filepath.Join(v.trashAt(o.Class), string(o.Volume))
	stands, err := v.isInPlace(root, place, want)
	if err != nil {
		if v.inTrash(root, place, bin, want) == nil {
			return v.syncMove(root, place, bin, want) // what is in its place does not matter
		}
		return err
	}
	if !stands {
		return v.syncMove(root, place, bin, want)
	}
	if err := unmounted(filepath.Join(root.Name(), place)); err != nil {
		return err
	}
	if err := v.writer.MakeDirs(root, filepath.Dir(bin)); err != nil {
		return err
	}
	n := note{Class: o.Class, Left: o.Trash.Duration, Turn: o.Turn, SizeBytes: o.SizeBytes}
	if err := v.writeNote(root, place, n); err != nil {
		return err
	}
	if err := v.step("move"); err != nil {
		return err
	}
	if err := root.Rename(place, bin); err != nil {
		return err
	}
	return v.syncMove(root, place, bin, want)
}

// syncMove makes durable that a volume is in the trash and not in its place.
func (v *Volumes) syncMove(root *os.Root, place, bin string, want owner) error {
	if err := v.inTrash(root, place, bin, want); err != nil {
		return err
	}
	if err := v.step("sync"); err != nil {
		return err
	}
	return errors.Join(v.writer.SyncDir(root, filepath.Dir(bin)), v.writer.SyncDir(root, filepath.Dir(place)))
}

// unmounted refuses a directory at or below which something is mounted.
func unmounted(path string) error {
	mounts, err := mountsAt(path)
	if len(mounts) > 0 {
		err = fmt.Errorf("%w: %s is mounted there; nothing was touched; unmount it", runtime.ErrExists, mounts[0])
	}
	return err
}

// Trash implements runtime.Volumes. Nothing is known either of a class that was used by
// this node and is not declared any more.
func (v *Volumes) Trash(ctx context.Context) ([]runtime.Trashed, error) {
	var out []runtime.Trashed
	used, err := v.records.names(disksDir)
	errs := []error{err}
	for _, class := range used {
		if _, declared := v.classes[class]; !declared {
			errs = append(errs, fmt.Errorf("storage class %s is not declared any more", class))
		}
	}
	for _, class := range slices.Sorted(maps.Keys(v.classes)) {
		found, err := v.trashIn(ctx, class)
		if err != nil {
			errs = append(errs, fmt.Errorf("class %s: %w", class, err))
		}
		out = append(out, found...)
	}
	slices.SortFunc(out, func(a, b runtime.Trashed) int { return cmp.Compare(a.Volume, b.Volume) })
	if err := errors.Join(errs...); err != nil {
		return out, fmt.Errorf("list trash: %w", err)
	}
	return out, nil
}

func (v *Volumes) trashIn(ctx context.Context, class string) ([]runtime.Trashed, error) {
	root, err := v.open(class)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return v.trashOf(ctx, root, class)
}

func (v *Volumes) trashOf(ctx context.Context, root *os.Root, class string) (out []runtime.Trashed, err error) {
	names, err := contents(root, v.trashAt(class))
	errs := []error{err}
	for _, name := range names {
		bin := filepath.Join(v.trashAt(class), name)
		o, err := readOwner(root, bin)
		id, begun := strings.CutPrefix(name, erasing)
		switch {
		case begun && errors.Is(err, fs.ErrNotExist): // all but its directory is deleted
			if err := eraseTree(ctx, root, bin); err != nil {
				return nil, err
			}
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: its owner file cannot be read: %w", bin, err))
		case o.Cluster != v.cluster || string(o.Volume) != id:
		case begun:
			out = append(out, trashed(o, note{Class: class}))
		default:
			n, err := v.timeLeft(root, bin)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: how long it stays there cannot be read: %w", bin, err))
				continue
			}
			n.Class = class
			out = append(out, trashed(o, n))
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return out, errors.Join(errs...)
}

func trashed(o owner, n note) runtime.Trashed {
	return runtime.Trashed{
		ID:    spec.Identity{Namespace: o.Namespace, Set: o.Set, Ordinal: o.Ordinal},
		Claim: o.Claim, Volume: o.Volume, Number: o.Number, Class: n.Class, Left: n.Left,
		Turn: n.Turn, SizeBytes: n.SizeBytes,
	}
}

// Erase implements runtime.Volumes. What is being erased has another name, so that it
// is never taken for what could come back.
func (v *Volumes) Erase(ctx context.Context, class string, id records.VolumeID) error {
	if err := v.erase(ctx, class, id); err != nil {
		return fmt.Errorf("erase volume %s: %w", id, err)
	}
	return nil
}

func (v *Volumes) erase(ctx context.Context, class string, id records.VolumeID) error {
	if err := checkLabel(string(id)); err != nil {
		return err
	}
	root, err := v.open(class)
	if err != nil {
		return err
	}
	defer root.Close()
	bin, end := filepath.Join(v.trashAt(class), string(id)), filepath.Join(v.trashAt(class), erasing+string(id))
	if _, err := root.Lstat(bin); err == nil {
		if o, err := readOwner(root, bin); err != nil || o.Cluster != v.cluster || o.Volume != id {
			return errors.Join(fmt.Errorf("%w: the owner file of %s is not that of this volume; nothing was touched; move that directory away",
				runtime.ErrForeign, filepath.Join(root.Name(), bin)), err)
		}
		n, err := v.timeLeft(root, bin)
		if err != nil {
			return err
		}
		if n.Left > 0 {
			return fmt.Errorf("%w: it stays in the trash for another %s", runtime.ErrExists, n.Left)
		}
		if err := unmounted(filepath.Join(root.Name(), bin)); err != nil {
			return err
		}
		if err := v.step("begin to erase"); err != nil {
			return err
		}
		if err := root.Rename(bin, end); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, part := range []string{dataDir, noteFile, "."} { // whose it was goes last
		if err := v.step("erase " + part); err != nil {
			return err
		}
		if err := eraseTree(ctx, root, filepath.Join(end, part)); err != nil {
			return err
		}
	}
	if err := except(v.writer.SyncDir(root, v.trashAt(class)), fs.ErrNotExist); err != nil {
		return err
	}
	return v.records.remove(madeDir, string(id))
}
