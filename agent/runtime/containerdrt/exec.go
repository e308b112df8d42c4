package containerdrt

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	mobysignal "github.com/moby/sys/signal"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/turns"
	"github.com/stead-project/stead/spec"
)

// answerTime is how long the daemon may take to say whether a command still runs.
const answerTime = 2 * time.Second

// commands runs commands in containers.
type commands struct {
	*daemon
	lifecycle *lifecycle
	count     atomic.Int64
	turns     turns.Of[runtime.ContainerID] // one bounded command of a container at a time
	alone     turns.Of[spec.Identity]       // one that is Alone
	late      sync.WaitGroup                // commands that outlive their Exec, until they are ended
	entered   *openContainers
}

// Exec runs a command as the container's user, in its directory and environment.
// It has no bound but ctx; when that ends first, the command is killed.
func (r *commands) Exec(ctx context.Context, id runtime.ContainerID, e runtime.Exec) (int, error) {
	switch {
	case e.Bounded:
		return r.execBounded(ctx, id, e)
	case e.Alone:
		return r.execAlone(ctx, id, e)
	}
	return r.execTask(ctx, id, e, keeper{late: &r.late, started: func(int) {}, over: func(int) {}})
}

// keeper is who sees to it that nothing of a command is left.
type keeper struct {
	// late waits for a start that outlasts the caller, and for its end.
	late *sync.WaitGroup
	// variable is one more of the command's environment; "": none.
	variable string
	// started is called when the command runs, over when it or the caller's time has ended.
	started, over func(pid int)
}

// execTask has the daemon run the command. A start that outlasts ctx is left to the
// keeper's late, and what came of it is killed there.
func (r *commands) execTask(ctx context.Context, id runtime.ContainerID, e runtime.Exec, k keeper) (int, error) {
	ctx, done := r.begin(ctx, forever)
	defer done()
	what := fmt.Sprintf("exec in %s/%s", id.ID, id.Name)
	if len(e.Command) == 0 {
		return 0, fmt.Errorf("%s: no command: %w", what, runtime.ErrBadSpec)
	}
	q := request{Exec: e, id: id, variable: k.variable, stdin: newInput(e.Stdin), out: &output{}}
	// Without ctx's deadline, for the daemon would tell that as an error, a moment before it is.
	waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	x := make(chan launched)
	k.late.Go(func() {
		b := r.launchExec(ctx, waiting, q)
		if b.err == nil {
			k.started(int(b.p.Pid()))
		}
		select {
		case x <- b:
		case <-ctx.Done():
			if b.err == nil {
				k.over(int(b.p.Pid()))
			}
			r.endExec(ctx, b.p)
		}
	})
	var b launched
	select {
	case b = <-x:
	case <-ctx.Done():
		return 0, r.startError(ctx, what, ctx.Err())
	}
	defer r.endExec(ctx, b.p)
	if errdefs.IsNotFound(b.err) && b.p == nil {
		return 0, fmt.Errorf("%s: %w", what, runtime.ErrNotRunning)
	}
	if b.err != nil {
		return 0, r.startError(ctx, what, badSpec(b.err))
	}
	st, err := serveExec(ctx, b.p, b.exited, q.stdin, e.Terminal)
	if err != nil && ctx.Err() != nil {
		err = r.timeoutError(ctx, what, b.p)
	} else {
		err = r.translate(ctx, what, err)
	}
	k.over(int(b.p.Pid())) // first: what holds its output open would be waited for
	if err != nil {
		return 0, err
	}
	q.out.drain(b.p.IO())
	return int(st.ExitCode()), nil
}

// request is a command that the daemon is to run, and its streams.
type request struct {
	runtime.Exec
	id       runtime.ContainerID
	variable string // as in keeper
	stdin    *input
	out      *output
}

// launched is a command that was started, or was not: then p may be there, not running.
type launched struct {
	p      containerd.Process
	exited <-chan containerd.ExitStatus
	err    error
}

