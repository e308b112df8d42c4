package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/deeptree"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

const (
	// trashDir is in the directory of each storage class: a move into it is one rename.
	// No namespace has such a name.
	trashDir = ".trash"
	// claimsDir, in a namespace, has the volumes of PersistentVolumeClaims.
	claimsDir = ".claims"
	// erasing starts the name of what is being deleted.
	erasing = "erasing-"
)

// placeOf is where a volume is in the directory of its class.
func placeOf(id spec.Identity, claim spec.ClaimName) string {
	if name, is := id.Ref().ClaimName(); is { // no set has the name of the directory
		return filepath.Join(string(id.Namespace), claimsDir, name)
	}
	return filepath.Join(string(id.Namespace), string(id.Set), string(claim)+"-"+strconv.Itoa(id.Ordinal))
}

// trashAt is the directory of this node's trash in that of a storage class: on a shared one
// each node has its own, for it counts how long what it gave up is there.
func (v *Volumes) trashAt(class string) string {
	if slices.Contains(v.shared, class) {
		return trashDir + "-" + string(v.node)
	}
	return trashDir
}

// Reclaim implements runtime.Volumes. The note of how long the volume is to stay in the
// trash is written before it is moved there, so that none is there without.
func (v *Volumes) Reclaim(ctx context.Context, o records.VolumeOrder) (err error) {
	defer wrap.Error(&err, "reclaim volume %s of %s", o.Claim, o.ID)
	at, err := v.openFor(o)
	if err != nil {
		return err
	}
	defer at.Close()
	inPlace, err := isInPlace(at.Root, at.place, at.want)
	if err != nil && at.inTrash() != nil {
		return err
	}
	if inPlace { // else what is there does not matter
		if err := v.giveUp(at, note{Class: o.Class, Left: o.Trash.Duration, Turn: o.Turn, SizeBytes: o.SizeBytes}); err != nil {
			return err
		}
	}
	if err := at.inTrash(); err != nil {
		return err
	}
	if err := v.step("sync"); err != nil {
		return err
	}
	return errors.Join(v.writer.SyncDir(at.Root, filepath.Dir(at.bin)), v.writer.SyncDir(at.Root, filepath.Dir(at.place)), ctx.Err())
}

// giveUp moves a volume into the trash.
func (v *Volumes) giveUp(at ordered, n note) error {
	if err := errors.Join(unmounted(filepath.Join(at.Name(), at.place)), notInUse(at.Root, at.place)); err != nil {
		return err
	}
	if err := v.writer.MakeDirs(at.Root, filepath.Dir(at.bin)); err != nil {
		return err
	}
	if err := v.writeNote(at.Root, at.place, n); err != nil {
		return err
	}
	return v.do("move", func() error { return at.Rename(at.place, at.bin) })
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
func (v *Volumes) Trash(ctx context.Context) (out []runtime.Trashed, err error) {
	defer wrap.Error(&err, "list trash")
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
	return out, errors.Join(errs...)
}

func (v *Volumes) trashIn(ctx context.Context, class string) (out []runtime.Trashed, err error) {
	root, err := v.open(class)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := contents(root, v.trashAt(class))
	errs := []error{err}
	for _, name := range names {
		bin := filepath.Join(v.trashAt(class), name)
		o, err := readOwner(root, bin)
		id, started := strings.CutPrefix(name, erasing)
		switch {
		case started && errors.Is(err, fs.ErrNotExist): // all but its directory is deleted
			if err := deeptree.Erase(ctx, root, bin); err != nil {
				return nil, err
			}
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: its owner file cannot be read: %w", bin, err))
		case o.Cluster != v.cluster || string(o.Volume) != id:
		case started:
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
		ID: o.identity(), Claim: o.Claim, Volume: o.Volume, Number: o.Number, Class: n.Class, Left: n.Left,
		Turn: n.Turn, SizeBytes: n.SizeBytes,
	}
}

// Erase implements runtime.Volumes. What is being erased has another name, so that it
// is never taken for what could come back.
func (v *Volumes) Erase(ctx context.Context, class string, id records.VolumeID) (err error) {
	defer wrap.Error(&err, "erase volume %s", id)
	if err := checkLabel(string(id)); err != nil {
		return err
	}
	root, err := v.open(class)
	if err != nil {
		return err
	}
	defer root.Close()
	bin, end := filepath.Join(v.trashAt(class), string(id)), filepath.Join(v.trashAt(class), erasing+string(id))
	if there, err := v.standsInPlace(root, id); there || err != nil {
		return err // by a store from before it came back it is in the trash
	}
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
		if err := errors.Join(unmounted(filepath.Join(root.Name(), bin)), notInUse(root, bin)); err != nil {
			return err
		}
		if err := v.do("start to erase", func() error { return root.Rename(bin, end) }); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, part := range []string{dataDir, imageFile, noteFile, "."} { // whose it was goes last
		err := v.do("erase "+part, func() error { return deeptree.Erase(ctx, root, filepath.Join(end, part)) })
		if err != nil {
			return err
		}
	}
	if err := except(v.writer.SyncDir(root, v.trashAt(class)), fs.ErrNotExist); err != nil {
		return err
	}
	return errors.Join(v.forgetUsers(id), v.records.remove(madeDir, string(id)))
}
