package volume

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

// A tree that a member left may have any depth, names that are no text, links, pipes and
// devices. It is walked from descriptor to descriptor: one open a directory, no path that
// grows, no link followed, and nothing opened but directories.

// visit is called with the descriptor of a directory and a name in it.
type visit func(at int, name string) error

// level is a directory on the way from the top to where the walk is.
type level struct {
	name     string // in the directory above
	dev, ino uint64
	dirs     []string // in it, not visited yet
}

// walk is one walk below a directory.
type walk struct {
	file, dir visit
	// look is shown each entry before all else; nil: it is not. An error ends the walk.
	look func(*unix.Stat_t) error
	// within: what is mounted below the directory is left out.
	within bool
	at     *os.File
	levels []level
	count  int
}

// walkTree calls file for each entry below top that is not a directory, and dir for each
// directory after all that is in it. Both may remove what they are called with. It ends
// with the first error, or with ctx, which may come after any number of entries.
func walkTree(ctx context.Context, top *os.File, file, dir visit) error {
	return (&walk{file: file, dir: dir}).run(ctx, top)
}

func (w *walk) run(ctx context.Context, top *os.File) error {
	if err := w.enter(ctx, top, "."); err != nil {
		return errors.Join(err, w.close())
	}
	for len(w.levels) > 0 {
		deepest := &w.levels[len(w.levels)-1]
		var err error
		switch last := len(deepest.dirs) - 1; {
		case last >= 0:
			name := deepest.dirs[last]
			deepest.dirs = deepest.dirs[:last]
			err = w.enter(ctx, w.at, name)
		case len(w.levels) == 1:
			return w.close()
		default:
			err = w.leave()
		}
		if err != nil {
			return errors.Join(err, w.close())
		}
	}
	return w.close() // the top itself is gone
}

func (w *walk) close() error {
	if w.at == nil {
		return nil
	}
	return w.at.Close()
}

// enter goes into a directory and visits all in it but directories. One that is gone
// meanwhile is left out.
func (w *walk) enter(ctx context.Context, from *os.File, name string) error {
	next, err := w.open(from, name)
	if errors.Is(err, fs.ErrNotExist) || w.within && errors.Is(err, unix.EXDEV) {
		return nil
	}
	if err != nil {
		return err
	}
	if w.at != nil {
		w.at.Close() // it was only read
	}
	w.at = next
	l, err := identify(next, name)
	if err != nil {
		return err
	}
	for {
		names, err := next.Readdirnames(1024)
		for _, name := range names {
			if ctx.Err() != nil {
				return fmt.Errorf("not finished after %d files and directories; it continues with the next try: %w", w.count, ctx.Err())
			}
			w.count++
			isDir, err := w.entry(name)
			if err != nil {
				return err
			}
			if isDir {
				l.dirs = append(l.dirs, name)
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) { // of a directory that is gone nothing is listed
			break
		}
		if err != nil {
			return err
		}
	}
	w.levels = append(w.levels, l)
	return nil
}

// entry visits what has this name, unless it is a directory.
func (w *walk) entry(name string) (isDir bool, err error) {
	var st unix.Stat_t
	err = unix.Fstatat(int(w.at.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at %q: %w", name, err)
	case w.look != nil:
		if err := w.look(&st); err != nil {
			return false, err
		}
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return true, nil
	}
	return false, w.file(int(w.at.Fd()), name)
}

// leave goes back up, and visits the directory that it was in. One that was moved
// elsewhere meanwhile ends the walk: what is above it is not ours.
func (w *walk) leave() error {
	left, above := w.levels[len(w.levels)-1], w.levels[len(w.levels)-2]
	up, err := openDir(w.at, "..")
	if err != nil {
		return err
	}
	w.at.Close() // it was only read
	w.at = up
	now, err := identify(up, above.name)
	if err != nil {
		return err
	}
	if now.dev != above.dev || now.ino != above.ino {
		return fmt.Errorf("directory %q was moved meanwhile", left.name)
	}
	w.levels = w.levels[:len(w.levels)-1]
	return w.dir(int(up.Fd()), left.name)
}

// open opens a directory of another; one that is mounted there is unix.EXDEV, if the walk stays within.
func (w *walk) open(from *os.File, name string) (*os.File, error) {
	if !w.within {
		return openDir(from, name)
	}
	fd, err := openWithin(int(from.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("open directory %q: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openWithin opens a name in a directory, and follows neither a link nor a mount: unix.EXDEV. It needs Linux 5.6;
// an older kernel follows mounts.
func openWithin(at int, name string, flags uint64) (fd int, err error) {
	flags |= unix.O_NOFOLLOW | unix.O_CLOEXEC
	err = retryRenamed(func() (err error) {
		fd, err = unix.Openat2(at, name, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_XDEV})
		return err
	})
	if errors.Is(err, unix.ENOSYS) {
		return unix.Openat(at, name, int(flags), 0)
	}
	return fd, err
}

func openDir(from *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(from.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open directory %q: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func identify(f *os.File, name string) (level, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return level{}, fmt.Errorf("look at directory %q: %w", name, err)
	}
	return level{name: name, dev: st.Dev, ino: st.Ino}, nil
}

// eraseTree deletes path and all below it, following no link; absent is no error. Interrupted,
// it continues when it is called again.
func eraseTree(ctx context.Context, root *os.Root, path string) error {
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
		err = walkTree(ctx, top, unlink(0), unlink(unix.AT_REMOVEDIR))
		for range 2 { // some file systems leave entries out of a list while others are deleted
			if errors.Is(err, unix.ENOTEMPTY) {
				err = walkTree(ctx, top, unlink(0), unlink(unix.AT_REMOVEDIR))
			}
		}
		if err != nil {
			return fmt.Errorf("delete all in %s: %w", filepath.Join(root.Name(), path), err)
		}
	}
	return except(root.Remove(path), fs.ErrNotExist)
}

func unlink(flags int) visit {
	return func(at int, name string) error {
		if err := except(unix.Unlinkat(at, name, flags), fs.ErrNotExist); err != nil {
			return fmt.Errorf("delete %q: %w", name, err)
		}
		return nil
	}
}

// except returns err, or nil when err is harmless.
func except(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}
