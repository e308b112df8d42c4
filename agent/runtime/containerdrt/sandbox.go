package containerdrt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/internal/thread"
	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
)

// nsfs is the filesystem type of a pinned namespace.
const nsfs = 0x6e736673

// pins are the pinned namespaces in the order they are made: when the last is there,
// all are.
var pins = [...]string{"net", "ipc", "uts"}

func (r *daemon) sandboxDir(id spec.Identity) string {
	return filepath.Join(r.cfg.RunDir, "ns", string(id.Namespace), id.MemberName())
}

// sandboxes are the pinned namespaces of lives, and their cgroups.
type sandboxes struct {
	*daemon
	lives *lifecycle
}

// EnsureSandbox pins a network, IPC and UTS namespace, new ones but for what is the host's, and for a shared pid
// namespace starts its first process and pins that. What is half-made, or whose process has ended, is made again,
// unless a process of the identity is left: ErrExists.
func (r *sandboxes) EnsureSandbox(ctx context.Context, want runtime.Sandbox) (s runtime.Sandbox, err error) {
	if err := ctx.Err(); err != nil {
		return s, err
	}
	defer wrap.Error(&err, "sandbox of %s", want.ID)
	dir := r.sandboxDir(want.ID)
	have, err := readSandbox(dir)
	there := err == nil
	switch {
	case there && have.Token != want.Token:
		return s, fmt.Errorf("it exists for token %s: %w", have.Token, runtime.ErrExists)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return s, err
	}
	if there {
		if whole, err := r.whole(have); err != nil || whole {
			return have, err
		}
	}
	if err := r.checkContainersEmpty(want.ID); err != nil {
		return s, err
	}
	if !there || !pinned(dir) {
		have = want
		have.NetNS = filepath.Join(dir, "net")
		if err := makeSandbox(dir, have); err != nil {
			return s, err
		}
	}
	if !have.SharedPIDs {
		return have, nil
	}
	return have, r.startPause(ctx, have)
}

// whole reports whether all namespaces of a sandbox are there, and its process, if it has one.
func (r *daemon) whole(s runtime.Sandbox) (bool, error) {
	if !pinned(r.sandboxDir(s.ID)) || !s.SharedPIDs {
		return pinned(r.sandboxDir(s.ID)), nil
	}
	return r.pausing(s.ID)
}

// checkEmpty fails while a process of the identity is left.
func (r *sandboxes) checkEmpty(ctx context.Context, id spec.Identity) error {
	empty, err := r.Empty(ctx, id)
	if err == nil && !empty {
		return fmt.Errorf("processes are left: %w", runtime.ErrExists)
	}
	return err
}

// makeSandbox says first whose it is, then pins.
func makeSandbox(dir string, s runtime.Sandbox) error {
	if err := unpin(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := durable.PutUnsynced(filepath.Join(dir, "sandbox.json"), text, 0o600); err != nil {
		return err
	}
	return thread.Run(func() error { return pin(dir, s) })
}

// pin makes the namespaces, on a thread that ends with them. What it does not make is the host's: pinned as
// well, so that all else finds it where it finds others.
func pin(dir string, s runtime.Sandbox) error {
	flags := unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if !s.HostNetwork {
		flags |= unix.CLONE_NEWNET
	}
	if err := unix.Unshare(flags); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("set hostname %q: %w", s.Hostname, err)
	}
	for _, name := range pins {
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o400)
		if err != nil {
			return err
		}
		f.Close()
		source := fmt.Sprintf("/proc/self/task/%d/ns/%s", unix.Gettid(), name)
		if err := unix.Mount(source, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("pin %s: %w", path, err)
		}
	}
	return nil
}

// pinned reports whether all namespaces are there.
func pinned(dir string) bool {
	for _, name := range pins {
		if !isPin(filepath.Join(dir, name)) {
			return false
		}
	}
	return true
}

func isPin(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == nsfs
}

// unpin unmounts and removes the pins in dir.
func unpin(dir string) error {
	for _, name := range append(pins[:], pidPin) {
		path := filepath.Join(dir, name)
		for isPin(path) {
			if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
				return fmt.Errorf("unpin %s: %w", path, err)
			}
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func readSandbox(dir string) (s runtime.Sandbox, err error) {
	err = durable.GetJSON(filepath.Join(dir, "sandbox.json"), &s)
	return s, err
}

// Sandboxes lists what is there, half-made ones too, sorted by path.
func (r *sandboxes) Sandboxes(ctx context.Context) (out []runtime.Sandbox, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer wrap.Error(&err, "list sandboxes")
	files, err := fs.Glob(os.DirFS(r.cfg.RunDir), "ns/*/*/sandbox.json")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		s, err := readSandbox(filepath.Join(r.cfg.RunDir, filepath.Dir(f)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// RemoveSandbox ends the sandbox's own process, unpins the namespaces and removes the identity's
// cgroups, which it has seen empty. Without a record, which a reboot takes away, the daemon may still know a process.
func (r *sandboxes) RemoveSandbox(ctx context.Context, id spec.Identity) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer wrap.Error(&err, "remove sandbox of %s", id)
	if err := r.checkEmpty(ctx, id); err != nil {
		return err
	}
	dir := r.sandboxDir(id)
	if have, err := readSandbox(dir); err != nil || have.SharedPIDs {
		if err := r.endPause(ctx, id); err != nil {
			return err
		}
	}
	if err := errors.Join(r.cgroups.Remove(memberDir(id)), unpin(dir)); err != nil {
		return err
	}
	// Last, so that an interrupted removal is still listed.
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(dir)) // the namespace's directory, if it was the last
	return nil
}

// Empty looks at the identity's cgroups. The one process that it does not count is the first of the
// pid namespace that is pinned for the identity: whatever else is in its cgroup counts.
func (r *sandboxes) Empty(ctx context.Context, id spec.Identity) (_ bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	defer wrap.Error(&err, "look for processes of %s", id)
	empty, err := r.cgroups.Empty(memberDir(id))
	if err != nil || empty || !isPin(filepath.Join(r.sandboxDir(id), pidPin)) {
		return empty, err
	}
	pids, err := r.cgroups.Pids(memberDir(id))
	return err == nil && onlyPause(pids, func(pid int) bool { return r.isPause(id, pid) }), err
}

// killTime bounds KillAll: what has not died by then is stuck in the kernel.
const killTime = 10 * time.Second

// KillAll kills through the identity's cgroups, for at most 10 s.
func (r *sandboxes) KillAll(ctx context.Context, id spec.Identity) error {
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	return r.cgroups.Kill(ctx, memberDir(id))
}
