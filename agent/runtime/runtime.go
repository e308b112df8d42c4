// Package runtime is the contract between an agent and what runs containers. Its
// bodies are containerdrt (real) and fakert (simulation and scale benchmarks);
// both pass runtimetest.
package runtime

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// The kinds of errors a body translates to; test with errors.Is.
var (
	ErrNotFound     = errors.New("not found")
	ErrExists       = errors.New("exists")
	ErrImageMissing = errors.New("image is missing")  // not present and may not be pulled, or no such image
	ErrImagePull    = errors.New("image pull failed") // may heal
	ErrBadSpec      = errors.New("container cannot be started as described")
	ErrUnavailable  = errors.New("runtime is unavailable") // e.g. containerd restarts: state unknown, try again
	ErrNotRunning   = errors.New("not running")
	ErrForeign      = errors.New("belongs to another owner")
	ErrAbsent       = errors.New("is not there")
	ErrPortTaken    = errors.New("port of the host is taken")
	ErrRefused      = errors.New("refused") // for good, as things are
	// ErrImageRefused: an archive that is damaged, not whole, or beyond a limit.
	ErrImageRefused = errors.New("image refused")
	// ErrSealed: a move has sealed the volume (SAFETY S12).
	ErrSealed  = errors.New("is sealed")
	ErrNoSpace = errors.New("too little free disk space") // may heal
	// ErrDamaged: the file system of a volume cannot be used as it is.
	ErrDamaged = errors.New("damaged")
)

// ContainerID names one container of one identity. The body derives its own ids
// and cgroup paths from the identity and name, never from the token, so that the
// host itself refuses a second life (SAFETY S9).
type ContainerID struct {
	ID   spec.Identity
	Name string
}

// Sandbox is the namespaces of one life: network, IPC and UTS, pinned as files
// that survive the agent.
type Sandbox struct {
	ID       spec.Identity
	Token    spec.Token
	NetNS    string // path to give to the network
	Hostname string
	// SharedPIDs: its containers are in one pid namespace, whose first process is the sandbox's
	// own. When that ends, all of them end, and the sandbox is to be made again. Empty does not count it.
	SharedPIDs bool `json:",omitempty"`
	// HostNetwork: NetNS is the network namespace of the host itself, which is never given to a Network.
	HostNetwork bool `json:",omitempty"`
}

// Container describes one container to be created.
type Container struct {
	ID       ContainerID
	Token    spec.Token
	Attempt  int // restarts in place, 0 first
	Image    string
	Command  []string // replaces the image's entrypoint
	Args     []string // replaces the image's command
	Env      []string // NAME=value, complete but for the image's own
	Dir      string
	Hostname string
	Mounts   []Mount

	User               *int64 // nil: the image's
	Group              *int64
	NonRoot            bool // refuse uid 0
	SupplementalGroups []int64
	StrictGroups       bool // those of the image do not count
	ReadOnlyRoot       bool
	Privileged         bool         // all capabilities and devices of the host; nothing filtered or masked
	NoNewPrivileges    bool         // no file gives its processes rights that they do not have
	AddCapabilities    []string     // without CAP_
	DropCapabilities   []string     // ALL drops all
	Seccomp            spec.Profile // zero: RuntimeDefault
	AppArmor           spec.Profile // zero: Unconfined

	Sysctls map[string]string // by name with dots; of the life's namespaces

	Resources
	// HugePages are limits. Hosts without the cgroup controller hugetlb keep none.
	HugePages scalar.HugePages
	// OOMScore is the oom_score_adj of its processes, -1000 to 1000: of the processes of a host without memory the kernel
	// ends the one with the highest first. An agent that may not set a lower one than its own sets its own.
	OOMScore int

	// Labels are kept with the container, beside the body's own (identity, token).
	Labels map[string]string
	Log    Log
}

// Mount is a bind mount of a host path, or new memory.
type Mount struct {
	Source   string // "" with MemoryBytes
	Target   string
	ReadOnly bool
	// Host: it is the host's own, and no volume: devices and set-user-id files in it work for a
	// privileged container.
	Host bool
	// MemoryBytes, when not 0, makes it a tmpfs of that size for at most MemoryFiles files and directories, of the mode
	// of the directory on which it is mounted. It comes and goes with the container's run, and counts as its memory.
	MemoryBytes int64
	MemoryFiles int
}

