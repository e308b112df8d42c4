// Package containerdrt runs containers through containerd and runc.
//
// The daemon is a guest's host: it is used as it is, never reconfigured. Everything
// of ours lives in one containerd namespace, one runc root, one cgroup parent and
// one run directory, all of which carry the cluster's id and the node's name, so
// that several nodes, tests and other users share a machine.
//
//	containerd id     <ns>.<member>.<container>, hashed when that is not a valid id
//	cgroup            <CgroupParent>/<ns>.<member>/<container>
//	namespaces        <RunDir>/ns/<ns>/<member>/{net,ipc,uts} and sandbox.json, with a
//	                  shared pid namespace also pid; its first process is in the cgroup .pause
//
// None of them holds the token: the host itself refuses a second life of an
// identity (SAFETY S9). Its labels say what a container is, so a restarted
// agent adopts it. containerd says how a process ended; whether one is left is seen
// in the cgroups alone (SAFETY S13), and a start is refused unless its processes
// show up in the cgroup where they will be looked for.
package containerdrt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/stead-project/stead/agent/cgroup"
	"github.com/stead-project/stead/agent/runtime"
)

var _ runtime.Runtime = (*Runtime)(nil)

// How long the daemon may take, if the caller's context does not end before.
const (
	lookTime = 15 * time.Second
	actTime  = 60 * time.Second
	loadTime = 30 * time.Minute
	// closeTime is how long Close waits for the daemon.
	closeTime = 5 * time.Second
)

// Config is where the daemon is and what is ours in it.
type Config struct {
	// Address is containerd's socket. Default: /run/containerd/containerd.sock.
	Address string
	// Namespace is our containerd namespace: stead-<first 8 of cluster id>-<node>.
	Namespace string
	// CgroupParent is the cgroup of all members, absolute below the hierarchy's
	// root: /stead-<first 8 of cluster id>-<node>.
	CgroupParent string
	// RunDir is the agent's run directory, on a tmpfs: pins, fifos, runc's state.
	RunDir string
	// Logger is the path of stead-node; it must stay in place while containers run.
	Logger string
	// HostsDir holds hosts.toml per registry. Default: /etc/containerd/certs.d.
	HostsDir string
	// Snapshotter keeps root filesystems. Default: overlayfs where the daemon has
	// it, native otherwise.
	Snapshotter string
	// SeccompDir holds the files of seccomp profiles of type Localhost. Default: /etc/stead/seccomp.
	SeccompDir string
	// MaxProcesses is how many processes and threads a container may have; 0: any number.
	MaxProcesses int64
	// MaxImageBytes bounds an image's archive, and what it unpacks to; 0: any size.
	MaxImageBytes int64
	// MaxPulls is how many images are pulled at once. Default: 3.
	MaxPulls int
	// OCIRuntime is the path of the program that the shim has make containers, of runc's command line; a container keeps the
	// one that it was created with. Default: runc, as the shim finds it.
	OCIRuntime string
	// NativeOnly leaves the processor's other system call tables (32-bit programs, x32) out of the default seccomp filter: the
	// kernel kills who uses them. runc takes long to make a filter of several. A Localhost profile is used as it is.
	NativeOnly bool
	// CgroupRoot is where cgroups are mounted. Default: /sys/fs/cgroup.
	CgroupRoot string
	// Log hears of containers whose probes cost more than they should. Default: none does.
	Log *slog.Logger
}

// Check fills in the defaults and reports what is missing.
func (c *Config) Check() error {
	c.Address = cmp.Or(c.Address, "/run/containerd/containerd.sock")
	c.HostsDir = cmp.Or(c.HostsDir, "/etc/containerd/certs.d")
	c.SeccompDir = cmp.Or(c.SeccompDir, "/etc/stead/seccomp")
	c.CgroupRoot = cmp.Or(c.CgroupRoot, cgroup.Root)
	c.MaxPulls = cmp.Or(max(c.MaxPulls, 0), 3)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case len(c.Namespace) > maxID || !validID.MatchString(c.Namespace):
		return fmt.Errorf("invalid containerd namespace %q", c.Namespace)
	case !filepath.IsAbs(c.CgroupParent) || filepath.Clean(c.CgroupParent) == "/":
		return fmt.Errorf("cgroup parent %q: want an absolute path other than /", c.CgroupParent)
	case !filepath.IsAbs(c.RunDir):
		return fmt.Errorf("run directory %q is not absolute", c.RunDir)
	case c.OCIRuntime != "" && !filepath.IsAbs(c.OCIRuntime):
		return fmt.Errorf("OCI runtime %q is not absolute", c.OCIRuntime)
	case !filepath.IsAbs(c.Logger):
		return fmt.Errorf("logger %q is not absolute", c.Logger)
	}
	return nil
}

