package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/deeptree"
)

// Shaper makes a tree what another is: it is shown the other's entries in the order of Walk, and told the contents that it
// asks for. Nobody else may write to the tree. It is for one goroutine.
type Shaper struct {
	ctx    context.Context
	sums   *Sums
	dir    *Dir
	way    []*place // to dir, from the top
	names  []string // in dir, not compared yet
	number int64
	first  map[int64]file   // the first name of a group
	taken  map[uint64]int64 // inode of a file of several names here, and the group that has it
}

// place is a directory in the tree; its parts are shared, so that a deep tree takes no more than its names.
type place struct {
	above *place // nil: it is the top
	depth int
	name  string
	time  Time            // to be set when it is left
	below map[string]Time // directories in it that were shown and not entered yet
}

// file is a name in a directory.
type file struct {
	in   *place
	name string
}

// Dir is an open directory that several use.
type Dir struct {
	*os.File
	users int
}

// Use keeps it open until Free.
func (d *Dir) Use() *Dir { d.users++; return d }

// Free closes it after the last.
func (d *Dir) Free() {
	d.users--
	if d.users == 0 {
		d.Close()
	}
}

// NewShaper begins at an existing directory.
func NewShaper(ctx context.Context, top string, sums *Sums) (*Shaper, error) {
	f, err := os.OpenFile(top, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return &Shaper{
		ctx: ctx, sums: sums, dir: (&Dir{File: f}).Use(), way: []*place{{name: ".", below: map[string]Time{}}},
		first: map[int64]file{}, taken: map[uint64]int64{},
	}, nil
}

// Close ends it, whether all was shown or not.
func (m *Shaper) Close() { m.dir.Free() }

// Dir is the directory that was entered last.
func (m *Shaper) Dir() *Dir { return m.dir }

// here is the directory that was entered last.
func (m *Shaper) here() *place { return m.way[len(m.way)-1] }

// Enter goes to a directory below one that was entered before.
func (m *Shaper) Enter(depth int, name string) error {
	if depth > 0 {
		if err := m.up(depth - 1); err != nil {
			return err
		}
		above := m.here()
		time, shown := above.below[name]
		if !shown || above.depth != depth-1 {
			return fmt.Errorf("directory %q was not shown", name)
		}
		delete(above.below, name)
		next, err := deeptree.OpenDir(m.dir.File, name)
		if err != nil {
			return err
		}
		m.swap(next)
		m.way = append(m.way, &place{above: above, depth: depth, name: name, time: time, below: map[string]Time{}})
	}
	names, err := m.dir.Readdirnames(-1)
	slices.Sort(names)
	m.names = names
	return err
}

func (m *Shaper) swap(next *os.File) {
	m.dir.Free()
	m.dir = (&Dir{File: next}).Use()
}

// up goes back to a directory on the way. The times of those that are left are set now: nothing is made in them any more.
func (m *Shaper) up(depth int) error {
	for m.here().depth > max(depth, 0) {
		next, err := deeptree.OpenDir(m.dir.File, "..")
		if err != nil {
			return err
		}
		m.swap(next)
		left := m.here()
		if err := setTime(m.dir.File, left.name, left.time); err != nil {
			return err
		}
		left.below = nil
		m.way = m.way[:len(m.way)-1]
	}
	return nil
}

// End leaves all directories; top is the entry of the tree's top.
func (m *Shaper) End(top *Item) error {
	if err := m.up(0); err != nil {
		return err
	}
	return m.settle(m.dir.File, ".", top)
}

// valid refuses an entry whose name is not a single element of a path.
func (e *Item) valid() error {
	if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") || len(e.Name) > unix.NAME_MAX {
		return fmt.Errorf("invalid name %q", e.Name)
	}
	return nil
}

// Leave ends the list of the directory: what was not shown goes.
func (m *Shaper) Leave() error { return m.drop("") }

// drop deletes what is here before next and was not shown; "": all of it.
func (m *Shaper) drop(next string) error {
	for len(m.names) > 0 && (next == "" || m.names[0] < next) {
		if err := m.remove(m.names[0]); err != nil {
			return err
		}
		m.names = m.names[1:]
	}
	if len(m.names) > 0 && m.names[0] == next {
		m.names = m.names[1:]
	}
	return nil
}

