package fakert

import (
	"context"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/spec"
)

// Call is one call of an agent: the method's name and what it concerns (ID and
// Name are zero where the method has none; Name is the container's, or the claim
// or scratch directory of a Volumes method).
type Call struct {
	Op   string
	ID   spec.Identity
	Name string
}

// Behaviour is how a container behaves. Zero: it runs until it is asked to end and
// exits 0 on SIGTERM.
type Behaviour struct {
	StartErr   error // Start fails with it and leaves no process
	Exits      bool  // it ends with Code as soon as it was started
	Code       int
	IgnoreTerm bool // SIGTERM does nothing
	TermCode   int  // exit code on SIGTERM
	StopSignal int  // of its image: ends it in place of SIGTERM; 0: SIGTERM does
	Leaves     bool // what it started outlives it where containers share their processes
	Unkillable bool // even SIGKILL does nothing, as in D state, until Exit or Reboot
}

// Start is one start of a process, in the order they happened.
type Start struct {
	Name    string // container
	Token   spec.Token
	Attempt int
	At      time.Time
}

type script struct {
	exec      func(context.Context, runtime.ContainerID, runtime.Exec) (int, error)
	image     func(ref, policy string) error
	behaviour func(runtime.Container) Behaviour
}

// OnCall hands every call to f before it has an effect. f may block (a slow host)
// and may return an error, which the caller gets instead. nil: none.
func (m *machine) OnCall(f func(ctx context.Context, c Call) error) {
	m.with(func() { m.call = f })
}

// OnExec lets f answer Exec in running containers. nil: exit code 0, no output.
func (h *Host) OnExec(f func(ctx context.Context, id runtime.ContainerID, e runtime.Exec) (int, error)) {
	h.with(func() { h.script.exec = f })
}

// OnPull lets f decide whether an image that is not present can be pulled; it
// returns nil, or an error of kind ErrImageMissing or ErrImagePull. nil: always.
func (h *Host) OnPull(f func(ref, policy string) error) {
	h.with(func() { h.script.image = f })
}

// OnStart lets f say how each container behaves from its Start on. nil: the zero
// Behaviour.
func (h *Host) OnStart(f func(c runtime.Container) Behaviour) {
	h.with(func() { h.script.behaviour = f })
}

// AddImage makes an image present without a pull.
func (h *Host) AddImage(name string) { h.with(func() { h.images[name] = image(name) }) }

// Down makes the daemon go away (true) or come back (false). Processes live on;
// blocked Waits return ErrUnavailable.
func (h *Host) Down(down bool) {
	h.with(func() {
		switch {
		case down && !h.isDown:
			close(h.down)
		case !down && h.isDown:
			h.down = make(chan struct{})
		}
		h.isDown = down
	})
}

// Exit ends a running container as if by itself, Unkillable or not, and reports
// whether it was running. A zero e.At is now.
func (h *Host) Exit(id runtime.ContainerID, e runtime.Exit) bool {
	return h.endBy(id, runtime.Exited, e)
}

// Lose makes a running container's process vanish, without a trace of how, and
// reports whether it was running.
func (h *Host) Lose(id runtime.ContainerID) bool {
	return h.endBy(id, runtime.Lost, runtime.Exit{Unknown: true})
}

func (h *Host) endBy(id runtime.ContainerID, s runtime.State, e runtime.Exit) (was bool) {
	h.with(func() {
		c := h.containers[id]
		was = c != nil && c.state == runtime.Running
		if was {
			h.end(c, s, e)
		}
	})
	return was
}

// Refuse makes a container be refused so many processes more.
func (h *Host) Refuse(id runtime.ContainerID, processes int64) {
	h.with(func() { h.containers[id].refused += processes })
}

// Reboot ends every process and forgets all that lives in memory: sandboxes,
// links and scratch. Containers that ran are Lost; images and volumes stay.
func (h *Host) Reboot() {
	h.with(func() {
		for _, c := range h.containers {
			if c.state == runtime.Running {
				h.end(c, runtime.Lost, runtime.Exit{Unknown: true})
			}
		}
		for _, c := range h.containers {
			c.left = false
		}
		clear(h.sandboxes)
		clear(h.lost)
		clear(h.links)
		clear(h.scratch)
	})
}

// Starts returns every process start of an identity so far, oldest first.
func (h *Host) Starts(id spec.Identity) []Start {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.starts[id])
}

// StartsOf counts the process starts of one container of one life.
func (h *Host) StartsOf(id runtime.ContainerID, token spec.Token) int {
	n := 0
	for _, s := range h.Starts(id.ID) {
		if s.Name == id.Name && s.Token == token {
			n++
		}
	}
	return n
}

// RunningTokens returns the lives of an identity that have a process now, sorted.
// More than one, here or over several hosts, breaks the first promise.
func (h *Host) RunningTokens(id spec.Identity) []spec.Token {
	var out []spec.Token
	h.with(func() {
		for _, c := range running(h, id) {
			out = append(out, c.made.Token)
		}
	})
	slices.SortFunc(out, spec.Token.Compare)
	return slices.Compact(out)
}

// Container returns what Create was given for id.
func (h *Host) Container(id runtime.ContainerID) (runtime.Container, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.containers[id]; c != nil {
		return c.made, true
	}
	return runtime.Container{}, false
}

// Cgroup is where the processes of an identity are said to be.
func Cgroup(id spec.Identity) string { return "/fake/" + string(id.Namespace) + "." + id.MemberName() }

// Watchdog makes a watchdog of the lives recorded in dir, which sees and kills the
// containers of this host; whoever asked for it runs it.
func (h *Host) Watchdog(dir string, clock func() time.Duration) *watchdog.Watchdog {
	return &watchdog.Watchdog{
		Dir: watchdog.Dir(dir), Clock: clock,
		Empty: func(cgroup string) (bool, error) {
			empty := true
			h.in(cgroup, func(*container) { empty = false })
			return empty, nil
		},
		Kill: func(cgroup string) error {
			h.in(cgroup, func(c *container) { h.kill(c) })
			return nil
		},
	}
}

// in calls f, under the lock, with each container that runs in a cgroup.
func (h *Host) in(cgroup string, f func(*container)) {
	h.with(func() {
		for id, c := range h.containers {
			if Cgroup(id.ID) == cgroup && c.state == runtime.Running {
				f(c)
			}
		}
	})
}
