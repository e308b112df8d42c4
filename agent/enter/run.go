// Package enter runs a command in a running container without its runtime: a helper
// (`stead-node enter`) joins the container's namespaces, cgroups, user, capabilities and
// seccomp filter by itself. The agent uses it for probes, where the runtime's own way
// costs ten times as much and waits for a daemon.
//
// The confinement is the runtime's (see the test that compares the two from inside),
// and the member can lay hands on the way in less than on a runtime's:
//
//   - The helper is run from a sealed copy in memory: the file that it is cannot be
//     written to, whoever finds it (/proc/*/exe).
//   - It is never in the container's pid namespace. One thread of it takes on the
//     container's namespaces, user and capabilities, and only then forks: the child has
//     no right any more that the container does not have, none of the helper's memory
//     that is written to later, and no descriptor but its standard streams and two pipes.
//   - The child waits until it has been put into the container's cgroups, then loads the
//     container's filter and executes. No code of the member's runs before that. Where the
//     container may gain privileges, the kernel takes the filter only from who has rights over
//     the host: the thread loads it before it drops them.
//   - The container's first process is held by a pidfd, so that no other is entered when
//     its number is used again.
//
// Whatever is not known well enough to be done just as the runtime does it is refused
// (ErrRefused), and the caller uses the runtime.
package enter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The kinds of errors of Run; test with errors.Is.
var (
	// ErrRefused: this way in is not open here. Nothing was run.
	ErrRefused = errors.New("the container cannot be entered directly")
	// ErrFilter, beside ErrRefused: its seccomp filter cannot be copied, now or later.
	ErrFilter = errors.New("its seccomp filter cannot be copied")
	// ErrCommand: the command cannot be run, e.g. there is no such program.
	ErrCommand = errors.New("the command cannot be run")
	// ErrLate: the context ended before the command was seen to run.
	ErrLate = errors.New("the command was not started in time")
)

// Plan is what a command is run with: the helper's whole input.
type Plan struct {
	Command []string
	Env     []string
	Dir     string

	UID, GID uint32
	Groups   []uint32
	Umask    uint32
	Caps     Caps
	// NoNewPrivileges: no file gives the command rights that it does not have. Without it, the
	// filter is loaded before the rights are dropped, as the runtime does.
	NoNewPrivileges bool
	Limits          []Limit
	// Filter is the seccomp program as the kernel has it; empty: none.
	Filter []byte
	// Keyring is the name of the container's session keyring.
	Keyring string
	Like    Likeness

	// Procs are the cgroup.procs files that the command is written to, Cgroup the one
	// cgroup that is its own, below CgroupRoot: it is killed through that.
	Procs              []string
	CgroupRoot, Cgroup string

	there bool // the thread is in Dir
}

// Caps are sets of capabilities, a bit each.
type Caps struct{ Bounding, Effective, Permitted, Inheritable, Ambient uint64 }

// Limit is one resource limit; Kind is a RLIMIT_ number.
type Limit struct {
	Kind int
	Soft uint64
	Hard uint64
}

// Likeness is what a command takes over from the container's first process.
type Likeness struct {
	OOMScore int
	Nice     int
	CPUs     unix.CPUSet
}

// message is what the helper reports, in this order: it was started or not, its exit.
type message struct {
	Kind string
	Text string // why not
	Code int    // of exited, as a shell reports it
}

const (
	started     = "started"
	refused     = "refused"
	commandWord = "command"
	exited      = "exited"
)

// pipeTime is how long an output that stays open is waited for once all that the command
// left has been killed: a descriptor can be handed to another process of the container.
const pipeTime = time.Second

// Helper is the program that enters.
type Helper struct{ program *os.File }

