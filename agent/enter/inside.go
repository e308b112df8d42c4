package enter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/cgroup"
)

// The helper's descriptors beside its standard streams, which are the command's.
const (
	connFD  = 3 // to the agent, for as long as that lives
	pidfdFD = 4 // of the container's first process
)

// sweepTime is how long a helper without an agent tries to end what it started.
const sweepTime = 30 * time.Second

// Serve is the helper: it runs one command and reports its end. It returns the
// process's exit code, which says nothing about the command.
func Serve(ctx context.Context) int {
	// No process of the container sees this one; this is a second barrier.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	h := &helperProcess{}
	if err := receive(file(connFD), h.plan.wire); err != nil {
		return 2
	}
	go h.endWithAgent(ctx)
	code, err := h.run()
	switch {
	case errors.Is(err, ErrCommand):
		h.report(message{Kind: commandWord, Text: strings.TrimSuffix(err.Error(), ": "+ErrCommand.Error())}) // which the agent says
	case err != nil:
		h.report(message{Kind: refused, Text: err.Error()})
	default:
		h.report(message{Kind: exited, Code: code})
	}
	return 0
}

type helperProcess struct {
	plan Plan

	mu        sync.Mutex
	agentGone bool // nothing is started any more
}

// report sends a message to the agent, if it is still there.
func (h *helperProcess) report(m message) { _ = send(file(connFD), m.wire) }

// endWithAgent ends what was started, and this process, when the agent is gone.
func (h *helperProcess) endWithAgent(ctx context.Context) {
	_, _ = file(connFD).Read(make([]byte, 1)) // its end: nothing is sent
	h.mu.Lock()
	h.agentGone = true
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	_ = cgroup.New(h.plan.CgroupRoot, "/").Kill(ctx, h.plan.Cgroup) // the next agent's probe tries again
	os.Exit(1)
}

// run starts the command and returns how it exited.
func (h *helperProcess) run() (int, error) {
	procs, err := h.prepareOnHost()
	if err != nil {
		return 0, err
	}
	var gate, fault [2]int // from us to the child, and back
	for _, p := range []*[2]int{&gate, &fault} {
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return 0, err
		}
	}
	pid, err := h.plan.spawn(gate[0], fault[1])
	unix.Close(gate[0])
	unix.Close(fault[1])
	if err != nil {
		return 0, err
	}
	err = h.release(pid, procs, gate[1])
	unix.Close(gate[1]) // without leave it ends
	if err == nil {
		err = awaitExec(fault[0], h.plan.Command[0])
	}
	if err == nil {
		h.report(message{Kind: started})
	}
	var status syscall.WaitStatus
	_, waited := again(func() (int, error) { return syscall.Wait4(pid, &status, 0, nil) })
	if waited != nil {
		return 0, errors.Join(err, fmt.Errorf("wait: %w", waited))
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), err
	}
	return status.ExitStatus(), err
}

// prepareOnHost does what needs the host's files, while we still see them.
func (h *helperProcess) prepareOnHost() ([]file, error) {
	if err := adjustOOM(h.plan.Like.OOMScore); err != nil {
		return nil, err
	}
	var procs []file
	for _, path := range h.plan.Procs {
		f, err := openFile(path)
		if err != nil {
			return nil, err
		}
		procs = append(procs, f)
	}
	if len(procs) == 0 {
		return nil, errors.New("no cgroup is named")
	}
	return procs, nil
}

// adjustOOM makes this process, and so the command, as likely to be killed for memory as the
// container is. Where it may not become less likely, more likely is not weaker.
func adjustOOM(score int) error {
	const path = "/proc/self/oom_score_adj"
	f, err := openFile(path)
	if err == nil {
		_, err = f.Write([]byte(strconv.Itoa(score)))
		unix.Close(int(f))
	}
	if err == nil {
		return nil
	}
	have, err2 := os.ReadFile(path)
	if now, err3 := strconv.Atoi(strings.TrimSpace(string(have))); err2 == nil && err3 == nil && now >= score {
		return nil
	}
	return err
}

// release puts the child into the cgroups and gives it leave, unless the agent is gone.
func (h *helperProcess) release(pid int, procs []file, gate int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agentGone {
		return errors.New("the agent is gone")
	}
	for _, f := range procs {
		if _, err := f.Write([]byte(strconv.Itoa(pid))); err != nil {
			return err
		}
		unix.Close(int(f))
	}
	if _, err := file(gate).Write([]byte{1}); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// awaitExec waits until the child has executed the program, or says why not.
func awaitExec(fault int, name string) error {
	defer unix.Close(fault)
	failure := make([]byte, 2)
	n, err := file(fault).Read(failure)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read from the child: %w", err)
	case n < len(failure):
		return nil // closed by the kernel when it executed
	}
	errno := syscall.Errno(failure[1])
	if stage(failure[0]) == stageFilter {
		return fmt.Errorf("load the seccomp filter: %w", errno)
	}
	switch errno {
	case unix.ENOENT, unix.EACCES, unix.ENOEXEC, unix.ENOTDIR, unix.EISDIR, unix.ELOOP, unix.EPERM:
		return fmt.Errorf("exec: %q: %w: %w", name, errno, ErrCommand)
	}
	return fmt.Errorf("exec: %q: %w", name, errno)
}
