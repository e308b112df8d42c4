package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Bounds are what all that is below our parent may use together; 0: no bound.
type Bounds struct{ Processes, MemoryBytes int64 }

// Bound makes the bounds hold, also for what runs already; it may be repeated. It fails,
// with the other bound set, where the kernel has no way to keep one, and where more memory
// than that is in use that cannot be taken back: to set the bound would kill.
func (c Tree) Bound(b Bounds) error {
	all, err := c.hierarchies()
	if err != nil {
		return err
	}
	return errors.Join(c.boundProcesses(all, b.Processes), c.boundMemory(all, b.MemoryBytes))
}

func (c Tree) boundProcesses(all []hierarchy, most int64) error {
	dir, _, err := c.boundDir(all, "pids")
	if err == nil {
		err = setBound(filepath.Join(dir, "pids.max"), most, "max")
	}
	if err != nil {
		return fmt.Errorf("bound the processes of all members: %w", err)
	}
	return nil
}

func (c Tree) boundMemory(all []hierarchy, most int64) error {
	dir, v2, err := c.boundDir(all, "memory")
	file, none := filepath.Join(dir, "memory.max"), "max"
	if !v2 {
		file, none = filepath.Join(dir, "memory.limit_in_bytes"), "-1"
	}
	if err == nil && most > 0 {
		var used int64
		used, err = heldMemory(dir)
		if err == nil && used > most {
			err = fmt.Errorf("they use more than %d bytes already: it is set when they use less", most)
		}
	}
	if err == nil {
		err = setBound(file, most, none)
	}
	if err != nil {
		return fmt.Errorf("bound the memory of all members: %w", err)
	}
	return nil
}

// boundDir is our parent's directory in the hierarchy that has a controller, made if need be.
func (c Tree) boundDir(all []hierarchy, controller string) (dir string, v2 bool, err error) {
	for _, h := range all {
		dir = filepath.Join(h.path, c.parent)
		if !h.v2 {
			if slices.Contains(h.controllers, controller) {
				return dir, false, os.MkdirAll(dir, 0o755)
			}
			continue
		}
		text, err := readCgroup(filepath.Join(h.path, "cgroup.controllers"))
		if err != nil {
			return "", true, err
		}
		if !slices.Contains(strings.Fields(string(text)), controller) {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", true, err
		}
		return dir, true, hand(h.path, filepath.Dir(dir), controller)
	}
	return "", false, fmt.Errorf("this kernel has no cgroup controller %s", controller)
}

// hand hands a controller of v2 down from root to the children of dir.
func hand(root, dir, controller string) error {
	if dir != root {
		if err := hand(root, filepath.Dir(dir), controller); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
}

// heldMemory is what is in use below dir and cannot be taken back: not the cache of files.
func heldMemory(dir string) (int64, error) {
	now, err := values(filepath.Join(dir, "memory.stat"))
	return now["anon"] + now["shmem"] + now["total_rss"] + now["total_shmem"], err
}

// setBound writes a bound, or none for 0, unless it is there.
func setBound(file string, most int64, none string) error {
	want := none
	if most > 0 {
		want = strconv.FormatInt(most, 10)
	}
	now, err := readCgroup(file)
	if err != nil || strings.TrimSpace(string(now)) == want {
		return err
	}
	return os.WriteFile(file, []byte(want), 0)
}

// SwapCounted reports whether the kernel limits swap by cgroup.
func (c Tree) SwapCounted() bool {
	root := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(c.root)
	for _, pattern := range []string{"memory/memory.memsw.limit_in_bytes", "*/memory.swap.max"} {
		if found, err := filepath.Glob(filepath.Join(root, pattern)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}
