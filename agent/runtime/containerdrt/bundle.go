package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

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

// leftBundle is the end of what the daemon says when a bundle stands in the way.
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
