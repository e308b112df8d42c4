package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// ErrMounted: something is mounted in a tree, or it is of several file systems.
var ErrMounted = errors.New("another file system is in it")

// ErrMoved: a directory was moved while a walk was in it, so deep that the walk has lost its way.
var ErrMoved = errors.New("a directory was moved meanwhile")

// keptOpen is how many directories on its way a walk keeps open: below, it finds back by "..".
const keptOpen = 32

// Visitor is shown a tree: each directory with all entries in it, by name, and then the directories in it, each with all
// below it.
type Visitor interface {
	// Enter begins a directory; depth is 0 at the top. The visitor does not close it.
	Enter(dir *os.File, depth int, name string) error
	// Item is in the directory that was entered last; of the top "." comes first. It may be changed.
	Item(dir *os.File, e *Item, st *unix.Stat_t) error
	// Leave ends the list of the directory that was entered last, before the directories in it.
	Leave() error
}

type walker struct {
	ctx    context.Context
	v      Visitor
	dev    uint64
	number int64
	groups map[uint64]group // by inode
}

// group is a file of several names.
type group struct {
	first int64
	left  uint64 // names that were not seen
}

// Walk shows a tree. What vanishes meanwhile is left out.
func Walk(ctx context.Context, top string, v Visitor) error {
	dir, err := os.OpenFile(top, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return err
	}
	w := &walker{ctx: ctx, v: v, dev: st.Dev, groups: map[uint64]group{}}
	_, err = w.dir(dir, ".", 0)
	return err
}

// dir walks a directory. It returns the directory, open: another descriptor, if that had to be closed meanwhile.
func (w *walker) dir(dir *os.File, name string, depth int) (*os.File, error) {
	if err := w.v.Enter(dir, depth, name); err != nil {
		return dir, err
	}
	names, err := dir.Readdirnames(-1)
	if err != nil && !Gone(err) {
		return dir, err
	}
	slices.Sort(names)
	if depth == 0 {
		names = slices.Insert(names, 0, ".")
	}
	var dirs []string
	for _, name := range names {
		isDir, err := w.entry(dir, name)
		if err != nil {
			return dir, err
		}
		if isDir && name != "." {
			dirs = append(dirs, name)
		}
	}
	names = nil
	if err := w.v.Leave(); err != nil {
		return dir, err
	}
	for _, name := range dirs {
		if dir, err = w.below(dir, name, depth); err != nil {
			return dir, err
		}
	}
	return dir, nil
}

// entry shows one name.
func (w *walker) entry(dir *os.File, name string) (isDir bool, err error) {
	if err := w.ctx.Err(); err != nil {
		return false, err
	}
	e, st, err := read(dir, name)
	if Gone(err) || errors.Is(err, unix.EINVAL) { // the last: a link that is none any more
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %q: %w", name, err)
	}
	if st.Dev != w.dev {
		return false, fmt.Errorf("%w: at %q", ErrMounted, name)
	}
	w.number++
	if e.Type() != unix.S_IFDIR && st.Nlink > 1 {
		g, seen := w.groups[st.Ino]
		if !seen {
			g = group{first: w.number, left: st.Nlink}
		}
		e.Group = g.first
		g.left--
		w.groups[st.Ino] = g
		if g.left == 0 {
			delete(w.groups, st.Ino)
		}
	}
	return e.Type() == unix.S_IFDIR, w.v.Item(dir, &e, &st)
}

// below walks a directory of another, and returns that, open.
func (w *walker) below(dir *os.File, name string, depth int) (*os.File, error) {
	next, err := OpenDir(dir, name)
	if Gone(err) {
		return dir, nil
	}
	if err != nil {
		return dir, err
	}
	if depth < keptOpen {
		next, err = w.dir(next, name, depth+1)
		return dir, errors.Join(err, next.Close())
	}
	var was, is unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &was); err != nil {
		return dir, errors.Join(err, next.Close())
	}
	dir.Close()
	if next, err = w.dir(next, name, depth+1); err != nil {
		return next, err
	}
	back, err := OpenDir(next, "..")
	if err != nil {
		return next, err
	}
	next.Close()
	if err := unix.Fstat(int(back.Fd()), &is); err != nil || is.Ino != was.Ino || is.Dev != was.Dev {
		return back, errors.Join(ErrMoved, err)
	}
	return back, nil
}
