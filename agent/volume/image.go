package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/deeptree"
	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// A volume of a sized class is a file system in a file beside its owner file, in place of the
// data directory: it can hold what was asked for, and no more. The file has all its space from the
// start, so that a full disk never fails a write in it. It is mounted below the run directory, once
// for each member that has it; there is no data directory in its place, so that whoever does not know
// of images finds no volume rather than an empty one.

const (
	imageFile = "data.img"
	// imageUnit is what sizes are rounded up to, and imageLeast the smallest: a journal must fit in.
	imageUnit, imageLeast = 1 << 20, 16 << 20
	// diskKept is what a new image leaves free on its disk, or a twentieth of that if it is less.
	diskKept = 1 << 30
)

// imageDraft is an image that is being made.
var imageDraft = durable.Draft(imageFile)

// kind is in what way a volume is on its disk.
type kind int

const (
	kindNone  kind = iota // it is not there
	kindDir               // a directory
	kindImage             // a file system in a file
)

// sizedClasses checks the classes whose volumes are images.
func (d *disks) sizedClasses(names []string) error {
	for _, name := range names {
		switch _, declared := d.classes[name]; {
		case !declared:
			return fmt.Errorf("sized class %s: it is not declared", name)
		case slices.Contains(d.shared, name):
			return fmt.Errorf("sized class %s: it is shared, and an image must not be mounted by two hosts", name)
		}
	}
	d.sized = names
	return nil
}

// kindAt looks which kind of volume is at place. ErrExists: something that is none, or both.
func kindAt(root *os.Root, place string) (kind, error) {
	dir, err := isThere(root, filepath.Join(place, dataDir), fs.ModeDir, "a directory")
	if err != nil {
		return kindNone, err
	}
	image, err := isThere(root, filepath.Join(place, imageFile), 0, "a regular file")
	switch {
	case err != nil:
		return kindNone, err
	case dir && image:
		return kindNone, fmt.Errorf("%w: %s has both %s and %s, and only one of them is the volume; nothing was touched; move the other away",
			runtime.ErrExists, filepath.Join(root.Name(), place), dataDir, imageFile)
	case image:
		return kindImage, nil
	case dir:
		return kindDir, nil
	}
	return kindNone, nil
}

func isThere(root *os.Root, path string, mode fs.FileMode, what string) (bool, error) {
	found, err := root.Lstat(path)
	if err != nil {
		return false, except(err, fs.ErrNotExist)
	}
	if found.Mode().Type() != mode {
		return false, fmt.Errorf("%w: %s is not %s", runtime.ErrExists, filepath.Join(root.Name(), path), what)
	}
	return true, nil
}

// sizeOf is how large the image of a volume of these bytes is.
func sizeOf(bytes int64) int64 {
	bytes = min(max(bytes, imageLeast), math.MaxInt64-imageUnit)
	return (bytes + imageUnit - 1) / imageUnit * imageUnit
}

// makeImage makes the image of a volume: all its space, a file system whose id is the volume's, and in that
// an empty data directory. It has its name only when all of that is on disk.
func (v *Volumes) makeImage(ctx context.Context, root *os.Root, place string, volume records.VolumeID, bytes int64) (err error) {
	defer wrap.Error(&err, "make the image")
	bytes = sizeOf(bytes)
	draft := filepath.Join(place, imageDraft)
	if err := except(root.Remove(draft), fs.ErrNotExist); err != nil { // of a try that a crash ended
		return err
	}
	if err := roomFor(root, bytes); err != nil {
		return err
	}
	f, err := root.OpenFile(draft, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	err = v.do("reserve", func() error { return reserve(f, bytes) })
	if err == nil {
		err = v.do("mkfs", func() error { return v.makeFS(ctx, filepath.Join(root.Name(), draft), volume, bytes) })
	}
	if err == nil {
		err = reserve(f, bytes) // what the program freed
	}
	if err == nil {
		err = v.do("sync image", func() error { return v.writer.Sync(f) })
	}
	if err != nil {
		return errors.Join(err, root.Remove(draft))
	}
	return v.do("name image", func() error { return root.Rename(draft, filepath.Join(place, imageFile)) })
}

// roomFor fails unless a disk has room for so many bytes more.
func roomFor(root *os.Root, bytes int64) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	room, err := RoomAt(dir)
	if err != nil {
		return err
	}
	if kept := min(diskKept, room.TotalBytes/20); room.FreeBytes-kept < bytes {
		return noRoom(root.Name(), bytes, max(0, room.FreeBytes-kept))
	}
	return nil
}

