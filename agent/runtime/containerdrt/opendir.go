package containerdrt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
)

// OpenDir opens a directory of a running container as its processes see it. No link on the way is followed. What is
// opened is the container's: nothing in it can be believed, and it may be mounted by its processes. ErrNotRunning,
// ErrNotFound: there is no such container, or no such directory in it.
func (r *commands) OpenDir(ctx context.Context, id runtime.ContainerID, path string) (_ *os.File, err error) {
	ctx, done := r.begin(ctx, lookTime)
	defer done()
	what := fmt.Sprintf("open %s in %s/%s", path, id.ID, id.Name)
	defer r.translated(ctx, &err, what)
	task, _, err := r.runningTask(ctx, id)
	if err != nil {
		return nil, err
	}
	pid := int(task.Pid())
	root, err := unix.Open(filepath.Join(procDir(pid), "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", runtime.ErrNotRunning, err)
	}
	defer unix.Close(root)
	if err := r.isOf(pid, id); err != nil { // after the root is held: the number may be another process by now
		return nil, fmt.Errorf("%w: %w", runtime.ErrNotRunning, err)
	}
	fd, err := unix.Openat2(root, strings.TrimPrefix(path, "/"), &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", runtime.ErrNotFound, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
