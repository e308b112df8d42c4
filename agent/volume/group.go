package volume

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// What a group needs, as Kubernetes gives it: read and write everywhere; on
// directories also search, and new files inherit the group.
const (
	groupFile = 0o660
	groupDir  = 0o770 | unix.S_ISGID
)

// giveTo gives the tree at top to the group, unless top itself already is its: then
// all below is taken to be so. The top is changed last, so that an interrupted
// change is begun again. Symbolic links are changed themselves, never followed.
func giveTo(ctx context.Context, root *os.Root, top string, group int64) error {
	if group < 0 || group > 1<<31-1 {
		return fmt.Errorf("invalid group id %d", group)
	}
	found, err := root.Lstat(top)
	if err != nil {
		return err
	}
	if st := found.Sys().(*syscall.Stat_t); int64(st.Gid) == group && st.Mode&groupDir == groupDir {
		return nil
	}
	if err := giveTree(ctx, root, top, group); err != nil {
		return fmt.Errorf("give %s to group %d: %w", filepath.Join(root.Name(), top), group, err)
	}
	return nil
}

func giveTree(ctx context.Context, root *os.Root, top string, group int64) error {
	dir, err := root.Open(top)
	if err != nil {
		return err
	}
	defer dir.Close()
	above, err := root.Open(filepath.Dir(top))
	if err != nil {
		return err
	}
	defer above.Close()
	give := func(at int, name string) error {
		if err := except(give(at, name, group), fs.ErrNotExist); err != nil {
			return fmt.Errorf("change %q: %w", name, err)
		}
		return nil
	}
	if err := walkTree(ctx, dir, give, give); err != nil {
		return err
	}
	return give(int(above.Fd()), filepath.Base(top))
}

// give changes one file, by a descriptor that opens nothing. The mode comes second: a
// change of owner clears setgid.
func give(at int, name string, group int64) error {
	fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	given := int64(st.Gid) == group
	if !given {
		if err := unix.Fchownat(fd, "", -1, int(group), unix.AT_EMPTY_PATH); err != nil {
			return err
		}
	}
	want := st.Mode
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		want |= groupDir
	case unix.S_IFREG:
		want |= groupFile
	default:
		return nil
	}
	if given && want == st.Mode {
		return nil
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), want&^unix.S_IFMT)
}
