package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/stead-project/stead/agent/runtime"
)

// Resize changes the cgroup of a running container, and then what is kept of it: whoever dies between finds the container with its
// bounds of before, and repeats the change.
func (r *lifecycle) Resize(ctx context.Context, id runtime.ContainerID, to runtime.Resources) (err error) {
	ctx, done := r.begin(ctx, actTime)
	defer done()
	defer r.translated(ctx, &err, fmt.Sprintf("resize %s/%s", id.ID, id.Name))
	c, seen, err := r.find(ctx, id)
	if err != nil {
		return err
	}
	if seen.State != runtime.Running {
		return runtime.ErrNotRunning
	}
	held, err := r.cgroups.Held(memberDir(id.ID) + "/" + id.Name)
	if err == nil {
		err = holds(to, held)
	}
	if err != nil {
		return err
	}
	if err := r.resizeTask(ctx, c, to); err != nil {
		return err
	}
	return r.keepSize(ctx, c, to)
}

// holds refuses a limit below the memory that is held: the kernel would kill for it.
func holds(to runtime.Resources, held int64) error {
	if to.MemoryBytes > 0 && held > to.MemoryBytes {
		return fmt.Errorf("it uses %d MiB of memory that cannot be taken back, and is to have %d MiB: %w", held>>20, to.MemoryBytes>>20, runtime.ErrRefused)
	}
	return nil
}

// resizeTask changes the cgroup by the OCI runtime, which sets all of it back if the kernel refuses a part.
func (r *lifecycle) resizeTask(ctx context.Context, c containerd.Container, to runtime.Resources) error {
	task, err := c.Task(ctx, nil)
	if err == nil {
		err = refusal(ctx, task.Update(ctx, containerd.WithResources(r.change(to))))
	}
	if errdefs.IsNotFound(err) {
		return runtime.ErrNotRunning
	}
	return err
}

// refusal says of an error of the OCI runtime that it is final, unless it may heal.
func refusal(ctx context.Context, err error) error {
	if err == nil || contractError(err) != nil || over(ctx) != nil || noForks(err) {
		return err
	}
	return fmt.Errorf("%w: %w", runtime.ErrRefused, err)
}

// noForks: the host could not even ask, for it has no memory or processes left now.
func noForks(err error) bool {
	return strings.Contains(err.Error(), "resource temporarily unavailable") || strings.Contains(err.Error(), "cannot allocate memory")
}

// keepSize keeps what a container has with its record, at once in its spec and its labels.
func (r *lifecycle) keepSize(ctx context.Context, c containerd.Container, to runtime.Resources) error {
	s, err := c.Spec(ctx)
	if err != nil {
		return err
	}
	if s.Linux == nil || s.Linux.Resources == nil {
		return errors.New("its record has no resources")
	}
	s.Linux.Resources.CPU, s.Linux.Resources.Memory = r.bounds(to)
	return c.Update(ctx, containerd.UpdateContainerOpts(containerd.WithSpec(s)), func(_ context.Context, _ *containerd.Client, rec *containers.Container) error {
		rec.Labels[labelSize] = sizeLabel(to)
		return nil
	})
}

// bounds are what it may use, in the words of an OCI spec, of a container that is created.
func (r *lifecycle) bounds(to runtime.Resources) (cpu *specs.LinuxCPU, memory *specs.LinuxMemory) {
	cpu = &specs.LinuxCPU{}
	if to.CPUMillis > 0 {
		quota, period := max(to.CPUMillis*cpuPeriod/1000, 1000), uint64(cpuPeriod)
		cpu.Quota, cpu.Period = &quota, &period
	}
	if to.CPURequestMillis > 0 {
		shares := uint64(min(max(to.CPURequestMillis*1024/1000, 2), 262144))
		cpu.Shares = &shares
	}
	if limit := to.MemoryBytes; limit > 0 {
		memory = &specs.LinuxMemory{Limit: &limit}
		if r.cgroups.SwapCounted() {
			memory.Swap = &limit // memory and swap together: no swap
		}
	}
	return cpu, memory
}

// The kernel's shares and weight of a cgroup of which nobody asked for any.
const (
	defaultShares = 1024
	defaultWeight = "100"
)

// change is bounds for a container that runs, where what is not said stays as it is: each is said, also that there is none.
func (r *lifecycle) change(to runtime.Resources) *specs.LinuxResources {
	res := &specs.LinuxResources{}
	res.CPU, res.Memory = r.bounds(to)
	none, period, shares := int64(-1), uint64(cpuPeriod), uint64(defaultShares)
	if res.CPU.Quota == nil {
		res.CPU.Quota, res.CPU.Period = &none, &period
	}
	if res.CPU.Shares == nil {
		res.CPU.Shares = &shares
		if r.cgroups.Unified() { // OCI runtimes make different weights of these shares
			res.Unified = map[string]string{"cpu.weight": defaultWeight}
		}
	}
	if res.Memory == nil {
		res.Memory = &specs.LinuxMemory{Limit: &none}
		if r.cgroups.SwapCounted() {
			res.Memory.Swap = &none
		}
	}
	if most := r.cfg.MaxProcesses; most > 0 { // without it runc forgets that there is one
		res.Pids = &specs.LinuxPids{Limit: &most}
	}
	return res
}

func sizeLabel(r runtime.Resources) string {
	return fmt.Sprintf("%d/%d/%d", r.CPUMillis, r.CPURequestMillis, r.MemoryBytes)
}

// resourcesOf is what a container has, by its labels; nil: that is not known.
func resourcesOf(labels map[string]string) *runtime.Resources {
	var r runtime.Resources
	if n, err := fmt.Sscanf(labels[labelSize], "%d/%d/%d", &r.CPUMillis, &r.CPURequestMillis, &r.MemoryBytes); n != 3 || err != nil {
		return nil
	}
	return &r
}