// Log says where stdout and stderr go: rotated files, written by stead-node logger
// below Dir, one directory a run (token and attempt); read them with agent/logs.
type Log struct {
	Dir       string // of the container, for all its runs; made when missing
	FileBytes int64  // rotate above this size
	Files     int    // keep so many
	// Guard is the record of a guarded life (agent/watchdog), which its loggers guard as
	// well; "": it is not guarded. Start fails unless one of them does.
	Guard string
}

// State of a container; no Status has ContainerAbsent.
type State = spec.ContainerState

// The states. Lost: the container exists and its task is gone with unknown exit.
const (
	Created = spec.ContainerCreated
	Running = spec.ContainerRunning
	Exited  = spec.ContainerExited
	Lost    = spec.ContainerLost
)

// Status is a container as seen now.
type Status struct {
	ID      ContainerID
	Token   spec.Token
	Attempt int
	State   State
	// Loaded, when Created: its process is there and waits for Start, which was broken
	// off by a crash.
	Loaded bool
	Exit   Exit // when Exited
	// Left, when Exited: processes that it started are still there, which its end has not ended. Only
	// where containers share their pid namespace.
	Left    bool
	Started time.Time
	Labels  map[string]string
	Image   string
	// Resources are what it has; nil: not known, of a container that an earlier version made.
	Resources *Resources
	// Refused counts the processes and threads that it could not make, because it had as
	// many as it may, or all members together had.
	Refused int64
	// StopSignal is what the image asks to be stopped with; 0: SIGTERM.
	StopSignal int
}

// Exit is how a container ended.
type Exit struct {
	Code int
	At   time.Time
	// OOM: the kernel killed for memory.
	OOM bool
	// Unknown: it has ended, and how is not known.
	Unknown bool
}

// Image is one image present on the node.
type Image struct {
	Name      string
	Digest    string
	SizeBytes int64
}

// Exec is a command to run in a running container.
type Exec struct {
	Command []string
	// Env are more variables of the command, NAME=value, beside those of its container. Bounded commands have none.
	Env []string
	// Stdin is read until its end, which the command sees, too; nil: there is none.
	// A Read may still be under way when Exec returns: the caller ends it.
	Stdin  io.Reader
	Stdout io.Writer // nil: dropped
	Stderr io.Writer
	// Terminal gives the command one; all its output comes by Stdout then. nil: none.
	Terminal *Terminal
	// Bounded: all that the command starts ends with it, also what left its session; at
	// most one such command runs in a container at a time, over restarts of the agent,
	// too. It has neither Stdin nor Terminal.
	Bounded bool
	// Alone is as Bounded, for what may take long: such commands and Bounded ones do not wait for each other. At most one runs in a member,
	// in whichever of its containers.
	Alone bool
}

// Terminal is a command's controlling terminal.
type Terminal struct {
	Size Size
	// Resize brings its later sizes, while the command runs; nil: it keeps its size.
	Resize <-chan Size
}

// Size of a terminal, in characters.
type Size struct{ Columns, Rows uint16 }

// Used is the processor time that something has used since it began, and the memory that it uses
// now, without pages of files that the kernel can take back at once.
type Used struct {
	CPU         time.Duration
	MemoryBytes int64
}

// Usage is what a host has used, members or not, and its running containers.
type Usage struct {
	Host       Used
	Containers map[ContainerID]Used
}

