package containerdrt

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	mobysignal "github.com/moby/sys/signal"

	"github.com/stead-project/stead/agent/runtime"
)

// drainTime is how long output is waited for after the command has ended: what it
// left in the background may hold its stdout open for ever.
const drainTime = 2 * time.Second

// Exec runs a command as the container's user, in its directory and environment.
// It has no bound but ctx; when that ends first, the command is killed.
func (r *Runtime) Exec(ctx context.Context, id runtime.ContainerID, e runtime.Exec) (int, error) {
	ctx, done := r.begin(ctx, forever)
	defer done()
	what := fmt.Sprintf("exec in %s/%s", id.ID, id.Name)
	if len(e.Command) == 0 {
		return 0, fmt.Errorf("%s: no command: %w", what, runtime.ErrBadSpec)
	}
	p, err := r.newExec(ctx, id, e)
	if errdefs.IsNotFound(err) {
		return 0, fmt.Errorf("%s: %w", what, runtime.ErrNotRunning)
	}
	if err != nil {
		return 0, r.kind(ctx, what, err)
	}
	defer r.endExec(ctx, p)
	exited, err := p.Wait(ctx)
	if err == nil {
		err = p.Start(ctx)
	}
	if err != nil {
		return 0, r.kind(ctx, what, badSpec(err))
	}
	select {
	case <-ctx.Done():
		return 0, r.kind(ctx, what, ctx.Err())
	case st := <-exited:
		if err := st.Error(); err != nil {
			return 0, r.kind(ctx, what, err)
		}
		drain(p.IO())
		return int(st.ExitCode()), nil
	}
}

func (r *Runtime) newExec(ctx context.Context, id runtime.ContainerID, e runtime.Exec) (containerd.Process, error) {
	c, seen, err := r.look(ctx, id)
	if err != nil {
		return nil, err
	}
	if seen.State != runtime.Running {
		return nil, runtime.ErrNotRunning
	}
	task, err := c.Task(ctx, nil)
	if err != nil {
		return nil, err
	}
	s, err := c.Spec(ctx)
	if err != nil {
		return nil, err
	}
	process := *s.Process
	process.Args, process.Terminal = e.Command, false
	// Unique over restarts of the agent, too: an old exec may be left.
	name := "e" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.FormatInt(r.execs.Add(1), 36)
	return task.Exec(ctx, name, &process, cio.NewCreator(
		cio.WithStreams(nil, writer(e.Stdout), writer(e.Stderr)),
		cio.WithFIFODir(filepath.Join(r.cfg.RunDir, "fifo"))))
}

// drain waits for the rest of the output, then closes the pipes.
func drain(out cio.IO) {
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		out.Wait()
	}()
	select {
	case <-rest:
	case <-time.After(drainTime):
		out.Close()
		<-rest
	}
}

// endExec kills and forgets the command, also when the caller's context has ended.
func (r *Runtime) endExec(ctx context.Context, p containerd.Process) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	// Closing first keeps Delete from waiting for output that may never end.
	p.IO().Cancel()
	p.IO().Close()
	// What stays behind goes with the container.
	_, _ = p.Delete(ctx, containerd.WithProcessKill)
}

func writer(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

func signal(n int) syscall.Signal { return syscall.Signal(n) }

func killOpts(all bool) []containerd.KillOpts {
	if all {
		return []containerd.KillOpts{containerd.WithKillAll}
	}
	return nil
}

// stopSignal is the image's, SIGTERM where it names none that we know.
func stopSignal(labels map[string]string) int {
	sig, err := mobysignal.ParseSignal(labels[containerd.StopSignalLabel])
	if err != nil {
		return int(syscall.SIGTERM)
	}
	return int(sig)
}
