package containerdrt

import (
	"bufio"
	"bytes"
	"context"
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
	"time"

	"golang.org/x/sys/unix"
)

// cgroups looks into the cgroups of members, without the daemon. It knows cgroup
// v2, v1 and both side by side; on v1 a member has a directory in each hierarchy.
type cgroups struct {
	root   string // where hierarchies are mounted
	parent string // our parent in each of them
	mounts string // mountinfo file
	known  *trees // nil: the file is read each time
}

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
	if k.ids, err = rootIDs(list); err == nil {
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
	path    string
	v2      bool
	freezer bool
}

// hierarchies lists the trees below root. None at all is an error: where nothing
// can be seen, nothing may be called empty (`ip netns exec` hides them).
func (c cgroups) hierarchies() ([]hierarchy, error) {
	if c.known != nil {
		return c.known.get(c.read)
	}
	return c.read()
}

func (c cgroups) read() ([]hierarchy, error) {
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
		h := hierarchy{path: left[4], v2: right[0] == "cgroup2", freezer: slices.Contains(strings.Split(right[2], ","), "freezer")}
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
func (c cgroups) dirs(path string) ([]hierarchy, error) {
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

// empty reports whether no process is in path or below. An absent path is empty.
func (c cgroups) empty(path string) (bool, error) {
	dirs, err := c.dirs(path)
	if err != nil {
		return false, err
	}
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

// kill kills all processes in path and below, and returns when none is left. It
// fails when the context ends first.
func (c cgroups) kill(ctx context.Context, path string) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("kill cgroup %s: processes are left: %w", path, err)
		}
		empty, err := c.empty(path)
		if err != nil || empty {
			return err
		}
		dirs, err := c.dirs(path)
		if err != nil {
			return err
		}
		if err := killOnce(dirs); err != nil {
			return fmt.Errorf("kill cgroup %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// killOnce kills what it finds: by cgroup.kill where the kernel has it; elsewhere
// one by one, frozen on v1, so that nothing forks away.
func killOnce(dirs []hierarchy) error {
	var errs []error
	for _, h := range dirs {
		if h.v2 && os.WriteFile(filepath.Join(h.path, "cgroup.kill"), []byte("1"), 0) == nil {
			continue
		}
		freeze := filepath.Join(h.path, "freezer.state")
		if h.freezer {
			_ = os.WriteFile(freeze, []byte("FROZEN"), 0) // the loop kills without it, too
		}
		errs = append(errs, killEach(h.path))
		if h.freezer {
			if err := os.WriteFile(freeze, []byte("THAWED"), 0); err != nil && !gone(err) {
				errs = append(errs, err) // frozen processes do not die
			}
		}
	}
	return errors.Join(errs...)
}

// killEach signals through pidfds opened before a second look, so that a pid which
// was reused in between is never hit.
func killEach(dir string) error {
	pids, err := procs(dir)
	if err != nil {
		return err
	}
	fds := map[int]int{}
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for _, pid := range pids {
		if fd, err := unix.PidfdOpen(pid, 0); pid > 0 && err == nil {
			fds[pid] = fd
		}
	}
	again, err := procs(dir)
	if err != nil {
		return err
	}
	for _, pid := range again {
		if fd, ok := fds[pid]; ok {
			if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill %d: %w", pid, err)
			}
		}
	}
	return nil
}

// procs are the processes in dir and below. 0 stands for one that we cannot name,
// because it is in a pid namespace outside of ours.
func procs(dir string) ([]int, error) {
	var pids []int
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if gone(err) {
			return nil
		}
		if err != nil || !d.IsDir() {
			return err
		}
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

// remove removes path and all below, which must be empty.
func (c cgroups) remove(path string) error {
	dirs, err := c.dirs(path)
	if err != nil {
		return err
	}
	for _, h := range dirs {
		var below []string
		err := filepath.WalkDir(h.path, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				below = append(below, p)
			}
			if gone(err) {
				return nil
			}
			return err
		})
		if err != nil {
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

// oomKills counts the processes of path that the kernel killed for memory.
func (c cgroups) oomKills(path string) (int, error) {
	dirs, err := c.dirs(path)
	if err != nil {
		return 0, err
	}
	for _, h := range dirs {
		file := "memory.oom_control"
		if h.v2 {
			file = "memory.events"
		}
		text, err := readCgroup(filepath.Join(h.path, file))
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" && f[1] != "0" {
				return strconv.Atoi(f[1])
			}
		}
	}
	return 0, nil
}

// swapCounted reports whether the kernel limits swap by cgroup.
func (c cgroups) swapCounted() bool {
	for _, pattern := range []string{"memory/memory.memsw.limit_in_bytes", "*/memory.swap.max"} {
		if found, err := filepath.Glob(filepath.Join(globQuote(c.root), pattern)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
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
