package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Kill kills all processes in path and below, and returns when none is left. It
// fails when the context ends first.
func (c Tree) Kill(ctx context.Context, path string) error {
	return killAll(ctx, path, func() ([]hierarchy, error) { return c.dirs(path) })
}

// killAll kills what is in the directories of path, which it looks for again each time.
func killAll(ctx context.Context, path string, dirs func() ([]hierarchy, error)) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("kill cgroup %s: processes are left: %w", path, err)
		}
		found, err := dirs()
		if err != nil {
			return err
		}
		empty, err := empty(found)
		if err != nil || empty {
			return err
		}
		if err := killOnce(found); err != nil {
			return fmt.Errorf("kill cgroup %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// KillOnce kills what is in path and below now, and does not wait until it is gone.
func (c Tree) KillOnce(path string) error {
	dirs, err := c.dirs(path)
	if err == nil {
		err = killOnce(dirs)
	}
	if err != nil {
		return fmt.Errorf("kill cgroup %s: %w", path, err)
	}
	return nil
}

// killOnce kills what it finds: by cgroup.kill where the kernel has it; elsewhere
// one by one, frozen, so that nothing forks away.
func killOnce(dirs []hierarchy) error {
	var errs []error
	for _, h := range dirs {
		if h.v2 && os.WriteFile(filepath.Join(h.path, "cgroup.kill"), []byte("1"), 0) == nil {
			continue
		}
		freeze, still, free := "", "", ""
		switch {
		case h.v2:
			freeze, still, free = filepath.Join(h.path, "cgroup.freeze"), "1", "0"
		case slices.Contains(h.controllers, "freezer"):
			freeze, still, free = filepath.Join(h.path, "freezer.state"), "FROZEN", "THAWED"
		}
		if freeze != "" {
			// Who calls kills again and again, also without it.
			if err := os.WriteFile(freeze, []byte(still), 0); err != nil && h.v2 {
				freeze = ""
			}
		}
		errs = append(errs, killEach(h.path))
		if freeze != "" {
			if !h.v2 {
				errs = append(errs, thawBelow(h.path))
			}
			if err := os.WriteFile(freeze, []byte(free), 0); err != nil && !gone(err) {
				errs = append(errs, err) // on v1 frozen processes do not die
			}
		}
	}
	return errors.Join(errs...)
}

// thawBelow thaws what was frozen on its own below dir of v1: that of dir leaves it frozen.
func thawBelow(dir string) error {
	return walk(dir, func(path string) error {
		if path == dir {
			return nil
		}
		if err := os.WriteFile(filepath.Join(path, "freezer.state"), []byte("THAWED"), 0); err != nil && !gone(err) {
			return err
		}
		return nil
	})
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
