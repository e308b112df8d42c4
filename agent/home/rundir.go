package home

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/spec"
)

// runEntries are what an agent, also one of an earlier version, has in its run directory, each from
// its first start on.
var runEntries = []string{"files", "ns", "guard", "pictures.json", "sets"}

// PrepareRunDir makes the run directory, or makes one that is there fit for Secrets: ours,
// closed to other users, and on tmpfs, so that nothing of it reaches a disk or outlives a
// boot. onDisk takes any filesystem: for tests, whose directories lie on disks.
func PrepareRunDir(dir string, onDisk bool) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the run directory: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the run directory: %w", err)
	}
	owner := st.Sys().(*syscall.Stat_t).Uid
	switch {
	case !st.IsDir():
		return fmt.Errorf("run directory %s is a link: name what it leads to", dir)
	case int(owner) != os.Geteuid():
		return fmt.Errorf("run directory %s belongs to user %d: Secrets of members would be theirs; give the agent one of its own by --run-dir", dir, owner)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("look at the run directory: %w", err)
	}
	if disk.Type != unix.TMPFS_MAGIC && disk.Type != unix.RAMFS_MAGIC && !onDisk {
		return fmt.Errorf("run directory %s is not on tmpfs: Secrets of members would be written to a disk, and what was confirmed in this boot would outlive it; "+
			"mount a tmpfs there, or name a directory below /run by --run-dir", dir)
	}
	if err := closeDir(dir, st.Mode().Perm()); err != nil {
		return err
	}
	return makeFilesDir(filepath.Join(dir, "files"))
}

// closeDir takes a directory away from other users, unless it is somebody else's: then that
// would harm them.
func closeDir(dir string, mode fs.FileMode) error {
	if mode&0o077 == 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look at the run directory: %w", err)
	}
	ours := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return slices.Contains(runEntries, e.Name()) })
	if len(entries) > 0 && !ours {
		return fmt.Errorf("run directory %s is open to other users (mode %04o) and has something else in it: give the agent one of its own by --run-dir", dir, mode)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close the run directory: %w", err)
	}
	return nil
}

// makeFilesDir makes the directory of ConfigMaps and Secrets, which other users may not list.
func makeFilesDir(dir string) error {
	if err := os.Mkdir(dir, 0o711); err != nil && !os.IsExist(err) {
		return fmt.Errorf("make the directory of files: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // also of an earlier version, and whatever the umask is
		return fmt.Errorf("close the directory of files: %w", err)
	}
	return nil
}

// BootIDFile is where the kernel says its boot id.
const BootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID reads the boot id from a file; simulated hosts have files of their own.
func BootID(path string) (spec.BootID, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	id := spec.BootID(strings.TrimSpace(string(b)))
	if id == "" {
		return "", fmt.Errorf("read the boot id: %s is empty", path)
	}
	return id, nil
}
