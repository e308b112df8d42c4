package containerdrt

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	mobysignal "github.com/moby/sys/signal"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/stead-project/stead/agent/runtime"
)

// answerTime is how long the daemon may take to say whether a command still runs.
const answerTime = 2 * time.Second

// Exec runs a command as the container's user, in its directory and environment.
// It has no bound but ctx; when that ends first, the command is killed.
func (r *Runtime) Exec(ctx context.Context, id runtime.ContainerID, e runtime.Exec) (int, error) {
	ctx, done := r.begin(ctx, forever)
	defer done()
	what := fmt.Sprintf("exec in %s/%s", id.ID, id.Name)
	if len(e.Command) == 0 {
		return 0, fmt.Errorf("%s: no command: %w", what, runtime.ErrBadSpec)
	}
	stdin, out := newInput(e.Stdin), &output{}
	p, err := r.newExec(ctx, id, e, stdin, out)
	if errdefs.IsNotFound(err) {
		return 0, fmt.Errorf("%s: %w", what, runtime.ErrNotRunning)
	}
	if err != nil {
		return 0, r.notBegun(ctx, what, err)
	}
	defer r.endExec(ctx, p)
	// Without ctx's deadline, for the daemon would tell that as an error, a moment before it is.
	waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	exited, err := p.Wait(waiting)
	if err == nil {
		err = p.Start(ctx)
	}
	if err != nil {
		return 0, r.notBegun(ctx, what, badSpec(err))
	}
	st, err := attend(ctx, p, exited, stdin, e.Terminal)
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, r.overtime(ctx, what, p)
	case err != nil:
		return 0, r.kind(ctx, what, err)
	}
	out.drain(p.IO())
	return int(st.ExitCode()), nil
}

// attend passes on the end of stdin and the sizes of the terminal until the command
// or ctx ends.
func attend(ctx context.Context, p containerd.Process, exited <-chan containerd.ExitStatus, stdin *input, term *runtime.Terminal) (st containerd.ExitStatus, err error) {
	var resize <-chan runtime.Size
	if term != nil {
		resize = term.Resize
	}
	ended := stdin.ended
	for {
		select {
		case <-ctx.Done():
			return st, ctx.Err()
		case st := <-exited:
			return st, st.Error()
		case <-ended:
			ended = nil
			// The shim holds stdin open, too. One that fails has no command any more.
			_ = p.CloseIO(ctx, containerd.WithStdinCloser)
		case size, ok := <-resize:
			if !ok {
				resize = nil
				continue
			}
			_ = p.Resize(ctx, uint32(size.Columns), uint32(size.Rows)) // as above
		}
	}
}

// notBegun is the error of a command that did not begin. Unless it says something
// about the container it is ErrUnavailable, also when the caller's time is over: it
// was the daemon that took it.
func (r *Runtime) notBegun(ctx context.Context, what string, err error) error {
	if err = r.kind(ctx, what, err); known(err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, runtime.ErrUnavailable)
}

// overtime is the error of a command that began and was not seen to end in the
// caller's time. Only one that is seen to run still has used it up by itself.
func (r *Runtime) overtime(ctx context.Context, what string, p containerd.Process) error {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	if st, err := p.Status(look); err != nil || st.Status != containerd.Running {
		return fmt.Errorf("%s: not heard of in time: %w: %w", what, runtime.ErrUnavailable, ctx.Err())
	}
	return fmt.Errorf("%s: %w", what, ctx.Err())
}

func (r *Runtime) newExec(ctx context.Context, id runtime.ContainerID, e runtime.Exec, stdin *input, out *output) (containerd.Process, error) {
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
	// Not opened where there is none: the command gets /dev/null.
	var in io.Reader
	if e.Stdin != nil {
		in = stdin
	}
	streams := []cio.Opt{cio.WithFIFODir(filepath.Join(r.cfg.RunDir, "fifo")), cio.WithStreams(in, out.to(e.Stdout), out.to(e.Stderr))}
	if t := e.Terminal; t != nil {
		process.Terminal = true
		process.ConsoleSize = &specs.Box{Width: uint(t.Size.Columns), Height: uint(t.Size.Rows)}
		process.Env = withTerm(process.Env)
		streams = append(streams, cio.WithStreams(in, out.to(e.Stdout), nil), cio.WithTerminal)
	}
	// Unique over restarts of the agent, too: an old exec may be left.
	name := "e" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.FormatInt(r.execs.Add(1), 36)
	return task.Exec(ctx, name, &process, cio.NewCreator(streams...))
}

// withTerm names the terminal's kind where the container does not.
func withTerm(env []string) []string {
	if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "TERM=") }) {
		return env
	}
	return append(slices.Clone(env), "TERM=xterm")
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
