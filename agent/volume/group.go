package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// What a group needs, as Kubernetes gives it: read and write everywhere; on
// directories also search, and new files inherit the group.
const (
	groupFile = fs.FileMode(0o660)
	groupDir  = fs.FileMode(0o770) | fs.ModeSetgid
)

// giveTo gives the tree at top to the group, unless top itself already is its: then
// all below is taken to be so. The top is changed last, so that an interrupted
// change is begun again. Symbolic links are changed themselves, never followed.
func giveTo(ctx context.Context, root *os.Root, top string, group int64) error {
	if group < 0 || group > 1<<31-1 {
		return fmt.Errorf("%d is no group id", group)
	}
	found, err := root.Lstat(top)
	if err != nil {
		return err
	}
	if gid(found) == group && found.Mode()&groupDir == groupDir {
		return nil
	}
	below, err := root.OpenRoot(top)
	if err != nil {
		return err
	}
	defer below.Close()
	err = giveBelow(ctx, below, ".", group)
	if err != nil {
		return fmt.Errorf("give %s to group %d: %w", filepath.Join(root.Name(), top), group, err)
	}
	return give(root, top, group)
}

// giveBelow gives away what is in dir, deepest first. (fs.WalkDir over a Root
// refuses names that are not UTF-8.)
func giveBelow(ctx context.Context, root *os.Root, dir string, group int64) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close(), ctx.Err()); err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			if err := giveBelow(ctx, root, path, group); err != nil {
				return err
			}
		}
		if err := give(root, path, group); err != nil {
			return err
		}
	}
	return nil
}

// give changes one file. The mode comes second: a change of owner clears setgid.
func give(root *os.Root, path string, group int64) error {
	found, err := root.Lstat(path)
	if err != nil {
		return err
	}
	if gid(found) != group {
		if err := root.Lchown(path, -1, int(group)); err != nil {
			return err
		}
	}
	want := found.Mode()
	switch {
	case found.IsDir():
		want |= groupDir
	case found.Mode().IsRegular():
		want |= groupFile
	default:
		return nil
	}
	if gid(found) == group && want == found.Mode() {
		return nil
	}
	return root.Chmod(path, want&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
}

func gid(found fs.FileInfo) int64 {
	if sys, ok := found.Sys().(*syscall.Stat_t); ok {
		return int64(sys.Gid)
	}
	return -1
}
