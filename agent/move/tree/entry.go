// Package tree reads, compares and makes trees of files, as moves copy them: all that a member can leave in a volume, in one
// order on every host. It goes from descriptor to descriptor, follows no link, and opens nothing but directories and
// regular files (SAFETY S21).
package tree

import (
	"errors"
	"fmt"
	"os"
	"slices"
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
	Mtime    int64 // nanoseconds since 1970
	Rdev     uint64
	Target   string // of a symbolic link
	// Group is 0, or for a file of several names the number of the first entry that names it; the entries of a tree are numbered
	// in order from 1.
	Group  int64
	Xattrs []Xattr // by name
	// Sum is that of a regular file's content; nil: not known.
	Sum []byte
}

// Type is the entry's type: unix.S_IFREG and the like.
func (e *Item) Type() uint32 { return e.Mode & unix.S_IFMT }

// read looks at a name in a directory.
func read(dir *os.File, name string) (e Item, st unix.Stat_t, err error) {
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return e, st, err
	}
	e = Item{Name: name, Mode: st.Mode, UID: st.Uid, GID: st.Gid, Mtime: st.Mtim.Nano()}
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
func at(dir *os.File, name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name) }

// copied reports whether an extended attribute goes with a file. Labels of a security module are the host's.
func copied(name string) bool {
	return strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "trusted.") || name == "security.capability" ||
		name == "system.posix_acl_access" || name == "system.posix_acl_default"
}

func xattrs(dir *os.File, name string) (list []Xattr, err error) {
	path := at(dir, name)
	var buf [4096]byte
	names := buf[:]
	n, err := unix.Llistxattr(path, names)
	for errors.Is(err, unix.ERANGE) {
		names = make([]byte, 64<<10) // the most that there can be
		n, err = unix.Llistxattr(path, names)
	}
	if errors.Is(err, unix.ENOTSUP) || n == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for attr := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		if !copied(attr) {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(path, attr, value)
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read attribute %s of %q: %w", attr, name, err)
		}
		list = append(list, Xattr{attr, slices.Clone(value[:n])})
	}
	slices.SortFunc(list, func(a, b Xattr) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// openFile opens a regular file, and never anything else: a pipe in its place does not block.
func openFile(dir *os.File, name string, flags int) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, st, fmt.Errorf("open %q: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Close()
		return nil, st, fmt.Errorf("open %q: it has become something else: %w", name, errors.Join(err, unix.ENOENT))
	}
	return f, st, nil
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
