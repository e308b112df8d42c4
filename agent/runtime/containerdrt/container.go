package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"

	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/watchdog"
)

const runcRuntime = "io.containerd.runc.v2"

// lifecycle makes, starts, looks at and ends containers.
type lifecycle struct {
	*daemon
	images  *imageStore
	entered *openContainers
}

// Create makes the root filesystem and the container's record.
func (r *lifecycle) Create(ctx context.Context, c runtime.Container) (err error) {
	ctx, done := r.begin(ctx, actTime)
	defer done()
	defer r.translated(ctx, &err, fmt.Sprintf("create %s/%s", c.ID.ID, c.ID.Name))
	id := containerID(c.ID)
	_, err = r.client.ContainerService().Get(ctx, id)
	if err == nil {
		return runtime.ErrExists
	}
	if !errdefs.IsNotFound(err) {
		return err
	}
	sandbox, err := readSandbox(r.sandboxDir(c.ID.ID))
	whole := false
	if err == nil {
		whole, err = r.whole(sandbox)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && (sandbox.Token != c.Token || !whole) {
		return fmt.Errorf("sandbox of token %s: %w", c.Token, runtime.ErrNotFound)
	}
	if err != nil {
		return err
	}
	labels, err := r.labels(c)
	if err != nil {
		return err
	}
	img, err := r.images.findImage(ctx, c.Image)
	if err != nil {
		return err
	}
	config, err := img.Spec(ctx)
	if err != nil {
		return err
	}
	sn, err := r.snapshotterName(ctx)
	if err != nil {
		return err
	}
	// There is no container, so a snapshot of that name is left of a crash.
	if err := unlessGone(r.client.SnapshotService(sn).Remove(ctx, id)); err != nil {
		return err
	}
	_, err = r.client.NewContainer(ctx, id,
		containerd.WithSnapshotter(sn), containerd.WithImage(img), containerd.WithNewSnapshot(id, img),
		containerd.WithContainerLabels(labels), containerd.WithImageStopSignal(img, "SIGTERM"),
		containerd.WithRuntime(runcRuntime, r.runtimeOptions()),
		containerd.WithNewSpec(r.build(c, config.Config, sandbox.SharedPIDs)))
	if err != nil {
		r.dropSnapshot(ctx, sn, id)
	}
	return err
}

// labels is everything that a restarted agent must know of a container.
func (r *lifecycle) labels(c runtime.Container) (map[string]string, error) {
	labels := ourLabels(c)
	if c.Log.Dir != "" {
		log := logs.Config{
			Dir: c.Log.Dir, Run: logs.RunName(c.Token.Epoch, c.Token.Number, c.Attempt),
			FileBytes: c.Log.FileBytes, Files: c.Log.Files, Guard: c.Log.Guard,
		}
		if _, err := logs.ParseConfig(log.Encode()); err != nil {
			return nil, err // a logger that refuses it would kill the container
		}
		labels[labelLog] = log.Encode()
	}
	for k := range c.Labels {
		if strings.HasPrefix(k, labelPrefix) {
			return nil, fmt.Errorf("label %q is reserved for Stead", k)
		}
	}
	maps.Copy(labels, c.Labels)
	return labels, nil
}

// dropSnapshot cleans up after a failure that is reported already; Create does it
// again if need be.
func (r *lifecycle) dropSnapshot(ctx context.Context, sn, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	_ = r.client.SnapshotService(sn).Remove(ctx, id)
}

// Start refuses while a process of an earlier run is in the container's cgroup, and
// ends what does not show up there.
func (r *lifecycle) Start(ctx context.Context, id runtime.ContainerID) (err error) {
	ctx, done := r.begin(ctx, actTime)
	defer done()
	defer r.translated(ctx, &err, fmt.Sprintf("start %s/%s", id.ID, id.Name))
	c, seen, err := r.find(ctx, id)
	switch {
	case err != nil:
		return err
	case seen.State == runtime.Running:
		return nil
	case seen.State != runtime.Created:
		return fmt.Errorf("it has run already: %w", runtime.ErrExists)
	}
	task, err := c.Task(ctx, nil)
	if errdefs.IsNotFound(err) {
		task, err = r.newTask(ctx, c, id)
	}
	if err == nil {
		err = r.startTask(ctx, c, task, id)
	}
	return badSpec(err)
}

// newTask makes the process, not running the program yet.
func (r *lifecycle) newTask(ctx context.Context, c containerd.Container, id runtime.ContainerID) (containerd.Task, error) {
	empty, err := r.cgroups.Empty(memberDir(id.ID) + "/" + id.Name)
	if err != nil {
		return nil, err
	}
	if !empty {
		return nil, fmt.Errorf("processes are left: %w", runtime.ErrExists)
	}
	// First the mark: whoever finds it without a task knows that it may have run.
	labels, err := c.SetLabels(ctx, map[string]string{labelStarted: time.Now().UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return nil, err
	}
	out := cio.NullIO
	if log := labels[labelLog]; log != "" {
		// One pair only: the shim shuffles several.
		out = cio.BinaryIO(r.cfg.Logger, map[string]string{"logger": log})
	}
	task, err := r.createTask(ctx, c, out)
	if err != nil && contractError(err) != runtime.ErrUnavailable && ctx.Err() == nil {
		err = errors.Join(err, r.unmark(ctx, c))
	}
	return task, err
}

// startTask lets the program run, once its process was seen where it will be
// looked for.
func (r *lifecycle) startTask(ctx context.Context, c containerd.Container, task containerd.Task, id runtime.ContainerID) error {
	empty, err := r.cgroups.Empty(memberDir(id.ID) + "/" + id.Name)
	if err == nil && empty {
		err = fmt.Errorf("its process is not in cgroup %s: nothing could prove its end", r.cgroupPath(id))
	}
	if err == nil {
		err = guarded(ctx, c, id)
	}
	if err == nil {
		err = task.Start(ctx)
	}
	if err == nil || contractError(err) == runtime.ErrUnavailable || ctx.Err() != nil {
		return err
	}
	if _, left := task.Delete(ctx, containerd.WithProcessKill); unlessGone(left) != nil {
		return errors.Join(err, left) // still marked as started
	}
	return errors.Join(err, r.unmark(ctx, c))
}

// guarded refuses a guarded life whose logger does not guard it: to the shim one that
// refused is like one that is ready.
func guarded(ctx context.Context, c containerd.Container, id runtime.ContainerID) error {
	labels, err := c.Labels(ctx)
	if err != nil || labels[labelLog] == "" {
		return err
	}
	log, err := logs.ParseConfig(labels[labelLog])
	if err != nil || log.Guard == "" || watchdog.Holds(log.Guard, id.Name, log.Run) {
		return err
	}
	return errors.New("its logger does not guard the life: its deadline has passed, or its record is gone")
}

// unmark takes the started mark back after a proven failure. SetLabels cannot
// remove a label, so it is emptied.
func (r *lifecycle) unmark(ctx context.Context, c containerd.Container) error {
	_, err := c.SetLabels(ctx, map[string]string{labelStarted: ""})
	return err
}

// badSpec finds the errors of runc and crun about the program that no second try can heal.
// Other errors of theirs (a mount that fails) may heal.
func badSpec(err error) error {
	if err == nil || isContractError(err) {
		return err
	}
	text := strings.ToLower(err.Error())
	has := func(part string) bool { return strings.Contains(text, part) }
	if !has("oci runtime") || !slices.ContainsFunc([]string{
		"exec: ", "exec /", "chdir", "executable file `", "open executable", // the last two are crun's
	}, has) {
		return err
	}
	if slices.ContainsFunc([]string{
		"executable file not found", "no such file or directory", "permission denied",
		"exec format error", "not a directory", "is a directory",
		"open executable: operation not permitted", // crun's, of a directory
	}, has) {
		return fmt.Errorf("%w: %w", runtime.ErrBadSpec, err)
	}
	return err
}

// Signal signals the main process, or all of the container's.
func (r *lifecycle) Signal(ctx context.Context, id runtime.ContainerID, sig int, all bool) (err error) {
	ctx, done := r.begin(ctx, lookTime)
	defer done()
	defer r.translated(ctx, &err, fmt.Sprintf("signal %s/%s", id.ID, id.Name))
	c, seen, err := r.find(ctx, id)
	if err != nil {
		return err
	}
	if seen.Left && all && sig == int(syscall.SIGKILL) {
		return r.cgroups.KillOnce(memberDir(id.ID) + "/" + id.Name)
	}
	if seen.State != runtime.Running {
		return runtime.ErrNotRunning
	}
	var opts []containerd.KillOpts
	if all {
		opts = append(opts, containerd.WithKillAll)
	}
	task, err := c.Task(ctx, nil)
	if err == nil {
		err = task.Kill(ctx, syscall.Signal(sig), opts...)
	}
	if errdefs.IsNotFound(err) {
		return runtime.ErrNotRunning
	}
	return err
}

// Remove kills what is left, sees for itself that nothing is, and deletes the
// container with its root filesystem.
func (r *lifecycle) Remove(ctx context.Context, id runtime.ContainerID) (err error) {
	ctx, done := r.begin(ctx, actTime)
	defer done()
	defer r.translated(ctx, &err, fmt.Sprintf("remove %s/%s", id.ID, id.Name))
	defer r.entered.forget(id)
	c, err := r.client.LoadContainer(ctx, containerID(id))
	if err != nil {
		return unlessGone(err)
	}
	if err := r.endTask(ctx, c, memberDir(id.ID)+"/"+id.Name); err != nil {
		return err
	}
	return unlessGone(c.Delete(ctx, containerd.WithSnapshotCleanup))
}

// endTask kills through the cgroup first, which needs no shim to answer, and then
// deletes the task.
func (r *lifecycle) endTask(ctx context.Context, c containerd.Container, cgroup string) error {
	kill, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	if err := r.cgroups.Kill(kill, cgroup); err != nil {
		return err
	}
	task, err := c.Task(ctx, nil)
	if errdefs.IsNotFound(err) {
		return errors.Join(r.reapShims(c.ID()), r.cgroups.Remove(cgroup))
	}
	if err != nil {
		return err
	}
	if _, err := task.Delete(ctx, containerd.WithProcessKill); unlessGone(err) != nil {
		return err
	}
	if empty, err := r.cgroups.Empty(cgroup); err != nil || !empty {
		return errors.Join(err, errors.New("processes are left"))
	}
	return r.cgroups.Remove(cgroup)
}