// Runtime is the containerd body of runtime.Runtime.
type Runtime struct {
	*daemon
	*imageStore
	*sandboxes
	*lifecycle
	*commands
}

// daemon is what all parts of a Runtime need: containerd, and the names of what is ours in
// it and on the host.
type daemon struct {
	cfg     Config
	client  *containerd.Client
	cgroups cgroup.Tree

	mu          sync.Mutex
	snapshotter string // "" until the daemon was asked
}

// New makes a runtime; it does not need the daemon to be there yet, and connects
// again by itself whenever the daemon was away.
func New(cfg Config) (*Runtime, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("containerd runtime: %w", err)
	}
	client, err := containerd.New(cfg.Address,
		containerd.WithDefaultNamespace(cfg.Namespace),
		containerd.WithTimeout(2*time.Second)) // also the longest wait between two dials
	if err != nil {
		return nil, fmt.Errorf("containerd runtime: %w", err)
	}
	d := &daemon{
		cfg: cfg, client: client, snapshotter: cfg.Snapshotter,
		cgroups: cgroup.New(cfg.CgroupRoot, cfg.CgroupParent),
	}
	return newRuntime(d), nil
}

func newRuntime(d *daemon) *Runtime {
	images := &imageStore{daemon: d, places: make(chan struct{}, d.cfg.MaxPulls)}
	entered := &openContainers{of: map[runtime.ContainerID]*openContainer{}}
	lives := &lifecycle{daemon: d, images: images, entered: entered}
	return &Runtime{
		daemon: d, imageStore: images, sandboxes: &sandboxes{d, lives}, lifecycle: lives,
		commands: &commands{daemon: d, lifecycle: lives, entered: entered},
	}
}

// Close ends the connection; containers and their logs continue. It waits for commands that
// are being ended, but not for a daemon that hangs: what that starts later, the next
// agent ends.
func (r *Runtime) Close() error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.late.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(closeTime):
	}
	err := r.client.Close() // no start hangs from now on
	<-ended
	r.commands.entered.close()
	return err
}

// Ping asks the daemon for its version.
func (r *daemon) Ping(ctx context.Context) error {
	ctx, done := r.begin(ctx, lookTime)
	defer done()
	_, err := r.client.Version(ctx)
	return r.translate(ctx, "ping containerd", err)
}

type parentKey struct{}

// begin bounds a call and puts our namespace into its context.
func (r *daemon) begin(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx := context.WithValue(namespaces.WithNamespace(parent, r.cfg.Namespace), parentKey{}, parent)
	return context.WithTimeout(ctx, limit)
}

// unlessGone is err, or nil where the daemon says that there is no such thing.
func unlessGone(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// translated is translate for a function's named error: defer r.translated(ctx, &err, what).
func (r *daemon) translated(ctx context.Context, err *error, what string) {
	*err = r.translate(ctx, what, *err)
}

// translate puts an error of the daemon into the words of the contract. An error that
// comes from our own bound, not the caller's, is ErrUnavailable.
func (r *daemon) translate(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	parent, _ := ctx.Value(parentKey{}).(context.Context)
	if parent != nil && over(parent) != nil {
		return fmt.Errorf("%s: %w", what, over(parent))
	}
	if isContractError(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	// The client returns native errors mostly, and raw gRPC ones from Wait.
	kind := contractError(err)
	if kind == nil {
		kind = contractError(errgrpc.ToNative(err))
	}
	if kind == nil && over(ctx) != nil {
		kind = runtime.ErrUnavailable
	}
	if kind == nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w: %w", what, kind, err)
}

// over is why a context has ended. The daemon is sent the deadline and may answer that it
// has passed, in an error of no kind, before the timer here has fired: so the clock decides.
func over(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if err := ctx.Err(); err != nil || !ok || time.Now().Before(deadline) {
		return err
	}
	return context.DeadlineExceeded
}

func contractError(err error) error {
	switch {
	case errdefs.IsNotFound(err):
		return runtime.ErrNotFound
	case errdefs.IsAlreadyExists(err):
		return runtime.ErrExists
	case errdefs.IsUnavailable(err), errdefs.IsDeadlineExceeded(err), errdefs.IsCanceled(err),
		strings.Contains(err.Error(), "ttrpc: closed"), errors.Is(err, os.ErrDeadlineExceeded):
		return runtime.ErrUnavailable
	}
	return nil
}

// isContractError reports whether err is in the words of the contract already.
func isContractError(err error) bool {
	for _, k := range []error{runtime.ErrNotFound, runtime.ErrExists, runtime.ErrImageMissing, runtime.ErrImagePull,
		runtime.ErrBadSpec, runtime.ErrUnavailable, runtime.ErrNotRunning, runtime.ErrForeign,
		runtime.ErrImageRefused, runtime.ErrNoSpace, runtime.ErrRefused} {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}
