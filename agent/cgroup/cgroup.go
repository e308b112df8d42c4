// Package cgroup looks into the cgroups of members and kills what is in them, without
// any daemon. The watchdog and the loggers of guarded lives link it: it imports nothing
// but the standard library and x/sys/unix.
package cgroup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Tree is the cgroups below one parent. It knows cgroup v2, v1 and both side by side;
// on v1 a member has a directory in each hierarchy. Safe for concurrent use.
type Tree struct {
	root   string // where hierarchies are mounted
	parent string // our parent in each of them
	mounts string // mountinfo file
	known  *trees // nil: the file is read each time
}

// Root is where hierarchies are mounted on every host we know.
const Root = "/sys/fs/cgroup"

// New makes a Tree of what is below parent ("/": all) in the hierarchies mounted below root.
func New(root, parent string) Tree {
	return Tree{root: root, parent: filepath.Clean(parent), mounts: "/proc/self/mountinfo", known: &trees{}}
}

// Parent is the cgroup below which all of the tree is.
func (c Tree) Parent() string { return c.parent }

// trees remembers the hierarchies while each is still the mount that was seen: the
// table of mounts is long where many members are, and read for every look.
type trees struct {
	mu   sync.Mutex
	list []hierarchy
	ids  [][2]uint64 // device and inode of each root
}

// get returns the hierarchies, from read when one of them is not what it was.
func (k *trees) get(read func() ([]hierarchy, error)) ([]hierarchy, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now, err := rootIDs(k.list); len(k.list) > 0 && err == nil && slices.Equal(now, k.ids) {
		return k.list, nil
	}
	k.list = nil
	list, err := read()
	if err != nil {
		return nil, err
	}
	k.ids, err = rootIDs(list)
	if err == nil {
		k.list = list
	}
	return list, nil
}

func rootIDs(list []hierarchy) ([][2]uint64, error) {
	ids := make([][2]uint64, 0, len(list))
	for _, h := range list {
		var st unix.Stat_t
		if err := unix.Stat(h.path, &st); err != nil {
			return nil, err
		}
		ids = append(ids, [2]uint64{st.Dev, st.Ino})
	}
	return ids, nil
}

// hierarchy is one mounted tree of cgroups.
type hierarchy struct {
	path        string
	v2          bool
	controllers []string // of v1; among other words
}

// hierarchies lists the trees below root. None at all is an error: where nothing
// can be seen, nothing may be called empty (`ip netns exec` hides them).
func (c Tree) hierarchies() ([]hierarchy, error) {
	if c.known != nil {
		return c.known.get(c.read)
	}
	return c.read()
}

func (c Tree) read() ([]hierarchy, error) {
	text, err := os.ReadFile(c.mounts)
	if err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	var out []hierarchy
	for line := range strings.Lines(string(text)) {
		head, tail, ok := strings.Cut(strings.TrimSpace(line), " - ")
		left, right := strings.Fields(head), strings.Fields(tail)
		if !ok || len(left) < 5 || len(right) < 3 || left[3] != "/" {
			continue // not the whole hierarchy
		}
		h := hierarchy{path: left[4], v2: right[0] == "cgroup2", controllers: strings.Split(right[2], ",")}
		if h.v2 || right[0] == "cgroup" {
			if rel, err := filepath.Rel(c.root, h.path); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
				out = append(out, h)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("find cgroups: none mounted below %s", c.root)
	}
	return out, nil
}

// dirs are the directories of path (below our parent) that exist.
func (c Tree) dirs(path string) ([]hierarchy, error) {
	all, err := c.hierarchies()
	if err != nil {
		return nil, err
	}
	var out []hierarchy
	for _, h := range all {
		h.path = filepath.Join(h.path, c.parent, path)
		if _, err := os.Stat(h.path); err == nil {
			out = append(out, h)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look at cgroup: %w", err)
		}
	}
	return out, nil
}

// Empty reports whether no process is in path or below. An absent path is empty.
func (c Tree) Empty(path string) (bool, error) {
	dirs, err := c.dirs(path)
	if err != nil {
		return false, err
	}
	return empty(dirs)
}

func empty(dirs []hierarchy) (bool, error) {
	for _, h := range dirs {
		if h.v2 {
			events, err := readCgroup(filepath.Join(h.path, "cgroup.events"))
			if err != nil {
				return false, err
			}
			if bytes.Contains(events, []byte("populated 1")) {
				return false, nil
			}
		}
		pids, err := procs(h.path)
		if err != nil || len(pids) > 0 {
			return false, err
		}
	}
	return true, nil
}

// procs are the processes in dir and below. 0 is one that has no number here,
// because it is in a pid namespace outside of ours.
func procs(dir string) ([]int, error) {
	var pids []int
	err := walk(dir, func(path string) error {
		text, err := readCgroup(filepath.Join(path, "cgroup.procs"))
		if err != nil {
			return err
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			pid, err := strconv.Atoi(lines.Text())
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			pids = append(pids, pid)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at cgroup: %w", err)
	}
	return pids, nil
}

// walk calls do with dir and every directory below it, and passes over what went away.
func walk(dir string, do func(path string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if gone(err) {
			return nil
		}
		if err != nil || !d.IsDir() {
			return err
		}
		return do(path)
	})
}

// Remove removes path and all below, which must be empty.
func (c Tree) Remove(path string) error {
	dirs, err := c.dirs(path)
	if err != nil {
		return err
	}
	for _, h := range dirs {
		var below []string
		if err := walk(h.path, func(p string) error { below = append(below, p); return nil }); err != nil {
			return fmt.Errorf("remove cgroup: %w", err)
		}
		for _, p := range slices.Backward(below) {
			if err := os.Remove(p); err != nil && !gone(err) {
				return fmt.Errorf("remove cgroup: %w", err)
			}
		}
	}
	return nil
}

// OOMKills counts the processes of path that the kernel killed for memory.
func (c Tree) OOMKills(path string) (int, error) {
	n, err := c.count(path, "oom_kill", func(h hierarchy) string {
		if h.v2 {
			return "memory.events"
		}
		return "memory.oom_control"
	})
	return int(n), err
}

// Refused counts the processes and threads that path was refused, because it had as many
// as it may.
func (c Tree) Refused(path string) (int64, error) {
	return c.count(path, "max", func(hierarchy) string { return "pids.events" })
}

// count is what the kernel has counted of path by that name, in a file of one of its hierarchies.
func (c Tree) count(path, name string, file func(hierarchy) string) (int64, error) {
	dirs, err := c.dirs(path)
	if err != nil {
		return 0, err
	}
	for _, h := range dirs {
		now, err := values(filepath.Join(h.path, file(h)))
		if err != nil || now[name] != 0 {
			return now[name], err
		}
	}
	return 0, nil
}

// values are the lines of a file of a cgroup that are a name and a number.
func values(path string) (map[string]int64, error) {
	text, err := readCgroup(path)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out[f[0]] = n
	}
	return out, nil
}

// readCgroup reads a file that may be gone with its cgroup, or never have been.
func readCgroup(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if gone(err) {
		return nil, nil
	}
	return text, err
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}
