// Package tree reads, compares and makes trees of files, as moves copy them: all that a member can leave in a volume, in one
// order on every host. It goes from descriptor to descriptor, follows no link, and opens nothing but directories and
// regular files (SAFETY S21).
package tree

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Xattr is an extended attribute; ACLs are such.
type Xattr struct {
	Name  string
	Value []byte
}

// Item is a file, directory or other thing in a tree, without its content.
type Item struct {
	Name     string // in its directory; "." is the top
	Mode     uint32 // with its type
	UID, GID uint32
	Size     int64 // of a regular file
	Mtime    Time
	Rdev     uint64
	Target   string // of a symbolic link
	// Group is 0, or for a file of several names the number of the first entry that names it; the entries of a tree are numbered
	// in order from 1.
	Group  int64
	Xattrs []Xattr // by name
	// Sum is that of a regular file's content; nil: not known.
	Sum []byte
}

// Time is a time of change, of any year that a file system knows.
type Time struct{ Sec, Nsec int64 }

func timeOf(st *unix.Stat_t) (t Time) {
	t.Sec, t.Nsec = st.Mtim.Unix()
	return t
}

// ErrAttributes: a file has more extended attributes than go with it.
var ErrAttributes = errors.New("more extended attributes than a move takes along")

// attributesMost bounds the names and values of the extended attributes of one file. XFS keeps any number of them.
const attributesMost = 4 << 20

// Type is the entry's type: unix.S_IFREG and the like.
func (e *Item) Type() uint32 { return e.Mode & unix.S_IFMT }

// read looks at a name in a directory.
func read(dir *os.File, name string) (e Item, st unix.Stat_t, err error) {
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return e, st, err
	}
	e = Item{Name: name, Mode: st.Mode, UID: st.Uid, GID: st.Gid, Mtime: timeOf(&st)}
	switch e.Type() {
	case unix.S_IFREG:
		e.Size = st.Size
	case unix.S_IFLNK:
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(int(dir.Fd()), name, buf)
		if err != nil {
			return e, st, err
		}
		e.Target = string(buf[:n])
	case unix.S_IFBLK, unix.S_IFCHR:
		e.Rdev = st.Rdev
	}
	e.Xattrs, err = xattrs(dir, name)
	return e, st, err
}

// at is a path to a name in an open directory, for calls that take no descriptor. Its last element is not followed by those.
func at(dir *os.File, name string) string { return fdPath(int(dir.Fd())) + "/" + name }

// fdPath is a path to what is behind a descriptor, whatever its name is.
func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// copied reports whether an extended attribute goes with a file. Labels of a security module are the host's.
func copied(name string) bool {
	return strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "trusted.") || name == "security.capability" ||
		name == "system.posix_acl_access" || name == "system.posix_acl_default"
}

func xattrs(dir *os.File, name string) (list []Xattr, err error) {
	path := at(dir, name)
	names, err := fetch(func(buf []byte) (int, error) { return unix.Llistxattr(path, buf) })
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	size := 0
	for attr := range strings.SplitSeq(string(names), "\x00") {
		if !copied(attr) {
			continue
		}
		value, err := fetch(func(buf []byte) (int, error) { return unix.Lgetxattr(path, attr, buf) })
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read attribute %s of %q: %w", attr, name, err)
		}
		size += len(attr) + len(value)
		if size > attributesMost {
			return nil, fmt.Errorf("%w: %q has more than %d bytes of them", ErrAttributes, name, attributesMost)
		}
		list = append(list, Xattr{attr, value})
	}
	slices.SortFunc(list, func(a, b Xattr) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// fetchTries is how often what grows meanwhile is fetched.
const fetchTries = 10

// fetch asks how long something is, and then for it.
func fetch(get func([]byte) (int, error)) (b []byte, err error) {
	for range fetchTries {
		n, err := get(nil)
		if err != nil || n == 0 {
			return []byte{}, err
		}
		b = make([]byte, n)
		n, err = get(b)
		if !errors.Is(err, unix.ERANGE) {
			return b[:max(n, 0)], err
		}
	}
	return nil, unix.ERANGE
}

// openFile opens a regular file, and never anything else: a device in its place is not even opened.
func openFile(dir *os.File, name string, flags int) (*os.File, unix.Stat_t, error) {
	fd, st, err := handle(dir, name)
	if err != nil {
		return nil, st, err
	}
	defer unix.Close(fd)
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, st, fmt.Errorf("open %q: it has become something else: %w", name, unix.ENOENT)
	}
	open, err := unix.Open(fdPath(fd), flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, st, fmt.Errorf("open %q: %w", name, err)
	}
	return os.NewFile(uintptr(open), name), st, nil
}

// handle is a descriptor of what has a name, whatever it is; that is not opened.
func handle(dir *os.File, name string) (fd int, st unix.Stat_t, err error) {
	fd, err = unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		if err = unix.Fstat(fd, &st); err == nil {
			return fd, st, nil
		}
		unix.Close(fd)
	}
	return -1, st, fmt.Errorf("look at %q: %w", name, err)
}

// Gone reports whether an error says that a name is not there any more, or names something else.
func Gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) ||
		errors.Is(err, unix.ESTALE)
}

// EntryOf is what has the name now, without sum and group.
func EntryOf(dir *os.File, name string) (Item, error) {
	e, _, err := read(dir, name)
	return e, err
}
