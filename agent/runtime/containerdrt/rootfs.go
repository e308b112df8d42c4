package containerdrt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/containerd/containerd/v2/core/mount"
	"golang.org/x/sys/unix"
)

// rootsDir is where root filesystems are mounted while they are looked into. In the run
// directory, so that what a crash left is known to be ours.
func (r *daemon) rootsDir() string { return filepath.Join(r.cfg.RunDir, "roots") }

// lookInto mounts a container's root filesystem read-only while f looks into it.
func (r *lifecycle) lookInto(id string, mounts []mount.Mount, f func(root string) error) (err error) {
	root := filepath.Join(r.rootsDir(), id)
	if err := dropRoot(root); err != nil { // of a create that a crash cut short
		return fmt.Errorf("root filesystem: %w", err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return fmt.Errorf("root filesystem: %w", err)
	}
	defer func() { err = errors.Join(err, dropRoot(root)) }()
	if err := mount.All(readOnly(mounts), root); err != nil {
		return fmt.Errorf("root filesystem: %w", err)
	}
	return f(root)
}

// readOnly also lets the kernel unmount without writing back a whole filesystem first.
func readOnly(mounts []mount.Mount) []mount.Mount {
	mounts = slices.Clone(mount.RemoveVolatileOption(mounts))
	for i, m := range mounts {
		rest := slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool { return o == "rw" || o == "ro" })
		mounts[i].Options = append(rest, "ro", "nodev", "nosuid")
	}
	return mounts
}

// dropRoot unmounts and removes a place where a root filesystem was looked into. It
// removes the directory only when it is empty: what is mounted in it is a member's.
func dropRoot(root string) error {
	if err := mount.UnmountAll(root, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unmount %s: %w", root, err)
	}
	if err := os.Remove(root); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// purgeRoots clears away what creates left that were cut short.
func (r *Runtime) purgeRoots() error {
	found, err := os.ReadDir(r.rootsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range found {
		errs = append(errs, dropRoot(filepath.Join(r.rootsDir(), e.Name())))
	}
	return errors.Join(append(errs, os.Remove(r.rootsDir()))...)
}
