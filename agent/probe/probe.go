// Package probe asks running containers how they are. Next is the pure part: what
// a result means after those before it. Prober runs the probes of one container:
// exec in the container, http, tcp and grpc from the host to the member's address; and
// its lifecycle hooks.
package probe

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/spec"
)

// Config says how containers are reached.
type Config struct {
	// Exec runs a command in a container, as runtime.Runtime's. Those of probes are Bounded.
	Exec func(context.Context, runtime.ContainerID, runtime.Exec) (int, error)
	// Dial opens connections to the member; nil: from this process's network namespace.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Prober runs probes. It is safe for concurrent use.
type Prober struct {
	c    Config
	http http.RoundTripper
}

// New returns a prober; it holds nothing that must be closed.
func New(c Config) *Prober {
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	return &Prober{c, newTransport(c.Dial)}
}

// Target is a running container to be probed.
type Target struct {
	ID        runtime.ContainerID
	Container spec.Container
	// Address of the member, for what asks over the network and names no host.
	Address netip.Addr
	// Adopted: it ran before this agent. Health is what was last known of it and
	// holds until enough results say otherwise; initial delays are over.
	Adopted bool
	Health  Health
	// Since is when it was first seen to run: initial delays count from then. Zero: now.
	Since time.Time
}

// Probe runs the container's probes and calls report, from one goroutine, with its
// health at first and after each change. It returns when ctx ends or the container
// was given up (Health.Failed), and then no probe is running.
func (p *Prober) Probe(ctx context.Context, t Target, report func(Health)) {
	ctx, cancel := context.WithCancel(ctx)
	var loops sync.WaitGroup
	defer loops.Wait()
	defer cancel()

	if t.Since.IsZero() {
		t.Since = time.Now()
	}
	r := run{p: p, t: t, answers: make(chan answer), turn: make(chan struct{}, 1)}
	state := Begin(t.Container, t.Adopted, t.Health)
	report(state.Health)
	if state.Failed {
		return
	}
	r.launch(ctx, &loops, state.Started)
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-r.answers:
			before := state.Health
			state = Next(state, a.kind, a.result)
			if state.Started && !before.Started {
				r.launch(ctx, &loops, true)
			}
			if state.Health != before && ctx.Err() == nil {
				report(state.Health)
			}
			if state.Failed {
				return
			}
		}
	}
}

// run is one call of Probe.
type run struct {
	p       *Prober
	t       Target
	answers chan answer
	// turn is held while a command runs: a container has one at a time, and those that
	// wait get it in the order they came. Their time-outs start then.
	turn chan struct{}
}

type answer struct {
	kind   Kind
	result Result
}

// launch starts the loops that belong to a container that has started, or has not.
func (r *run) launch(ctx context.Context, loops *sync.WaitGroup, started bool) {
	for _, kind := range []Kind{Startup, Liveness, Readiness, Leader} {
		probe := kind.of(r.t.Container)
		if probe != nil && (kind == Startup) == !started {
			loops.Go(func() { r.loop(ctx, kind, *probe) })
		}
	}
}

// loop runs one probe every period until ctx ends; that of the startup probe ends by
// itself when its verdict is in.
func (r *run) loop(ctx context.Context, kind Kind, probe spec.Probe) {
	delay := time.Until(r.t.Since.Add(seconds(probe.InitialDelaySeconds, 0)))
	if !r.t.Adopted && !backoff.Sleep(ctx, delay) {
		return
	}
	tick := time.NewTicker(seconds(probe.PeriodSeconds, 10))
	defer tick.Stop()
	results := counter{}
	for {
		result := r.once(ctx, probe)
		if ctx.Err() != nil {
			return
		}
		select {
		case r.answers <- answer{kind, result}:
		case <-ctx.Done():
			return
		}
		results = results.next(result.Outcome)
		if kind == Startup && results.verdict(probe) != Unknown {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// once runs a probe one time, a command when it is its turn.
func (r *run) once(ctx context.Context, probe spec.Probe) Result {
	if probe.Exec != nil {
		select {
		case r.turn <- struct{}{}:
			defer func() { <-r.turn }()
		case <-ctx.Done():
			return Result{}
		}
	}
	return r.p.once(ctx, r.t, probe)
}

// once runs a probe one time within its time-out.
func (p *Prober) once(ctx context.Context, t Target, probe spec.Probe) Result {
	timeout := seconds(probe.TimeoutSeconds, 1)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch {
	case probe.Exec != nil:
		return p.execute(ctx, t.ID, probe.Exec.Command, timeout)
	case probe.HTTPGet != nil:
		return p.get(ctx, t, probe.HTTPGet, timeout)
	case probe.TCPSocket != nil:
		return p.connect(ctx, t, probe.TCPSocket, timeout)
	case probe.GRPC != nil:
		return p.askHealth(ctx, t, probe.GRPC, timeout)
	}
	return Result{Outcome: Unknown, Cause: "it has no action"}
}

// seconds is n seconds, or otherwise for a field that was left out.
func seconds(n, otherwise int32) time.Duration {
	if n <= 0 {
		n = otherwise
	}
	return time.Duration(n) * time.Second
}
