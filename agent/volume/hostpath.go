package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/deeptree"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
)

// HostPath implements runtime.Volumes. As with a subPath, a descriptor is mounted: a member that
// may write on the way to it cannot make it lead elsewhere.
func (v *Volumes) HostPath(_ context.Context, p runtime.HostPath) (_ string, err error) {
	defer wrap.Error(&err, "hostPath %s", p.Path)
	if err := checkIdentity(p.ID, p.Name); err != nil {
		return "", err
	}
	if err := v.mayShow(p.Path); err != nil {
		return "", err
	}
	source, err := openHostPath(p)
	if err != nil {
		return "", err
	}
	defer source.Close()
	return v.mountFor(source, filepath.Join(scratchOf(p.ID), hostPathPlace+p.Name))
}

// mayShow refuses what Stead keeps, and what holds it.
func (v *Volumes) mayShow(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("it is not absolute")
	}
	for _, own := range v.kept {
		if spec.PathsMeet(own, path) {
			return fmt.Errorf("members must not reach %s, which Stead keeps; write another directory, or one in it", own)
		}
	}
	return nil
}

// hostPathPlace begins the name of what a life mounts of its host, beside what its containers, whose
// names have no dot, mount by subPath.
const hostPathPlace = "host."

// The types of a hostPath; "": whatever is there.
const (
	hostDirectoryOrCreate = "DirectoryOrCreate"
	hostDirectory         = "Directory"
	hostFileOrCreate      = "FileOrCreate"
	hostFile              = "File"
	hostSocket            = "Socket"
	hostCharDevice        = "CharDevice"
	hostBlockDevice       = "BlockDevice"
)

// openHostPath resolves the path, in which no part may be a link, makes what its type says, and
// checks its type. What it returns can be looked at and mounted, not read.
func openHostPath(p runtime.HostPath) (*os.File, error) {
	parts := strings.FieldsFunc(filepath.Clean(p.Path), func(r rune) bool { return r == '/' })
	at, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	for i, part := range parts {
		next, err := openOrMake(at, part, p.Type, i == len(parts)-1)
		unix.Close(at)
		if err != nil {
			return nil, fmt.Errorf("/%s: %w", filepath.Join(parts[:i+1]...), err)
		}
		at = next
	}
	f := os.NewFile(uintptr(at), p.Path)
	if err := checkType(f, p.Type); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openOrMake opens one part of a path in a directory. If nothing is there it is made, where the type
// of the whole path says so.
func openOrMake(dir int, name, kind string, last bool) (int, error) {
	fd, err := openPart(dir, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return fd, err
	}
	switch {
	case kind == "" || kind == hostDirectoryOrCreate:
		err = unix.Mkdirat(dir, name, 0o755)
	case kind == hostFileOrCreate && last:
		err = unix.Mknodat(dir, name, unix.S_IFREG|0o644, 0)
	default:
		return -1, err
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return -1, fmt.Errorf("create it: %w", err)
	}
	return openPart(dir, name)
}

func openPart(dir int, name string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	var fd int
	err := deeptree.RetryRenamed(func() (err error) {
		fd, err = unix.Openat2(dir, name, &how)
		return err
	})
	switch {
	case errors.Is(err, unix.ELOOP):
		return -1, errors.New("it is a symbolic link; write the path that it leads to")
	case errors.Is(err, unix.ENOSYS):
		return -1, fmt.Errorf("this kernel cannot resolve it safely; Linux 5.6 or newer is needed: %w", err)
	case err != nil:
		return -1, err
	}
	return fd, nil
}

// checkType fails unless f is what the type says.
func checkType(f *os.File, kind string) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	is := st.Mode().Type()
	fits := true
	switch kind {
	case hostDirectory, hostDirectoryOrCreate:
		fits = is == fs.ModeDir
	case hostFile, hostFileOrCreate:
		fits = is == 0
	case hostSocket:
		fits = is == fs.ModeSocket
	case hostCharDevice:
		fits = is == fs.ModeDevice|fs.ModeCharDevice
	case hostBlockDevice:
		fits = is == fs.ModeDevice
	}
	if !fits {
		return fmt.Errorf("it is not of type %s: %s", kind, st.Mode())
	}
	return nil
}
