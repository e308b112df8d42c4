package deeptree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Visit is called with the descriptor of a directory and a name in it.
type Visit func(at int, name string) error

// Visits are what a walk calls of all below a directory.
type Visits struct {
	// File is called for each entry that is not a directory, Dir for each directory after all that is in it. Both may
	// remove what they are called with.
	File, Dir Visit
	// Look is shown each entry before all else; nil: it is not. An error ends the walk.
	Look func(*unix.Stat_t) error
	// Within: what is mounted below the directory is left out.
	Within bool

	count int
}

// Walk visits all below top. What vanishes meanwhile is left out. It ends with the first error, or with ctx, which may come
// after any number of entries.
func (v Visits) Walk(ctx context.Context, top *os.File) error {
	return Way{
		Enter: func(dir *os.File, _ int, _ string) ([]string, error) { return v.list(ctx, dir) },
		Leave: func(dir *os.File, name string) error { return v.Dir(int(dir.Fd()), name) },
		Open:  v.open,
		Skip: func(err error) bool {
			return errors.Is(err, fs.ErrNotExist) || v.Within && errors.Is(err, unix.EXDEV)
		},
	}.Walk(top)
}

// list visits all in a directory but the directories, which it returns.
func (v *Visits) list(ctx context.Context, dir *os.File) (below []string, err error) {
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("not finished after %d files and directories; it continues with the next try: %w", v.count, ctx.Err())
			}
			v.count++
			isDir, err := v.entry(dir, name)
			if err != nil {
				return nil, err
			}
			if isDir {
				below = append(below, name)
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) { // of a directory that is gone nothing is listed
			return below, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// entry visits what has this name, unless it is a directory.
func (v *Visits) entry(dir *os.File, name string) (isDir bool, err error) {
	var st unix.Stat_t
	err = unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at %q: %w", name, err)
	case v.Look != nil:
		if err := v.Look(&st); err != nil {
			return false, err
		}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return true, nil
	}
	return false, v.File(int(dir.Fd()), name)
}

// open opens a directory of another; one that is mounted there is unix.EXDEV, if the walk stays within.
func (v *Visits) open(from *os.File, name string) (*os.File, error) {
	if !v.Within {
		return OpenDir(from, name)
	}
	fd, err := OpenWithin(int(from.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("open directory %q: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Erase deletes path and all below it, following no link; absent is no error. Interrupted,
// it continues when it is called again.
func Erase(ctx context.Context, root *os.Root, path string) error {
	found, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if found.IsDir() {
		top, err := root.Open(path)
		if err != nil {
			return err
		}
		defer top.Close()
		if err := Clear(ctx, top); err != nil {
			return fmt.Errorf("delete all in %s: %w", filepath.Join(root.Name(), path), err)
		}
	}
	return present(root.Remove(path))
}

// Clear deletes all in a directory, as Erase does.
func Clear(ctx context.Context, top *os.File) error {
	all := Visits{File: unlink(0), Dir: unlink(unix.AT_REMOVEDIR)}
	err := all.Walk(ctx, top)
	for range 2 { // some file systems leave entries out of a list while others are deleted
		if errors.Is(err, unix.ENOTEMPTY) {
			err = all.Walk(ctx, top)
		}
	}
	return err
}

func unlink(flags int) Visit {
	return func(at int, name string) error {
		if err := present(unix.Unlinkat(at, name, flags)); err != nil {
			return fmt.Errorf("delete %q: %w", name, err)
		}
		return nil
	}
}

// present is err, unless that says that what was to be deleted is not there.
func present(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