func noRoom(disk string, bytes, free int64) error {
	return fmt.Errorf("%w: %d bytes are needed, and the disk of %s has %d for volumes; free some, or erase what is in its trash ('stead volume ls')",
		runtime.ErrNoSpace, bytes, disk, free)
}

// reserve gives the first bytes of a file all their space on disk; what is there stays.
func reserve(f *os.File, bytes int64) error {
	err := deeptree.RetryRenamed(func() error { return unix.Fallocate(int(f.Fd()), 0, 0, bytes) })
	switch {
	case errors.Is(err, syscall.EOPNOTSUPP):
		return fmt.Errorf("%w: the file system of %s cannot reserve space for a file; use ext4 or XFS for a sized class", runtime.ErrNotFound, f.Name())
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%w: reserve %d bytes for %s: %w", runtime.ErrNoSpace, bytes, f.Name(), err)
	}
	return err
}

// mountImage mounts the image at place for a member, if it is not, and returns the directory of its data.
func (v *Volumes) mountImage(ctx context.Context, root *os.Root, place string, member spec.Identity, volume records.VolumeID) (string, error) {
	return v.mountAt(ctx, root, place, volume, filepath.Join(v.images, scratchOf(member), string(volume)))
}

// mountAt mounts the image at place at target. An image that is not the volume's, or is damaged, is left as it is.
func (v *Volumes) mountAt(ctx context.Context, root *os.Root, place string, volume records.VolumeID, target string) (_ string, err error) {
	path := filepath.Join(root.Name(), place, imageFile)
	defer wrap.Error(&err, "mount %s", path)
	f, err := root.OpenFile(filepath.Join(place, imageFile), os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := checkImage(f, volume); err != nil {
		return "", err
	}
	if err := v.mounted(f, target); err != nil {
		return "", err
	}
	_ = fitFS(ctx, f, target) // it serves as it is; the Meter tries again, and says why not
	data := filepath.Join(target, dataDir)
	if found, err := os.Lstat(data); err != nil || !found.IsDir() {
		return "", errors.Join(fmt.Errorf("%w: it has no directory %s; an empty one is not made in its place", runtime.ErrAbsent, dataDir), err)
	}
	return data, nil
}

// checkImage reads what the file system in an image says of itself.
func checkImage(f *os.File, volume records.VolumeID) error {
	sb, err := readSuperblock(f)
	if err != nil {
		return err
	}
	if want := fsID(volume); sb.id != want {
		return fmt.Errorf("%w: its file system has the id %s, that of the volume is %s; nothing was touched; bring the right file back",
			runtime.ErrForeign, sb.id, want)
	}
	return sb.fault()
}

// mounted makes sure that the image is mounted at target, and can be read and written.
func (v *Volumes) mounted(f *os.File, target string) error {
	there, err := mountsAt(target)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		if isOf(f, target) && usable(target) == nil {
			return nil
		}
		if err := UnmountAll(target); err != nil { // mounted again it may replay its journal
			return err
		}
	}
	sb, err := readSuperblock(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(target, 0o700); err != nil {
		return err
	}
	loop, err := attachLoop(f)
	if err != nil {
		return err
	}
	defer loop.Close() // the mount holds it; without one the kernel frees it
	if err := v.do("mount", func() error { return sb.mount(loop.Name(), target) }); err != nil {
		return err
	}
	if err := usable(target); err != nil {
		return errors.Join(err, UnmountAll(target))
	}
	return v.step("mounted")
}

// usable fails if a mounted file system has given up, by a file without a name above the data.
func usable(target string) error {
	fd, err := unix.Open(target, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, syscall.ENOSPC): // full
		return nil
	}
	return damaged(err)
}

// notInUse fails while an image at place is in use by a loop device.
func notInUse(root *os.Root, place string) error {
	f, err := root.Open(filepath.Join(place, imageFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	loop, err := findLoop(f)
	if err != nil || loop == nil {
		return err
	}
	defer loop.Close()
	return fmt.Errorf("%w: %s is in use by %s; nothing was touched; unmount it", runtime.ErrExists, filepath.Join(root.Name(), place, imageFile), loop.Name())
}
