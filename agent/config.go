package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Config is what an agent needs. All fields but those marked are needed.
type Config struct {
	// Home is open and has joined a cluster; the agent does not close it.
	Home *home.Home
	// RunDir is a directory on tmpfs: what is in it lasts until the next boot.
	RunDir string
	Dial   session.Dial

	Runtime runtime.Runtime
	Network runtime.Network
	Volumes runtime.Volumes
	// Moves and Copier move volumes to and from other nodes; nil, nil: this node moves none.
	Moves  runtime.MoveVolumes
	Copier move.Copier
	// Prober runs probes (agent/probe); nil: they count as passed.
	Prober worker.Prober

	// Boot is the kernel's boot id (home.BootID reads it).
	Boot spec.BootID
	// Facts are what the node says of itself; name, uid and boot are filled in.
	Facts records.NodeFacts
	// Allocatable is what members are shown in place of limits that they do not set; fields that
	// are 0 are taken from Facts.
	Allocatable files.Allocatable
	// Gateway is the members' gateway and name server; default 169.254.1.1.
	Gateway string
	// Snapshots takes the newest snapshots of all sets, at start and after each change, from
	// one goroutine at a time; it must not block nor change them. Optional.
	Snapshots func([]records.Snapshot)
	// Listed takes the sequence of each list of all sets that a server sent, before its Snapshots; from the same
	// goroutine. Optional.
	Listed func(spec.Sequence)
	// Interests takes what asks servers for sets that the node is sent in brief, once, before the first
	// snapshot. Optional.
	Interests func(*session.Interests)
	// Hosts takes the addresses of all nodes, in the same way, once a server sent them; they
	// must not be changed. Optional.
	Hosts func([]netip.Addr)
	// Tunnel takes what servers say of the tunnel between hosts, in the same way; nil: nobody does.
	Tunnel func(*records.HostTunnel)
	// Servers takes the addresses of the cluster's servers, host:port, in the same way; nil: nobody does.
	Servers func([]string)
	// Authority takes the id of the authority that signs certificates in place of another, in the same way; nil: nobody does.
	Authority func(id string)
	// Repair puts back what is missing of the host's own part of the network; called
	// with each repair of the members' links. It must end with its context. Optional.
	Repair func(context.Context) error
	// VolumeUses says how full the node's volumes are; it does not wait long. Optional.
	VolumeUses func() []runtime.VolumeUse
	// Changed receives when links, addresses or routes of the host went, so that
	// repair need not wait. Optional; never closed.
	Changed <-chan struct{}
	// Clock is the time since boot, which goes on while the agent is away; default
	// CLOCK_BOOTTIME.
	Clock func() time.Duration

	// Watchdog starts a watchdog (agent/watchdog) of the lives recorded in a directory; it
	// is called when none runs there, or one of another release. Cgroup is where the processes of an identity are,
	// below each hierarchy's root. nil, nil: this node guards no lives.
	Watchdog func(dir string) error
	Cgroup   func(spec.Identity) string
	// ForeignWatchdog reports whether a watchdog runs on a directory that is of another release than Watchdog's. Optional.
	ForeignWatchdog func(dir string) bool

	// Trace tells what is done for members until they are ready; nil: traces are off. The caller closes it.
	Trace *trace.Tracer

	Tuning Tuning
	Logger *slog.Logger
}

// Tuning holds the waits; zero fields take defaults.
type Tuning struct {
	Worker worker.Tuning
	// RetryFirst doubles up to RetryMost between two sessions, with jitter.
	RetryFirst, RetryMost time.Duration // 100ms, 5s
	// Answer is how long a server may take to welcome us.
	Answer time.Duration // 15s
	// Soon and Later delay reports that a next one may make needless: of trouble that
	// may pass, and of progress.
	Soon, Later time.Duration // 300ms, 1s
}

func (c Config) filled() (Config, error) {
	switch {
	case c.Home == nil || c.Dial == nil || c.Runtime == nil || c.Network == nil || c.Volumes == nil || c.Logger == nil:
		return c, errors.New("the agent's configuration lacks a part")
	case c.RunDir == "" || c.Boot == "":
		return c, errors.New("the agent's configuration lacks the run directory or the boot id")
	case c.Home.Cluster() == "":
		return c, errors.New("the node has not joined a cluster")
	}
	if (c.Moves == nil) != (c.Copier == nil) {
		return c, errors.New("the agent's configuration lacks what moves volumes, or what copies them")
	}
	if (c.Watchdog == nil) != (c.Cgroup == nil) {
		return c, errors.New("the agent's configuration lacks the watchdog or the cgroups")
	}
	c.Gateway = cmp.Or(c.Gateway, "169.254.1.1")
	if c.Clock == nil {
		c.Clock = watchdog.BootTime
	}
	if c.Interests == nil {
		c.Interests = func(*session.Interests) {}
	}
	if c.VolumeUses == nil {
		c.VolumeUses = func() []runtime.VolumeUse { return nil }
	}
	if c.Snapshots == nil {
		c.Snapshots = func([]records.Snapshot) {}
	}
	if c.Listed == nil {
		c.Listed = func(spec.Sequence) {}
	}
	if c.Authority == nil {
		c.Authority = func(string) {}
	}
	if c.Servers == nil {
		c.Servers = func([]string) {}
	}
	if c.Tunnel == nil {
		c.Tunnel = func(*records.HostTunnel) {}
	}
	if c.Hosts == nil {
		c.Hosts = func([]netip.Addr) {}
	}
	c.Allocatable.CPUMillis = cmp.Or(c.Allocatable.CPUMillis, c.Facts.CPUMillis)
	c.Allocatable.MemoryBytes = cmp.Or(c.Allocatable.MemoryBytes, c.Facts.MemoryBytes)
	c.Facts.Name, c.Facts.UID, c.Facts.Boot = c.Home.Name(), c.Home.UID(), c.Boot
	c.Tuning = c.Tuning.filled()
	return c, nil
}

func (t Tuning) filled() Tuning {
	return Tuning{
		Worker:     t.Worker.Filled(),
		RetryFirst: cmp.Or(t.RetryFirst, 100*time.Millisecond), RetryMost: cmp.Or(t.RetryMost, 5*time.Second),
		Answer: cmp.Or(t.Answer, 15*time.Second),
		Soon:   cmp.Or(t.Soon, 300*time.Millisecond), Later: cmp.Or(t.Later, time.Second),
	}
}
