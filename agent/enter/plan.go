package enter

import (
	"errors"

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
	Limits   []Limit
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
	started = "started"
	refused = "refused"
	command = "command"
	exited  = "exited"
)
