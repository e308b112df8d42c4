// Package deeptree walks and deletes trees that somebody else left, and may be changing: of any depth, with names that are no
// text, links, pipes and devices. It goes from descriptor to descriptor: one open a directory, no path that grows, no link
// followed, and nothing opened but directories.
package deeptree

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrMoved: a directory was moved while a walk was in it, and what is above it now is not what was walked.
var ErrMoved = errors.New("was moved meanwhile")

// Way says how a tree is walked: into a directory, into each directory that is in it, one after the other, and back.
type Way struct {
	// Enter is shown a directory, open until it returns; depth is 0 at the top, whose name is ".". It returns the names of the
	// directories in it to go to, in order. An error of it ends the walk.
	Enter func(dir *os.File, depth int, name string) (below []string, err error)
	// Leave is called in the directory above, after all below name; nil: it is not.
	Leave func(dir *os.File, name string) error
	// Open opens a directory of another; nil: OpenDir. One for which Skip reports true of the error is left out.
	Open func(from *os.File, name string) (*os.File, error)
	Skip func(error) bool
	// Kept is how many directories on the way are kept open, from the top. Back to those a walk finds also when the one that it
	// is in was moved; to those below it goes by "..", and ends with ErrMoved if that is another.
	Kept int
}

// level is a directory on the way from the top to where the walk is.
type level struct {
	name     string // in the directory above
	dev, ino uint64
	below    []string // in it, not visited yet
	open     *os.File // if it is kept open
}

type walk struct {
	Way
	at     *os.File
	levels []level
}

// Walk walks the tree at top, which is not closed. It ends with the first error.
func (w Way) Walk(top *os.File) (err error) {
	r := &walk{Way: w}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.enter(top, "."); err != nil {
		return err
	}
	for len(r.levels) > 0 { // none: the top itself is gone
		deepest := &r.levels[len(r.levels)-1]
		var err error
		switch {
		case len(deepest.below) > 0:
			name := deepest.below[0]
			deepest.below = deepest.below[1:]
			err = r.enter(r.at, name)
		case len(r.levels) == 1:
			return nil
		default:
			err = r.leave()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *walk) close() (err error) {
	for _, l := range r.levels {
		if l.open != nil && l.open != r.at {
			err = errors.Join(err, l.open.Close())
		}
	}
	if r.at != nil {
		err = errors.Join(err, r.at.Close())
	}
	return err
}

// enter goes into a directory.
func (r *walk) enter(from *os.File, name string) error {
	open := OpenDir
	if r.Open != nil {
		open = r.Open
	}
	next, err := open(from, name)
	if err != nil && r.Skip != nil && r.Skip(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if depth := len(r.levels); depth > 0 {
		if depth <= r.Kept {
			r.levels[depth-1].open = r.at
		} else {
			r.at.Close() // it was only read
		}
	}
	r.at = next
	l, err := identify(next, name)
	if err != nil {
		return err
	}
	r.levels = append(r.levels, l)
	below, err := r.Enter(next, len(r.levels)-1, name)
	r.levels[len(r.levels)-1].below = below
	return err
}

// leave goes back up. A directory that was moved elsewhere meanwhile ends the walk: what is above it is not ours.
func (r *walk) leave() error {
	left, above := r.levels[len(r.levels)-1], &r.levels[len(r.levels)-2]
	up := above.open
	if up == nil {
		var err error
		if up, err = OpenDir(r.at, ".."); err != nil {
			return err
		}
	}
	above.open = nil
	r.at.Close() // it was only read
	r.at = up
	now, err := identify(up, above.name)
	if err != nil {
		return err
	}
	if now.dev != above.dev || now.ino != above.ino {
		return fmt.Errorf("directory %q %w", left.name, ErrMoved)
	}
	r.levels = r.levels[:len(r.levels)-1]
	if r.Leave == nil {
		return nil
	}
	return r.Leave(up, left.name)
}

func identify(f *os.File, name string) (level, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return level{}, fmt.Errorf("look at directory %q: %w", name, err)
	}
	return level{name: name, dev: st.Dev, ino: st.Ino}, nil
}

// OpenDir opens a directory of another, and follows no link.
func OpenDir(from *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(from.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open directory %q: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// OpenWithin opens a name in a directory, and follows neither a link nor a mount: unix.EXDEV. It needs Linux 5.6;
// an older kernel follows mounts.
func OpenWithin(at int, name string, flags uint64) (fd int, err error) {
	flags |= unix.O_NOFOLLOW | unix.O_CLOEXEC
	err = RetryRenamed(func() (err error) {
		fd, err = unix.Openat2(at, name, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_XDEV})
		return err
	})
	if errors.Is(err, unix.ENOSYS) {
		return unix.Openat(at, name, int(flags), 0)
	}
	return fd, err
}

// renameTries is how often RetryRenamed repeats a call.
const renameTries = 100

// RetryRenamed repeats what was interrupted because something was renamed meanwhile.
func RetryRenamed(do func() error) (err error) {
	for range renameTries {
		err = do()
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return err
}