// Item makes what has the name what is shown, but for the content of a file. It reports whether that must be told: Needs.
func (m *Shaper) Item(e *Item) (needs bool, err error) {
	if err := m.ctx.Err(); err != nil {
		return false, err
	}
	if err := e.valid(); err != nil {
		return false, err
	}
	m.number++
	if err := m.drop(e.Name); err != nil {
		return false, err
	}
	have, st, err := read(m.dir.File, e.Name)
	switch {
	case errors.Is(err, unix.ENOENT):
		have.Name = ""
	case err != nil:
		return false, fmt.Errorf("look at %q: %w", e.Name, err)
	case !m.fits(e, &have, &st):
		if err := m.remove(e.Name); err != nil {
			return false, err
		}
		have.Name = ""
	}
	if first, ok := m.first[e.Group]; ok && e.Group != 0 { // another name of a file that is here
		if have.Name == "" {
			err = m.link(first, e.Name)
		}
		return false, err
	}
	if have.Name == "" {
		if err := m.create(e); err != nil {
			return false, fmt.Errorf("create %q: %w", e.Name, err)
		}
		have, st, err = read(m.dir.File, e.Name)
		if err != nil {
			return false, err
		}
	}
	if e.Group != 0 {
		m.first[e.Group] = file{m.here(), e.Name}
		m.taken[st.Ino] = e.Group
	} else if st.Nlink > 1 && e.Type() != unix.S_IFDIR {
		m.taken[st.Ino] = -m.number
	}
	if e.Type() == unix.S_IFDIR {
		m.here().below[e.Name] = e.Mtime
	}
	if e.Type() == unix.S_IFREG {
		sum := m.sums.Find(&st)
		if e.Sum == nil || sum == nil || !bytes.Equal(e.Sum, sum) || st.Size != e.Size {
			return true, nil
		}
	}
	if same(e, &have) {
		return false, nil
	}
	return false, m.settle(m.dir.File, e.Name, e)
}

// fits reports whether what is here can become what is shown without being made anew.
func (m *Shaper) fits(e, have *Item, st *unix.Stat_t) bool {
	if e.Type() != have.Type() || e.Target != have.Target || e.Rdev != have.Rdev {
		return false
	}
	if e.Type() == unix.S_IFDIR {
		return true
	}
	group, taken := m.taken[st.Ino]
	if _, shown := m.first[e.Group]; e.Group != 0 && shown {
		return taken && group == e.Group
	}
	return !taken // else what is written to it is written to another file that was shown
}

func same(e, have *Item) bool {
	return e.Mode == have.Mode && e.UID == have.UID && e.GID == have.GID && e.Mtime == have.Mtime &&
		slices.EqualFunc(e.Xattrs, have.Xattrs, func(a, b Xattr) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) })
}

// link gives a file another name in the directory. It goes up only as far as to the first directory that is above both.
func (m *Shaper) link(first file, name string) error {
	var down []string
	ups, from, to := 0, m.here(), first.in
	for from != to {
		if from.depth >= to.depth {
			ups, from = ups+1, from.above
		} else {
			down, to = append(down, to.name), to.above
		}
	}
	slices.Reverse(down)
	at := m.dir.Use()
	defer func() { at.Free() }()
	for _, dir := range slices.Concat(slices.Repeat([]string{".."}, ups), down) {
		next, err := deeptree.OpenDir(at.File, dir)
		if err != nil {
			return err
		}
		at.Free()
		at = (&Dir{File: next}).Use()
	}
	if err := unix.Linkat(int(at.Fd()), first.name, int(m.dir.Fd()), name, 0); err != nil {
		return fmt.Errorf("link %q: %w", name, err)
	}
	return nil
}

// create makes an entry without content, for its owner alone until it is settled.
func (m *Shaper) create(e *Item) error {
	dir := int(m.dir.Fd())
	switch e.Type() {
	case unix.S_IFDIR:
		return unix.Mkdirat(dir, e.Name, 0o700)
	case unix.S_IFREG:
		fd, err := unix.Openat(dir, e.Name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	case unix.S_IFLNK:
		return unix.Symlinkat(e.Target, dir, e.Name)
	case unix.S_IFIFO, unix.S_IFSOCK, unix.S_IFCHR, unix.S_IFBLK:
		return unix.Mknodat(dir, e.Name, e.Type()|0o600, int(e.Rdev))
	}
	return fmt.Errorf("unknown type %o", e.Type())
}
