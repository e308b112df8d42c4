package containerdrt

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/cap"
	"github.com/containerd/containerd/v2/pkg/oci"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/cgroup"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

const (
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	cpuPeriod   = 100_000   // µs
	maxFiles    = 1_048_576 // some programs walk through all they may open
)

// build makes the OCI spec of a container: containerd's defaults, the image's
// configuration, then what the container asks for, as Kubernetes does.
// shared: it joins the pid namespace of its sandbox.
func (r *lifecycle) build(c runtime.Container, img ocispec.ImageConfig, shared bool) oci.SpecOpts {
	return func(ctx context.Context, client oci.Client, rec *containers.Container, s *oci.Spec) error {
		r.setVersion(s)
		s.Process.Args = args(c, img)
		if len(s.Process.Args) == 0 {
			return fmt.Errorf("image %s has no command; write one: %w", c.Image, runtime.ErrBadSpec)
		}
		s.Process.Env = environment(c, img)
		s.Process.Cwd = cmp.Or(c.Dir, img.WorkingDir, "/")
		s.Root.Readonly = c.ReadOnlyRoot
		s.Process.NoNewPrivileges = c.NoNewPrivileges
		mounts, err := client.SnapshotService(rec.Snapshotter).Mounts(ctx, rec.SnapshotKey)
		if err != nil {
			return fmt.Errorf("root filesystem: %w", err)
		}
		err = r.lookInto(rec.ID, mounts, func(root string) (err error) {
			s.Process.User, err = user(c, img.User, root)
			if err != nil {
				return err
			}
			return checkCommand(s, c, root)
		})
		if err != nil {
			return err
		}
		if err := r.isolate(ctx, s, c, shared); err != nil {
			return err
		}
		if err := r.mounts(s, c); err != nil {
			return err
		}
		r.limits(s, c)
		return r.confine(ctx, s, c) // after the capabilities, on which it depends
	}
}

// args: Command replaces the entrypoint and drops the image's own command.
func args(c runtime.Container, img ocispec.ImageConfig) []string {
	switch {
	case len(c.Command) > 0:
		return slices.Concat(c.Command, c.Args)
	case len(c.Args) > 0:
		return slices.Concat(img.Entrypoint, c.Args)
	}
	return slices.Concat(img.Entrypoint, img.Cmd)
}

// environment is the image's, overridden by the container's; later values win.
func environment(c runtime.Container, img ocispec.ImageConfig) []string {
	at := map[string]int{}
	var out []string
	for _, e := range slices.Concat([]string{"PATH=" + defaultPath, "HOSTNAME=" + c.Hostname}, img.Env, c.Env) {
		name, _, _ := strings.Cut(e, "=")
		if i, ok := at[name]; ok {
			out[i] = e
			continue
		}
		at[name] = len(out)
		out = append(out, e)
	}
	return out
}

// isolate sets namespaces, cgroup and capabilities.
func (r *lifecycle) isolate(ctx context.Context, s *oci.Spec, c runtime.Container, shared bool) error {
	dir := r.sandboxDir(c.ID.ID)
	s.Linux.Sysctl = c.Sysctls // set again with each container: no member can write them
	opts := []oci.SpecOpts{
		oci.WithLinuxNamespace(specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: filepath.Join(dir, "net")}),
		oci.WithLinuxNamespace(specs.LinuxNamespace{Type: specs.IPCNamespace, Path: filepath.Join(dir, "ipc")}),
		oci.WithLinuxNamespace(specs.LinuxNamespace{Type: specs.UTSNamespace, Path: filepath.Join(dir, "uts")}),
		oci.WithCgroup(r.cgroupPath(c.ID)),
	}
	if shared {
		opts = append(opts, oci.WithLinuxNamespace(specs.LinuxNamespace{Type: specs.PIDNamespace, Path: filepath.Join(dir, pidPin)}))
	}
	if c.Privileged {
		opts = append(opts, oci.WithAllCurrentCapabilities)
	}
	for _, name := range c.DropCapabilities {
		if name == "ALL" {
			opts = append(opts, oci.WithCapabilities(nil))
			continue
		}
		opts = append(opts, oci.WithDroppedCapabilities([]string{"CAP_" + name}))
	}
	for _, name := range c.AddCapabilities {
		if name == "ALL" {
			opts = append(opts, oci.WithAllCurrentCapabilities)
			continue
		}
		if !slices.Contains(cap.Known(), "CAP_"+name) { // runc would leave it out in silence
			return fmt.Errorf("no capability %q is known: %w", name, runtime.ErrBadSpec)
		}
		opts = append(opts, oci.WithAddedCapabilities([]string{"CAP_" + name}))
	}
	for _, o := range opts {
		if err := o(ctx, nil, &containers.Container{}, s); err != nil {
			return fmt.Errorf("%w: %w", runtime.ErrBadSpec, err)
		}
	}
	return nil
}

