package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
)

// Grow implements runtime.Volumes: first the file, then its loop device, then the file system. Where it ends in
// between, the volume is as it was until the next mount, or the next call.
func (v *Volumes) Grow(ctx context.Context, o records.VolumeOrder) (grown bool, err error) {
	defer func() {
		if err == nil || errors.Is(err, runtime.ErrAbsent) {
			v.unfit.Delete(o.Volume)
		} else {
			v.unfit.Store(o.Volume, err)
		}
	}()
	defer wrap.Error(&err, "grow volume %s of %s to %d bytes", o.Claim, o.ID, o.SizeBytes)
	at, err := v.openFor(o)
	if err != nil {
		return false, err
	}
	defer at.Close()
	lock := v.lock(o.Volume)
	lock.Lock()
	defer lock.Unlock()
	inPlace, err := isInPlace(at.Root, at.place, at.want)
	if err != nil {
		return false, err
	}
	is := kindNone
	if inPlace {
		if is, err = kindAt(at.Root, at.place); err != nil || is == kindDir {
			return false, err
		}
	}
	if is == kindNone {
		return false, fmt.Errorf("%w: it is not at %s", runtime.ErrAbsent, filepath.Join(at.Name(), at.place))
	}
	f, err := at.OpenFile(filepath.Join(at.place, imageFile), os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if err := checkImage(f, o.Volume); err != nil {
		return false, err
	}
	grown, err = v.growFile(at.Root, f, sizeOf(o.SizeBytes))
	if err != nil {
		return false, err
	}
	target, err := v.mountOf(o.Volume)
	if err != nil || target == "" || !isOf(f, target) {
		return grown, err
	}
	return grown, v.do("grow file system", func() error { return fitFS(ctx, f, target) })
}

// growFile makes a file larger, with all its space; false: it is as large.
func (v *Volumes) growFile(root *os.Root, f *os.File, size int64) (bool, error) {
	st, err := f.Stat()
	if err != nil || st.Size() >= size {
		return false, err
	}
	if err := roomFor(root, size-st.Size()); err != nil {
		return false, err
	}
	err = v.do("grow file", func() error { return reserve(f, size) })
	if err == nil {
		err = v.do("sync grown file", func() error { return v.writer.Sync(f) })
	}
	if err != nil { // no device knows of the part that it got
		err = errors.Join(err, f.Truncate(st.Size()))
	}
	return err == nil, err
}

// fit grows the file system of a mounted image to the size of that, where an earlier growth was not finished.
func (v *Volumes) fit(ctx context.Context, k made) (err error) {
	defer wrap.Error(&err, "volume %s", k.Volume)
	lock := v.lock(k.Volume)
	lock.Lock()
	defer lock.Unlock()
	target, err := v.mountOf(k.Volume)
	if err != nil || target == "" {
		return err
	}
	root, err := v.open(k.Class)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := root.OpenFile(filepath.Join(placeOf(k.identity(), k.Claim), imageFile), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if !isOf(f, target) {
		return nil
	}
	return fitFS(ctx, f, target)
}

// fitFS grows the file system mounted at target to the size of its image, if it is smaller.
func fitFS(ctx context.Context, f *os.File, target string) (err error) {
	defer wrap.Error(&err, "grow the file system")
	sb, err := readSuperblock(f)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil || st.Size()-sb.bytes < imageUnit {
		return err
	}
	loop, err := findLoop(f)
	if err != nil {
		return err
	}
	if loop == nil {
		return fmt.Errorf("%w: it has no loop device", runtime.ErrAbsent)
	}
	defer loop.Close()
	if err := unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("tell %s of its size: %w", loop.Name(), err)
	}
	if sb.kind == xfs {
		return run(ctx, "xfs_growfs", "-d", target)
	}
	return run(ctx, "resize2fs", loop.Name())
}
