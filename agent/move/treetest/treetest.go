// Package treetest makes trees as members leave them, and lists them, for the tests of moves.
package treetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Root reports whether the test may make what only root can: devices, other owners, capabilities.
func Root() bool { return os.Geteuid() == 0 }

// ACL is a POSIX ACL, as the extended attribute has it, that gives a user further permissions.
func ACL(user uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 6, ^uint32(0)}, {2, 6, user}, {4, 4, ^uint32(0)}, {0x10, 6, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.perm)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	return b
}

// Capability is the extended attribute of a program that may bind low ports.
func Capability() []byte {
	var b []byte
	for _, v := range []uint32{0x02000001, 1 << unix.CAP_NET_BIND_SERVICE, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// Socket leaves a Unix socket at path.
func Socket(path string) error {
	dir, err := os.Open(filepath.Dir(path)) // a socket's path is short
	if err != nil {
		return err
	}
	defer dir.Close()
	lis, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), Net: "unix"})
	if err != nil {
		return err
	}
	lis.SetUnlinkOnClose(false)
	return lis.Close()
}

// List lists a tree by paths, with all that goes with a file, without a look at the code under test.
func List(t *testing.T, top string) (list []string) {
	t.Helper()
	first := map[uint64]string{}
	err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text, err := describe(top, path, first)
		list = append(list, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func describe(top, path string, first map[uint64]string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(top, path)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%q %o %d:%d %d.%09d %d", rel, st.Mode, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec, st.Rdev)
	buf := make([]byte, 64<<10)
	if n, err := unix.Llistxattr(path, buf); err == nil && n > 0 {
		names := strings.Split(strings.Trim(string(buf[:n]), "\x00"), "\x00")
		slices.Sort(names)
		for _, name := range names {
			value := make([]byte, 64<<10)
			n, err := unix.Lgetxattr(path, name, value)
			if err != nil {
				return "", err
			}
			text += fmt.Sprintf(" %s=%x", name, value[:n])
		}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink > 1 {
		if first[st.Ino] == "" {
			first[st.Ino] = rel
		}
		text += " is " + first[st.Ino]
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		content, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf(" %d %x", st.Size, sha256.Sum256(content))
	case unix.S_IFLNK:
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		text += " -> " + to
	}
	return text, nil
}

// Difference is the first one of two lists; "": there is none.
func Difference(want, got []string) string {
	line := func(list []string, i int) string {
		if i < len(list) {
			return list[i]
		}
		return "(nothing)"
	}
	for i := range max(len(want), len(got)) {
		if line(want, i) != line(got, i) {
			return "want " + line(want, i) + "\n got " + line(got, i)
		}
	}
	return ""
}

// names are those of entries that Mutate makes; the last is as long as a name can be.
var names = []string{"a", "b", "c", "d\xff", "e f", "-\n", strings.Repeat("n", 255)}

// Mutate does one thing to a tree that a member can do. Many make no sense, and fail.
func Mutate(r *rand.Rand, top string) error {
	name := func() string {
		path := top
		for range 1 + r.IntN(3) {
			path = filepath.Join(path, names[r.IntN(len(names))])
		}
		return path
	}
	path := name()
	for _, pipe := range []string{path, filepath.Dir(path)} { // to open it would block the test, or more
		if st, err := os.Stat(pipe); err == nil && !st.IsDir() && !st.Mode().IsRegular() {
			return os.Remove(pipe)
		}
	}
	switch r.IntN(20) {
	case 0, 1, 2:
		return os.MkdirAll(path, 0o755)
	case 3, 4, 5:
		return os.WriteFile(path, bytes.Repeat([]byte{byte(r.IntN(9))}, r.IntN(3<<10)), os.FileMode(0o600+r.IntN(0o177)))
	case 6:
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteAt(bytes.Repeat([]byte{7}, 5000), r.Int64N(4<<20)) // holes, and a few blocks
		return err
	case 7:
		return os.RemoveAll(path)
	case 8, 9:
		return os.Rename(path, name())
	case 10, 11:
		return os.Link(path, name())
	case 12:
		return os.Symlink("../x/"+filepath.Base(name()), path)
	case 13:
		return errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o500)) // nothing but root writes in it
	case 14:
		return special(r, path)
	case 15:
		return os.Truncate(path, r.Int64N(3<<20))
	case 16:
		return attributes(r, path)
	case 17:
		at := time.Unix(r.Int64N(8e9)-2e9, r.Int64N(1e9)) // from 1906 to 2160
		return os.Chtimes(path, at, at)
	case 18:
		return errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte("was a directory"), 0o400))
	}
	return os.Chmod(path, os.FileMode(0o700+r.IntN(0o77))|os.ModeSetuid)
}

func special(r *rand.Rand, path string) error {
	switch n := r.IntN(3); {
	case n == 0:
		return Socket(path)
	case n == 1 && Root():
		return unix.Mknod(path, unix.S_IFCHR|0o640, int(unix.Mkdev(1, uint32(3+r.IntN(3)))))
	}
	return syscall.Mkfifo(path, 0o640)
}

func attributes(r *rand.Rand, path string) error {
	err := unix.Setxattr(path, "user.k", []byte{byte(r.IntN(5))}, 0)
	if r.IntN(2) == 0 {
		err = errors.Join(err, unix.Setxattr(path, "system.posix_acl_access", ACL(uint32(r.IntN(3))), 0))
	}
	if r.IntN(2) == 0 {
		err = errors.Join(err, unix.Setxattr(path, "system.posix_acl_default", ACL(uint32(r.IntN(3))), 0))
	}
	if !Root() {
		return err
	}
	return errors.Join(err, os.Lchown(path, r.IntN(3), r.IntN(3)), unix.Setxattr(path, "security.capability", Capability(), 0),
		unix.Setxattr(path, "trusted.k", []byte{byte(r.IntN(5))}, 0))
}