// Runtime runs containers. All methods are safe for concurrent use for different
// identities; for one identity one caller (its worker) acts at a time. Each one
// may be repeated after a crash of the caller at any point.
type Runtime interface {
	// EnsureImage makes the image present by its pull policy.
	// Errors: ErrImageMissing, ErrImagePull, ErrUnavailable.
	EnsureImage(ctx context.Context, p Pull) (Image, error)
	// LoadImage imports an OCI (or docker) archive and returns the names now present.
	// After an error the node has the images that it had before.
	// Errors: ErrImageRefused, ErrNoSpace, ErrUnavailable.
	LoadImage(ctx context.Context, r io.Reader) ([]Image, error)
	// Images lists the images of this node, sorted by name.
	Images(ctx context.Context) ([]Image, error)

	// EnsureSandbox makes the namespaces of a life, as s says but for NetNS, or returns those of the same
	// token; of one whose own process has ended that is made again. ErrExists: there is a sandbox of another
	// token, or a process of a life is left where there is none.
	EnsureSandbox(ctx context.Context, s Sandbox) (Sandbox, error)
	// Sandboxes lists all sandboxes on this node.
	Sandboxes(ctx context.Context) ([]Sandbox, error)
	// RemoveSandbox ends the sandbox's own process and unpins the namespaces; absent is no error. While
	// a process of the identity is left (see Empty) it changes nothing and returns ErrExists.
	RemoveSandbox(ctx context.Context, id spec.Identity) error

	// Create makes a container, not started. ErrExists: one of that id exists.
	// ErrBadSpec: it can never work as described (e.g. no such user). ErrNotFound:
	// there is no whole sandbox of its token. ErrImageMissing: make it present first.
	Create(ctx context.Context, c Container) error
	// Start starts a created container, once: nil while it runs, ErrExists when it
	// ran before. ErrBadSpec: e.g. command not found; the container is left Created,
	// without a process. After any other error only Status says whether it runs.
	Start(ctx context.Context, id ContainerID) error
	// Resize has a running container use at most r from now on. It may be repeated; whoever looks at the container later, also another
	// agent, sees what it has. ErrRefused: more memory is in use than it could have, without pages that the kernel can take back, or
	// the host says no; it has what it had. After any other error only repeating it says what it has. ErrNotRunning, ErrNotFound.
	Resize(ctx context.Context, id ContainerID, r Resources) error
	// Signal sends a signal to the main process (all: to every process of the
	// container, with SIGKILL also to those that are Left). ErrNotRunning, ErrNotFound.
	Signal(ctx context.Context, id ContainerID, sig int, all bool) error
	// Remove deletes a container that has no process (kills what is left of it);
	// absent is no error.
	Remove(ctx context.Context, id ContainerID) error
	// Status looks at one container. ErrNotFound, ErrUnavailable.
	Status(ctx context.Context, id ContainerID) (Status, error)
	// List looks at all containers of this node's, sorted. ErrUnavailable.
	List(ctx context.Context) ([]Status, error)
	// Wait blocks until the container has no running process, and returns how it
	// ended. ErrUnavailable: nothing is known, look again. ErrNotRunning: it was
	// never started. ErrNotFound: there is no such container.
	Wait(ctx context.Context, id ContainerID) (Exit, error)
	// Exec runs a command and returns its exit code; when ctx ends first, the command
	// is killed and ctx's error returned. ErrNotRunning; ErrBadSpec: e.g. no such
	// command; ErrUnavailable (beside ctx's error, if that ended): whether it started, or
	// still ran, is not known, which says nothing about the container. A command whose
	// start outlasts ctx is killed when it has started. Of a Bounded one nothing is left
	// when Exec returns, unless with ErrUnavailable: then none starts before it is gone.
	Exec(ctx context.Context, id ContainerID, e Exec) (int, error)

	// Dial connects to a TCP port of the loopback of the identity's network namespace, as a
	// program of the member would: 127.0.0.1, and ::1 where that is refused. The caller closes
	// the connection. ErrNotRunning: it has no sandbox. Where nothing listens, the error is
	// syscall.ECONNREFUSED.
	Dial(ctx context.Context, id spec.Identity, port uint16) (net.Conn, error)

	// Usage says what the host and each running container have used. It needs no daemon.
	Usage(ctx context.Context) (Usage, error)

	// Empty reports, by cgroups and not by the daemon's word, whether no
	// process of the identity is left on this host (SAFETY S13): none but that of a whole
	// sandbox, which runs nothing of the member's.
	Empty(ctx context.Context, id spec.Identity) (bool, error)
	// KillAll kills every process of the identity through its cgroup, without the daemon; that of its
	// sandbox, too.
	KillAll(ctx context.Context, id spec.Identity) error

	// Ping fails with ErrUnavailable while the daemon is away.
	Ping(ctx context.Context) error
	Close() error
}