// Cgroup is where all processes of an identity are, below each hierarchy's root.
func (r *Runtime) Cgroup(id spec.Identity) string {
	return filepath.Join(r.cgroups.Parent(), memberDir(id))
}

// Bound sets what all members together may use.
func (r *Runtime) Bound(b cgroup.Bounds) error { return r.cgroups.Bound(b) }

// Put moves a process of ours that is no member's into a cgroup of its own below our
// parent, which Purge ends with all else. No member's has a name without a dot.
func (r *Runtime) Put(name string, pid int) error { return r.cgroups.Put(name, pid) }

// cgroupPath is where a container's processes are, below the hierarchy's root.
func (r *daemon) cgroupPath(id runtime.ContainerID) string {
	return filepath.Join(r.cgroups.Parent(), memberDir(id.ID), id.Name)
}

// mounts adds the container's mounts, shallow before deep, each in place of a
// default one at the same target.
func (r *lifecycle) mounts(s *oci.Spec, c runtime.Container) error {
	all := slices.DeleteFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == "/run" })
	all = append(all, specs.Mount{
		Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup",
		Options: []string{"ro", "nosuid", "noexec", "nodev", "relatime"},
	})
	for _, m := range c.Mounts {
		if !filepath.IsAbs(m.Target) {
			return fmt.Errorf("mount target %q is not absolute: %w", m.Target, runtime.ErrBadSpec)
		}
		target := filepath.Clean(m.Target)
		all = slices.DeleteFunc(all, func(d specs.Mount) bool { return d.Destination == target })
		if m.MemoryBytes > 0 {
			all = append(all, specs.Mount{Destination: target, Type: "tmpfs", Source: "tmpfs", Options: []string{
				"nosuid", "nodev", "noexec", "mode=0777", fmt.Sprintf("size=%d", m.MemoryBytes), fmt.Sprintf("nr_inodes=%d", m.MemoryFiles+1),
			}})
			continue
		}
		var source unix.Statfs_t
		if err := unix.Statfs(m.Source, &source); err != nil {
			return fmt.Errorf("mount for %s: %s: %w", m.Target, m.Source, err)
		}
		all = append(all, specs.Mount{Destination: target, Type: "bind", Source: m.Source, Options: bindOptions(m.ReadOnly, m.Host && c.Privileged, source.Flags)})
	}
	slices.SortStableFunc(all, func(a, b specs.Mount) int {
		return strings.Count(a.Destination, "/") - strings.Count(b.Destination, "/")
	})
	s.Mounts = all
	return nil
}

// bindOptions are those of a mount whose source is mounted with these flags: no device
// and no set-user-id file that a member leaves in a volume works. The kernel sets all
// options again when it gets any, so what the host forbids in a volume is repeated. Of what
// is read only, noexec is not: it is the option of /run on Debian, and members run scripts
// of ConfigMaps. What a privileged container mounts of its host (trusted) works as there.
func bindOptions(readOnly, trusted bool, source int64) []string {
	mode := "rw"
	if readOnly || source&unix.ST_RDONLY != 0 {
		mode = "ro"
	}
	options := []string{"rbind", "rprivate", mode}
	if !trusted || source&unix.ST_NOSUID != 0 {
		options = append(options, "nosuid")
	}
	if !trusted || source&unix.ST_NODEV != 0 {
		options = append(options, "nodev")
	}
	if !readOnly && source&unix.ST_NOEXEC != 0 {
		options = append(options, "noexec")
	}
	return options
}

// limits sets what the container may use.
func (r *lifecycle) limits(s *oci.Spec, c runtime.Container) {
	res := s.Linux.Resources
	res.CPU, res.Memory = r.bounds(c.Resources)
	if r.cgroups.BoundsHugePages() {
		res.HugepageLimits = pageLimits(hostPageSizes(), c.HugePages)
	}
	if most := r.cfg.MaxProcesses; most > 0 {
		res.Pids = &specs.LinuxPids{Limit: &most}
	}
	score := max(c.OOMScore, leastOOMScore())
	s.Process.OOMScoreAdj = &score
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		n := min(files.Max, maxFiles)
		s.Process.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: n, Soft: n}}
	}
}
