package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/oci"
	kernelseccomp "github.com/containerd/containerd/v2/pkg/seccomp"
	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// The first process of a pid namespace that the containers of a life share is the sandbox's: a container
// of containerd's like the others, so that it outlives the agent, with stead-node as its program and nothing
// else in its file system. Its labels do not say that it is a member's, so List passes over it.
const (
	// pauseName is its cgroup below the identity's; no container of a member has a dot in its name.
	pauseName = ".pause"
	// pidPin is where its namespace is pinned, beside pins.
	pidPin = "pid"
	// pauseUser is Kubernetes' for such a process; no capability goes with it.
	pauseUser = 65535
	// pauseProcesses bounds it: Go's own threads.
	pauseProcesses int64 = 32
	// pauseOOMScore keeps the kernel from ending it before all others when memory is short, as in Kubernetes.
	pauseOOMScore = -998
	labelPause    = labelPrefix + "pause" // of which member
)

func pauseID(id spec.Identity) runtime.ContainerID {
	return runtime.ContainerID{ID: id, Name: pauseName}
}

func pauseCgroup(id spec.Identity) string { return memberDir(id) + "/" + pauseName }

// pausing reports whether the first process of the pid namespace that is pinned for the identity is
// there.
func (r *daemon) pausing(id spec.Identity) (bool, error) {
	pids, err := r.cgroups.Pids(pauseCgroup(id))
	if err != nil {
		return false, fmt.Errorf("look for the sandbox's process: %w", err)
	}
	return slices.ContainsFunc(pids, func(pid int) bool { return r.isPause(id, pid) }), nil
}

// isPause reports whether a process is the first of the pid namespace that is pinned for the identity.
func (r *daemon) isPause(id spec.Identity, pid int) bool {
	if pid <= 0 {
		return false
	}
	var pin, own unix.Stat_t
	path := filepath.Join(r.sandboxDir(id), pidPin)
	if !isPin(path) || unix.Stat(path, &pin) != nil || unix.Stat(filepath.Join(procDir(pid), "ns/pid"), &own) != nil {
		return false
	}
	return own.Dev == pin.Dev && own.Ino == pin.Ino && isFirst(pid)
}

// onlyPause reports whether nothing but the sandbox's process is among these. None at all are processes
// that have no number here.
func onlyPause(pids []int, isPause func(pid int) bool) bool {
	return len(pids) > 0 && !slices.ContainsFunc(pids, func(pid int) bool { return !isPause(pid) })
}

// isFirst reports whether a process has the number 1 in its own pid namespace.
func isFirst(pid int) bool {
	text, err := os.ReadFile(filepath.Join(procDir(pid), "status"))
	return err == nil && firstOf(string(text))
}

// firstOf reports it of the process with this status: its number in each pid namespace, the host's first.
func firstOf(status string) bool {
	for line := range strings.Lines(status) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			all := strings.Fields(numbers)
			return len(all) > 1 && all[len(all)-1] == "1"
		}
	}
	return false
}

// checkContainersEmpty fails while a process of the identity is left in any cgroup but the pause's.
func (r *daemon) checkContainersEmpty(id spec.Identity) error {
	empty, err := r.cgroups.Empty(memberDir(id))
	if err != nil || empty {
		return err
	}
	all, err := r.cgroups.Pids(memberDir(id))
	if err != nil {
		return err
	}
	own, err := r.cgroups.Pids(pauseCgroup(id))
	if err != nil {
		return err
	}
	if len(own) == 0 || slices.ContainsFunc(all, func(pid int) bool { return pid == 0 || !slices.Contains(own, pid) }) {
		return fmt.Errorf("processes are left: %w", runtime.ErrExists)
	}
	return nil
}

