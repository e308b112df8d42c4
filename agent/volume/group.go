package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/deeptree"
)

// What a group needs, as Kubernetes gives it: read and write everywhere; on
// directories also search, and new files inherit the group.
const (
	groupFile = 0o660
	groupDir  = 0o770 | unix.S_ISGID
)

// giveTo gives the tree at top to the group. Unless g.Whole, one whose top already is the group's
// is left: then all below is taken to be so. The top is changed last, so that an interrupted
// change is started again. Symbolic links are changed themselves, never followed, and what is mounted in
// the tree is left alone.
func giveTo(ctx context.Context, root *os.Root, top string, g runtime.Group) error {
	if g.ID < 0 || g.ID > 1<<31-1 {
		return fmt.Errorf("invalid group id %d", g.ID)
	}
	found, err := root.Lstat(top)
	if err != nil {
		return err
	}
	if st := found.Sys().(*syscall.Stat_t); !g.Whole && int64(st.Gid) == g.ID && st.Mode&groupDir == groupDir {
		return nil
	}
	if err := giveTree(ctx, root, top, g); err != nil {
		return fmt.Errorf("give %s to group %d: %w", filepath.Join(root.Name(), top), g.ID, err)
	}
	return nil
}

func giveTree(ctx context.Context, root *os.Root, top string, g runtime.Group) error {
	dir, err := root.Open(top)
	if err != nil {
		return err
	}
	defer dir.Close()
	g.Progress.Begin(filepath.Join(root.Name(), top))
	give := func(at int, name string) error {
		g.Progress.Add()
		err := give(at, name, g.ID)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EXDEV) {
			return fmt.Errorf("change %q: %w", name, err)
		}
		return nil
	}
	if err := (deeptree.Visits{File: give, Dir: give, Within: true}).Walk(ctx, dir); err != nil {
		return err
	}
	return except(giveOpen(int(dir.Fd()), g.ID), fs.ErrNotExist)
}

// give changes one file, by a descriptor that opens nothing.
func give(at int, name string, group int64) error {
	fd, err := deeptree.OpenWithin(at, name, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return giveOpen(fd, group)
}

// giveOpen changes what is behind a descriptor. The mode comes second: a change of owner clears setgid.
func giveOpen(fd int, group int64) error {
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
