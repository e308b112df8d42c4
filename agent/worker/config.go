package worker

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Config is what all workers of a node share. Every field down to Logger is needed, but for
// Prober, Guard and Starts.
type Config struct {
	Runtime runtime.Runtime
	Network runtime.Network
	Volumes runtime.Volumes
	Ledger  *ledger.Ledger
	// Prober probes containers and runs their hooks; nil: neither is run, and counts as passed.
	Prober Prober
	// Guard keeps the deadlines of lives that have a bound; nil: this node begins none.
	Guard Guard
	// Starts has a place for each container that may be created or started at once:
	// more than the host can do would only be slow enough to be given up. nil: any number.
	Starts chan struct{}
	// Find looks up ConfigMaps and Secrets.
	Find files.Lookup
	// Sets shows members their sets.
	Sets Sets
	// Self follows what a running container says of its member, and calls report with each change until ctx ends. It
	// returns at once. nil: nobody says anything.
	Self func(ctx context.Context, id runtime.ContainerID, report func(records.Claim))
	// Report takes what was seen of a life; it must not block.
	Report func(records.Report)
	// Seq gives the next sequence of a report; it grows also over a restart of the agent.
	Seq func() int64
	// Epoch is the newest epoch of which this node has heard.
	Epoch func() int64
	Node  files.Node
	Boot  spec.BootID
	// RunDir (tmpfs) is where members' files lie, which Files writes.
	RunDir string
	Files  HostFiles
	// Clock is the time since boot: it goes on over a restart of the agent and does
	// not jump.
	Clock func() time.Duration
	// Now is the wall clock with Go's monotonic reading: waits are counted by it.
	Now func() time.Time
	// Trace takes what was done for a life until it was ready for the first time; ready: now it is. nil: traces are off.
	Trace  func(life *records.Life, done Done)
	Tuning Tuning
	Logger *slog.Logger

	// What follows is for a simulation. Background watches, probes and runs hooks; nil: goroutines
	// for which Run waits.
	Background Background
	// AfterFunc calls f once, after d, unless it is stopped before; nil: time.AfterFunc.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Next chooses the operation for a life; nil: step.Next.
	Next func(id spec.Identity, token spec.Token, wanted step.Wanted, seen step.Seen) step.Op
}

func (c *Config) after(d time.Duration, f func()) (stop func() bool) {
	if c.AfterFunc != nil {
		return c.AfterFunc(d, f)
	}
	return time.AfterFunc(d, f).Stop
}

func (c *Config) next(id spec.Identity, token spec.Token, wanted step.Wanted, seen step.Seen) step.Op {
	if c.Next != nil {
		return c.Next(id, token, wanted, seen)
	}
	return step.Next(wanted, seen)
}

// Tuning holds the waits. Zero fields take Kubernetes' numbers.
type Tuning struct {
	// CrashFirst is the wait before the second restart in a row (the first is at
	// once); it doubles up to CrashMost, and is forgotten after crashReset of running.
	CrashFirst, CrashMost time.Duration // 10s, 5m
	// ImageFirst and ImageMost are the same for images that could not be had.
	ImageFirst, ImageMost time.Duration // 10s, 5m
	// RetryFirst and RetryMost are the same for every other operation.
	RetryFirst, RetryMost time.Duration // 500ms, 1m
	// Look is how often the containers are looked at although nothing woke us.
	Look time.Duration // 30s
	// Away is how often a runtime that does not answer is tried.
	Away time.Duration // 1s
	// Renew is the least time between two writings of the files of a running member.
	Renew time.Duration // 1s
}

// Filled returns t with the defaults in place of zero fields.
func (t Tuning) Filled() Tuning {
	return Tuning{
		CrashFirst: cmp.Or(t.CrashFirst, 10*time.Second), CrashMost: cmp.Or(t.CrashMost, 5*time.Minute),
		ImageFirst: cmp.Or(t.ImageFirst, 10*time.Second), ImageMost: cmp.Or(t.ImageMost, 5*time.Minute),
		RetryFirst: cmp.Or(t.RetryFirst, 500*time.Millisecond), RetryMost: cmp.Or(t.RetryMost, time.Minute),
		Look: cmp.Or(t.Look, 30*time.Second), Away: cmp.Or(t.Away, time.Second), Renew: cmp.Or(t.Renew, time.Second),
	}
}

// Sets shows members their sets: files.SetFiles.
type Sets interface {
	// IsKnown reports whether a snapshot of the member's set was received; if not, came is
	// called when one is.
	IsKnown(id spec.Identity, came func()) bool
	// Follow shows a life its set, now and whenever it changes; repeated, it puts back what
	// was removed.
	Follow(life *records.Life) error
	// Leave ends that, before the life's files are removed.
	Leave(id spec.Identity)
}

// Prober runs the probes and hooks of a container that has any; agent/probe is one.
type Prober interface {
	// Probe runs until ctx ends and calls report with each change of health, from one
	// goroutine. A runtime that does not answer is not a failure.
	Probe(ctx context.Context, t probe.Target, report func(probe.Health))
	// Hook runs a lifecycle hook until it returns or ctx ends, and says why it failed.
	Hook(ctx context.Context, t probe.Target, h spec.Hook) error
	// Order runs a hook once that the server ordered, and says why it failed; nothing of it is left.
	Order(ctx context.Context, t probe.Target, h spec.MemberHook, env []string) error
}