// launchExec starts the command, however long the daemon takes: broken off, it would start
// when nothing waits for it any more.
func (r *commands) launchExec(ctx, waiting context.Context, q request) (b launched) {
	ctx = context.WithoutCancel(ctx)
	b.p, b.err = r.newExec(ctx, q)
	if b.err != nil {
		return b
	}
	b.exited, b.err = b.p.Wait(waiting)
	if b.err == nil {
		b.err = b.p.Start(ctx)
	}
	return b
}

// serveExec passes on the end of stdin and the sizes of the terminal until the command
// or ctx ends.
func serveExec(ctx context.Context, p containerd.Process, exited <-chan containerd.ExitStatus, stdin *input, term *runtime.Terminal) (st containerd.ExitStatus, err error) {
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

// startError is the error of a command that did not begin. Unless it says something
// about the container it is ErrUnavailable, also when the caller's time is over: it
// was the daemon that took it.
func (r *commands) startError(ctx context.Context, what string, err error) error {
	err = r.translate(ctx, what, err)
	if isContractError(err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, runtime.ErrUnavailable)
}

// timeoutError is the error of a command that started and was not seen to end in the
// caller's time. Only one that is seen to run still has used it up by itself.
func (r *commands) timeoutError(ctx context.Context, what string, p containerd.Process) error {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	if st, err := p.Status(look); err != nil || st.Status != containerd.Running {
		return fmt.Errorf("%s: no answer in time: %w: %w", what, runtime.ErrUnavailable, ctx.Err())
	}
	return fmt.Errorf("%s: %w", what, ctx.Err())
}

// runningTask is the task of a container that runs, and what the container was made of.
// Errors: ErrNotRunning, and the daemon's.
func (r *commands) runningTask(ctx context.Context, id runtime.ContainerID) (containerd.Task, *specs.Spec, error) {
	c, seen, err := r.lifecycle.find(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if seen.State != runtime.Running {
		return nil, nil, runtime.ErrNotRunning
	}
	task, err := c.Task(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.Spec(ctx)
	return task, s, err
}

func (r *commands) newExec(ctx context.Context, q request) (containerd.Process, error) {
	task, s, err := r.runningTask(ctx, q.id)
	if err != nil {
		return nil, err
	}
	process := *s.Process
	process.Args, process.Terminal = q.Command, false
	process.Env = append(slices.Clone(process.Env), q.Env...)
	if q.variable != "" {
		process.Env = append(slices.Clone(process.Env), q.variable)
	}
	// Not opened where there is none: the command gets /dev/null.
	var in io.Reader
	if q.Stdin != nil {
		in = q.stdin
	}
	streams := []cio.Opt{cio.WithFIFODir(filepath.Join(r.cfg.RunDir, "fifo")), cio.WithStreams(in, q.out.to(q.Stdout), q.out.to(q.Stderr))}
	if t := q.Terminal; t != nil {
		process.Terminal = true
		process.ConsoleSize = &specs.Box{Width: uint(t.Size.Columns), Height: uint(t.Size.Rows)}
		process.Env = withTerm(process.Env)
		streams = append(streams, cio.WithStreams(in, q.out.to(q.Stdout), nil), cio.WithTerminal)
	}
	// Unique over restarts of the agent, too: an old exec may be left.
	name := "e" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.FormatInt(r.count.Add(1), 36)
	return task.Exec(ctx, name, &process, cio.NewCreator(streams...))
}

// withTerm names the terminal's kind where the container does not.
func withTerm(env []string) []string {
	if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "TERM=") }) {
		return env
	}
	return append(slices.Clone(env), "TERM=xterm")
}

// endExec kills and forgets the command, also when the caller's context has ended. nil:
// there is none.
func (r *commands) endExec(ctx context.Context, p containerd.Process) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	// Closing first keeps Delete from waiting for output that may never end.
	p.IO().Cancel()
	p.IO().Close()
	// What stays behind goes with the container.
	_, _ = p.Delete(ctx, containerd.WithProcessKill)
}

// stopSignal is the image's, SIGTERM where it names none that we know.
func stopSignal(labels map[string]string) int {
	sig, err := mobysignal.ParseSignal(labels[containerd.StopSignalLabel])
	if err != nil {
		return int(syscall.SIGTERM)
	}
	return int(sig)
}
