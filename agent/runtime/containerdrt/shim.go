package containerdrt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// reapShims kills the shims of our namespace that the daemon has forgotten, with
// their loggers: those of one container, or all (id ""). It is for containers
// without a task only. A shim gets forgotten when its logger hangs at a start.
func (r *lifecycle) reapShims(id string) error {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		if !r.isShim(dir, id) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		loggers := r.loggersOf(dirs, pid)
		errs = append(errs, killIf(pid, func() bool { return r.isShim(dir, id) }))
		for _, child := range loggers {
			errs = append(errs, killIf(child, func() bool { return r.isLogger(procDir(child)) }))
		}
	}
	return errors.Join(errs...)
}

func procDir(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid)) }

// isShim reports whether a process is a shim of ours for the container. What the
// daemon runs to start a shim, or to clear away after one that died, is none.
func (r *lifecycle) isShim(dir, id string) bool {
	argv := r.shimArgs(dir, id)
	return argv != nil && argv[len(argv)-1] != "start" && argv[len(argv)-1] != "delete"
}

// clearing reports whether the daemon is just clearing away after a shim of the
// container that died. Killed, it would leave the bundle for ever.
func (r *lifecycle) clearing(id string) (bool, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	return slices.ContainsFunc(dirs, func(dir string) bool {
		argv := r.shimArgs(dir, id)
		return argv != nil && argv[len(argv)-1] == "delete"
	}), err
}

// shimArgs is the command line of a process that runs the shim's program for a
// container of ours; nil: it does not.
func (r *lifecycle) shimArgs(dir, id string) []string {
	argv := argvOf(dir)
	if len(argv) == 0 || !strings.HasPrefix(filepath.Base(argv[0]), "containerd-shim-runc-") ||
		option(argv, "-namespace") != r.cfg.Namespace || id != "" && option(argv, "-id") != id {
		return nil
	}
	return argv
}

func option(argv []string, name string) string {
	if at := slices.Index(argv, name); at >= 0 && at+1 < len(argv) {
		return argv[at+1]
	}
	return ""
}

func (r *lifecycle) isLogger(dir string) bool { return slices.Contains(argvOf(dir), r.cfg.Logger) }

// loggersOf are the logger's processes below a shim: one is a child of the other.
func (r *lifecycle) loggersOf(dirs []string, parent int) []int {
	var out []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && parentOf(dir) == parent && r.isLogger(dir) {
			out = append(append(out, pid), r.loggersOf(dirs, pid)...)
		}
	}
	return out
}

func argvOf(dir string) []string {
	text, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// parentOf reads the fourth field of stat; the second, in brackets, may hold blanks.
func parentOf(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return pid
}

// killIf kills a process that is still the one meant: it is held by a pidfd first
// and looked at second, so that a reused pid is never hit.
func killIf(pid int, still func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if !still() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %d: %w", pid, err)
	}
	return nil
}