// NewHelper copies stead-node into memory and seals the copy.
func NewHelper(path string) (*Helper, error) {
	source, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	fd, err := unix.MemfdCreate("stead-node", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 every one may be executed
		fd, err = unix.MemfdCreate("stead-node", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("copy %s into memory: %w", path, err)
	}
	program := os.NewFile(uintptr(fd), path)
	if _, err := io.Copy(program, source); err != nil {
		program.Close()
		return nil, fmt.Errorf("copy %s into memory: %w", path, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		program.Close()
		return nil, fmt.Errorf("seal the copy of %s: %w", path, err)
	}
	return &Helper{program}, nil
}

// path leads to the copy in each process that we start, too, until it executes.
func (h *Helper) path() string {
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(h.program.Fd())))
}

// Close forgets the copy; helpers that run continue.
func (h *Helper) Close() { h.program.Close() }

// Command is one command for a container.
type Command struct {
	Args           []string
	Stdout, Stderr io.Writer
	// Procs, CgroupRoot and Cgroup are as in Plan.
	Procs              []string
	CgroupRoot, Cgroup string
	// Sweep kills what is in Cgroup and returns when that is empty. It is called when
	// the command has ended or the context has, and no more can be started.
	Sweep func() error
}

// Run runs a command and returns its exit code. When ctx ends first, the error is that of
// ctx, and ErrLate beside it if the command was not seen to run by then. At the end all
// that the command started has been swept; an error of Sweep is returned beside others.
func (h *Helper) Run(ctx context.Context, c *Container, cmd Command) (int, error) {
	p := c.plan
	p.Command, p.Procs, p.CgroupRoot, p.Cgroup = cmd.Args, cmd.Procs, cmd.CgroupRoot, cmd.Cgroup
	ours, theirs, err := socketpair()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", err, ErrRefused)
	}
	defer ours.Close()
	helper := exec.Cmd{
		Path: h.path(),
		Args: []string{"stead-node", "enter"},
		// One thread at a time is enough, and what it needs is never collected.
		Env:    []string{"GOMAXPROCS=1", "GOGC=off"},
		Stdout: cmd.Stdout, Stderr: cmd.Stderr,
		ExtraFiles: []*os.File{theirs, c.init},
		WaitDelay:  pipeTime,
	}
	err = helper.Start()
	theirs.Close()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", err, ErrRefused)
	}
	stop := context.AfterFunc(ctx, func() { _ = ours.SetDeadline(time.Unix(1, 0)) }) // ends what is read and written
	defer stop()
	code, err := follow(ctx, ours, p)
	// After the helper is killed nothing can start: a child that still waits for permission
	// ends, and one that has it is in Cgroup already.
	_ = helper.Process.Kill() // it may have ended
	err = errors.Join(err, cmd.Sweep())
	_ = helper.Wait() // for the output; how it ended is known
	return code, err
}

// follow sends the helper its plan and returns what it reports.
func follow(ctx context.Context, conn *os.File, p Plan) (int, error) {
	runs := false
	lost := func(err error) error {
		switch {
		case ctx.Err() != nil && runs:
			return ctx.Err()
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ErrLate, ctx.Err())
		case runs:
			return fmt.Errorf("the helper was lost: %w", err)
		}
		return fmt.Errorf("the helper was lost: %w: %w", err, ErrRefused)
	}
	if err := send(conn, p.wire); err != nil {
		return 0, lost(err)
	}
	for {
		var m message
		if err := receive(conn, m.wire); err != nil {
			return 0, lost(err)
		}
		switch m.Kind {
		case started:
			runs = true
		case exited:
			return m.Code, nil
		case commandWord:
			return 0, fmt.Errorf("%w: %s", ErrCommand, m.Text)
		default:
			return 0, fmt.Errorf("%w: %s", ErrRefused, m.Text)
		}
	}
}

// socketpair returns two ends; ours can be given a deadline.
func socketpair() (ours, theirs *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		unix.Close(ends[0])
		unix.Close(ends[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(ends[0]), "ours"), os.NewFile(uintptr(ends[1]), "theirs"), nil
}
