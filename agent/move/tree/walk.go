package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/deeptree"
)

// ErrMounted: something is mounted in a tree, or it is of several file systems.
var ErrMounted = errors.New("another file system is in it")

// keptOpen is how many directories on its way a walk keeps open.
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

// Walk shows a tree. What vanishes meanwhile is left out. deeptree.ErrMoved: a directory was moved meanwhile, so deep that the
// walk has lost its way.
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
	return deeptree.Way{Enter: w.dir, Skip: Gone, Kept: keptOpen}.Walk(dir)
}

// dir shows a directory, and returns the names of those in it.
func (w *walker) dir(dir *os.File, depth int, name string) (below []string, err error) {
	if err := w.v.Enter(dir, depth, name); err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err != nil && !Gone(err) {
		return nil, err
	}
	slices.Sort(names)
	if depth == 0 {
		names = slices.Insert(names, 0, ".")
	}
	for _, name := range names {
		isDir, err := w.entry(dir, name)
		if err != nil {
			return nil, err
		}
		if isDir && name != "." {
			below = append(below, name)
		}
	}
	return below, w.v.Leave()
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
