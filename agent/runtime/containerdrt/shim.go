package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
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
// container that died. Killed, the bundle would be left for good.
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
		if err != nil || !r.isLogger(dir) {
			continue
		}
		if above, _ := parentAndSession(pid); above == parent {
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

const (
	// clearTime is how long the daemon may take to clear away after a shim that died,
	// beside the time in which it runs a program for that. It gives up after 5 s.
	clearTime = 8 * time.Second
	clearLook = 50 * time.Millisecond
)

// createTask makes the process. What the daemon still has of the container's shim
// before, which died, is waited for; what it has given up to clear away is cleared.
func (r *lifecycle) createTask(ctx context.Context, c containerd.Container, out cio.Creator) (containerd.Task, error) {
	idle := time.Now() // since when the daemon has not been seen clearing
	for {
		task, err := c.NewTask(ctx, out)
		bundle, left := r.bundleLeft(c.ID(), err)
		if !left && !errdefs.IsAlreadyExists(err) {
			return task, err
		}
		busy, look := r.clearing(c.ID())
		switch {
		case look != nil:
			return nil, errors.Join(err, look)
		case busy:
			idle = time.Now()
		case time.Since(idle) < clearTime:
		case !left:
			return nil, err
		default:
			if failed := clearBundle(bundle); failed != nil {
				return nil, errors.Join(err, failed)
			}
			idle = time.Now()
			continue
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(clearLook):
		}
	}
}

// leftBundle is the end of what the daemon says when a bundle is in the way.
var leftBundle = regexp.MustCompile(`mkdir (/\S+): file exists`)

// bundleLeft finds the bundle of the container in the daemon's error: the directory
// of a shim before, in which no shim runs any more.
func (r *lifecycle) bundleLeft(id string, err error) (string, bool) {
	if err == nil {
		return "", false
	}
	found := leftBundle.FindStringSubmatch(err.Error())
	if found == nil || !strings.HasSuffix(found[1], filepath.Join("/io.containerd.runtime.v2.task", r.cfg.Namespace, id)) {
		return "", false
	}
	return found[1], true
}

// clearBundle removes a bundle of ours, and nothing that is still mounted in it.
func clearBundle(dir string) error {
	root := filepath.Join(dir, "rootfs")
	if err := unix.Unmount(root, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("clear bundle: unmount %s: %w", root, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("clear bundle: %w", err)
	}
	if strings.Contains(string(mounts), " "+dir+"/") {
		return fmt.Errorf("clear bundle: something is still mounted in %s", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("clear bundle: %w", err)
	}
	return nil
}
