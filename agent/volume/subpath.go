package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/deeptree"
	"github.com/stead-project/stead/internal/wrap"
)

// SubPath implements runtime.Volumes. The path is resolved to a descriptor, and the
// descriptor is what is mounted: whatever the member renames meanwhile, the mount
// shows something of this volume.
func (d scratchDirs) SubPath(_ context.Context, s runtime.SubPath) (_ string, err error) {
	defer wrap.Error(&err, "subPath %s of volume %s", s.Path, s.Volume)
	if err := checkIdentity(s.ID, s.Container); err != nil {
		return "", err
	}
	source, err := openSubPath(s)
	if err != nil {
		return "", err
	}
	defer source.Close()
	return d.mountFor(source, filepath.Join(scratchOf(s.ID), s.Container, strconv.Itoa(s.Index)))
}

// mountFor mounts what source holds at place below the subPaths, instead of what is there, and returns
// its path.
func (d scratchDirs) mountFor(source *os.File, place string) (string, error) {
	found, err := source.Stat()
	if err != nil {
		return "", err
	}
	target := filepath.Join(d.subpaths, place)
	if err := removeMounts(d.subpaths, place); err != nil { // of the run before, or left by a crash
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return "", err
	}
	if err := makeTarget(target, found.IsDir()); err != nil {
		return "", fmt.Errorf("make %s: %w", target, err)
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", source.Fd()), target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return "", fmt.Errorf("mount at %s: %w", target, err)
	}
	if err := unix.Mount("", target, "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return "", fmt.Errorf("make the mount at %s private: %w", target, err)
	}
	return target, nil
}

// makeTarget makes what a directory or a file is mounted over.
func makeTarget(path string, dir bool) error {
	if dir {
		return unix.Mkdir(path, 0o700)
	}
	return unix.Mknod(path, unix.S_IFREG|0o600, 0)
}

// openSubPath resolves the path inside the volume, which is made as a directory if
// nothing is there. What it returns can be looked at and mounted, not read.
func openSubPath(s runtime.SubPath) (*os.File, error) {
	dir, err := unix.Open(s.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.Dir, err)
	}
	defer unix.Close(dir)
	f, err := resolve(dir, s.Path)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := makeSubPath(s); err != nil {
		return nil, err
	}
	return resolve(dir, s.Path)
}

// resolve follows path below the directory dir, and no link that leads out of it.
func resolve(dir int, path string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	var fd int
	err := deeptree.RetryRenamed(func() (err error) {
		fd, err = unix.Openat2(dir, path, &how)
		return err
	})
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), path), nil
	case errors.Is(err, unix.EXDEV):
		return nil, errors.New("a symbolic link in the volume leads out of it; remove the link, or make it relative and point it inside the volume")
	case errors.Is(err, unix.ENOSYS):
		return nil, fmt.Errorf("this kernel cannot resolve it safely; Linux 5.6 or newer is needed: %w", err)
	}
	return nil, err
}

// makeSubPath makes the directory. The group, if any, may write in it.
func makeSubPath(s runtime.SubPath) error {
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(s.Path, 0o755); err != nil {
		return err
	}
	if s.FSGroup == nil {
		return nil
	}
	f, err := root.OpenFile(s.Path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chown(-1, int(*s.FSGroup)); err != nil {
		return err
	}
	return f.Chmod(0o775 | os.ModeSetgid)
}

// removeMounts unmounts all at and below place and removes the empty directories and
// files that were mounted over. Each is removed by itself, never a tree: the kernel
// refuses to remove what is still mounted, and no data can go with it.
func removeMounts(top, place string) error {
	path := filepath.Join(top, place)
	if err := UnmountAll(path); err != nil {
		return err
	}
	return removeEmpty(path)
}

func removeEmpty(path string) error {
	found, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if found.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := removeEmpty(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	} else if found.Size() > 0 {
		return fmt.Errorf("%s is not empty; it was left", path)
	}
	return os.Remove(path)
}