// startPause starts the process anew and pins its pid namespace. What a crash left of one is ended.
func (r *sandboxes) startPause(ctx context.Context, s runtime.Sandbox) (err error) {
	if err := r.endPause(ctx, s.ID); err != nil {
		return err
	}
	ctx, done := r.begin(ctx, actTime)
	defer done()
	defer r.translated(ctx, &err, "start its process")
	root, err := r.pauseRoot()
	if err != nil {
		return err
	}
	c, err := r.client.NewContainer(ctx, containerID(pauseID(s.ID)),
		containerd.WithContainerLabels(map[string]string{labelPause: memberDir(s.ID)}),
		containerd.WithRuntime(runcRuntime, r.runtimeOptions()),
		containerd.WithNewSpec(r.pauseSpec(s, root)))
	if err != nil {
		return err
	}
	task, err := r.lives.createTask(ctx, c, cio.NullIO)
	if err != nil {
		return err
	}
	if err := pinPID(filepath.Join(r.sandboxDir(s.ID), pidPin), int(task.Pid())); err != nil {
		return err
	}
	if err := task.Start(ctx); err != nil {
		return err
	}
	there, err := r.pausing(s.ID) // in its cgroup: else nothing could prove its end
	if err == nil && !there {
		err = errors.New("it ended at once, or is not in its cgroup")
	}
	return err
}

// pinPID pins the pid namespace of a process.
func pinPID(path string, pid int) error {
	for isPin(path) { // of one before
		if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unpin %s: %w", path, err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o400)
	if err != nil {
		return err
	}
	f.Close()
	if err := unix.Mount(filepath.Join(procDir(pid), "ns/pid"), path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("pin %s: %w", path, err)
	}
	return nil
}

// endPause kills the process with all that is in its cgroup, and removes its container.
func (r *sandboxes) endPause(ctx context.Context, id spec.Identity) (err error) {
	ctx, done := r.begin(ctx, actTime)
	defer done()
	defer r.translated(ctx, &err, "end its process")
	c, err := r.client.LoadContainer(ctx, containerID(pauseID(id)))
	if errdefs.IsNotFound(err) {
		err = withKillTime(ctx, func(ctx context.Context) error { return r.cgroups.Kill(ctx, pauseCgroup(id)) })
		return errors.Join(err, r.cgroups.Remove(pauseCgroup(id)))
	}
	if err != nil {
		return err
	}
	if err := r.lives.endTask(ctx, c, pauseCgroup(id)); err != nil {
		return err
	}
	return unlessGone(c.Delete(ctx))
}

// pauseRoot is the file system of all such processes: the places where others are mounted.
func (r *daemon) pauseRoot() (string, error) {
	root := filepath.Join(r.cfg.RunDir, "pause")
	for _, dir := range []string{"proc", "dev"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return "", err
		}
	}
	f, err := os.OpenFile(filepath.Join(root, "stead-node"), os.O_CREATE|os.O_RDONLY, 0o755)
	if err != nil {
		return "", err
	}
	return root, f.Close()
}

// pauseSpec: an unprivileged user without capabilities, in the namespaces of the sandbox, with the
// program as a mount that is read only: no container that may look into it reaches the host's files.
func (r *daemon) pauseSpec(sandbox runtime.Sandbox, root string) oci.SpecOpts {
	return func(ctx context.Context, _ oci.Client, _ *containers.Container, s *oci.Spec) error {
		r.setVersion(s)
		s.Root = &specs.Root{Path: root, Readonly: true}
		s.Process.Args, s.Process.Cwd, s.Process.Env = []string{"/stead-node", "pause"}, "/", []string{"GOMAXPROCS=1"}
		s.Process.User = specs.User{UID: pauseUser, GID: pauseUser}
		s.Process.Capabilities = &specs.LinuxCapabilities{}
		s.Process.NoNewPrivileges, s.Process.Rlimits = true, nil
		score, processes := max(pauseOOMScore, leastOOMScore()), pauseProcesses
		s.Process.OOMScoreAdj = &score
		s.Mounts = slices.DeleteFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination != "/proc" && m.Destination != "/dev" })
		s.Mounts = append(s.Mounts, specs.Mount{Destination: "/stead-node", Type: "bind", Source: r.cfg.Logger,
			Options: []string{"bind", "rprivate", "ro", "nosuid", "nodev"}})
		s.Linux.CgroupsPath = r.cgroupPath(pauseID(sandbox.ID))
		s.Linux.Resources.Pids = &specs.LinuxPids{Limit: &processes}
		s.Linux.Namespaces = []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}}
		for kind, name := range map[specs.LinuxNamespaceType]string{specs.NetworkNamespace: "net", specs.IPCNamespace: "ipc", specs.UTSNamespace: "uts"} {
			s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: kind, Path: filepath.Join(r.sandboxDir(sandbox.ID), name)})
		}
		if kernelseccomp.IsEnabled() {
			s.Linux.Seccomp = seccomp.DefaultProfile(s)
		}
		return nil
	}
}
