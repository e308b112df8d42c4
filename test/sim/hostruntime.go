package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

const containerName = "c"

// hostRuntime is containerd, the kernel and the network of a node, as its agent uses them.
// The agent may die at each call that changes something, before or after.
type hostRuntime struct {
	runtime.Runtime // what no worker calls is not there
	n               *node
}

var (
	_ runtime.Runtime = hostRuntime{}
	_ runtime.Network = hostRuntime{}
)

var errSlow = errors.New("it takes too long")

// slowKey is an operation of an identity that fails for a while; of images: the zero identity.
type slowKey struct {
	id spec.Identity
	op string
}

// act does one thing to the host, unless it fails now or the agent dies at it.
func (n *node) act(id spec.Identity, op string, do func() error) error {
	if n.w.clock.Before(n.slow[slowKey{id, op}]) {
		return errSlow
	}
	n.mayCrash("before " + op)
	err := do()
	n.mayCrash("after " + op)
	return err
}

// act does one thing to what stands here of an identity.
func (h hostRuntime) act(id spec.Identity, op string, do func(*place) error) error {
	return h.n.act(id, op, func() error { return do(h.n.place(id)) })
}

func (h hostRuntime) EnsureImage(_ context.Context, p runtime.Pull) (runtime.Image, error) {
	return runtime.Image{Name: p.Image}, h.n.act(spec.Identity{}, "EnsureImage", func() error {
		if strings.HasPrefix(p.Image, "missing") {
			return runtime.ErrImageMissing
		}
		return nil
	})
}

func (h hostRuntime) EnsureSandbox(_ context.Context, s runtime.Sandbox) (runtime.Sandbox, error) {
	s.NetNS = "netns"
	return s, h.act(s.ID, "EnsureSandbox", func(p *place) error {
		if !p.sandbox.IsZero() && p.sandbox != s.Token {
			return runtime.ErrExists
		}
		p.sandbox = s.Token
		return nil
	})
}

func (h hostRuntime) RemoveSandbox(_ context.Context, id spec.Identity) error {
	return h.act(id, "RemoveSandbox", func(p *place) error {
		if !p.alive().IsZero() {
			return runtime.ErrExists
		}
		p.sandbox = spec.Token{}
		return nil
	})
}

func (h hostRuntime) Attach(_ context.Context, id spec.Identity, _ string, _ netip.Addr, _ ...spec.HostPort) error {
	return h.act(id, "Attach", func(p *place) error { p.link = true; return nil })
}

func (h hostRuntime) Detach(_ context.Context, id spec.Identity) error {
	return h.act(id, "Detach", func(p *place) error { p.link = false; return nil })
}

func (h hostRuntime) Attached(context.Context) ([]spec.Identity, error) {
	return h.n.identities(func(p *place) bool { return p.link }), nil
}

func (h hostRuntime) Sandboxes(context.Context) (list []runtime.Sandbox, err error) {
	for _, id := range h.n.identities(func(p *place) bool { return !p.sandbox.IsZero() }) {
		list = append(list, runtime.Sandbox{ID: id, Token: h.n.places[id].sandbox})
	}
	return list, nil
}

func (h hostRuntime) List(ctx context.Context) (list []runtime.Status, err error) {
	for _, id := range h.n.identities(func(p *place) bool { return len(p.standing()) > 0 }) {
		for _, name := range h.n.places[id].standing() {
			st, _ := h.Status(ctx, runtime.ContainerID{ID: id, Name: name})
			list = append(list, st)
		}
	}
	return list, nil
}

func (h hostRuntime) Create(_ context.Context, c runtime.Container) error {
	return h.act(c.ID.ID, "Create", func(p *place) error {
		b := p.box(c.ID.Name)
		switch {
		case b.state != "":
			return runtime.ErrExists
		case p.sandbox != c.Token:
			return runtime.ErrNotFound
		case !h.n.seesVolumes(c.ID.ID, c.Token):
			return errors.New("a volume is not where it is to be mounted from")
		}
		life := h.n.lifeOf(c.ID.ID, c.Token)
		b.serial++
		b.state, b.token, b.attempt, b.image = runtime.Created, c.Token, c.Attempt, c.Image
		b.args, b.env, b.resources = c.Args, c.Env, c.Resources
		b.part, b.late, b.mounts = partOf(&life.Template.Spec, c.ID.Name), false, h.n.mountsOf(c.ID.ID, c.Token)
		b.grace = time.Duration(life.Member.GraceSeconds) * time.Second
		return nil
	})
}

// Start begins the process now, or late: then its caller has given up on it meanwhile.
func (h hostRuntime) Start(_ context.Context, id runtime.ContainerID) error {
	return h.act(id.ID, "Start", func(p *place) error {
		w, b := h.n.w, p.box(id.Name)
		switch {
		case b.state == "":
			return runtime.ErrNotFound
		case b.state != runtime.Created:
			return runtime.ErrExists
		case b.lateness == nil && w.chance(8) && !w.judge.settling:
			b.lateness = &lateStart{b.serial, b.token}
			w.count("fault: start lands late")
			return fmt.Errorf("start: %w", runtime.ErrUnavailable)
		case w.chance(40) && !w.judge.settling:
			w.count("fault: start fails")
			return runtime.ErrBadSpec
		}
		b.lateness = nil
		b.begin(b.token)
		return nil
	})
}

func (h hostRuntime) Status(_ context.Context, id runtime.ContainerID) (runtime.Status, error) {
	p := h.n.place(id.ID)
	p.pass()
	if h.n.w.clock.Before(h.n.runtimeDown) {
		return runtime.Status{}, runtime.ErrUnavailable
	}
	b := p.box(id.Name)
	if b.state == "" {
		return runtime.Status{}, runtime.ErrNotFound
	}
	resources := b.resources
	st := runtime.Status{ID: id, Token: b.token, Attempt: b.attempt, State: b.state, Image: b.image, Resources: &resources, Exit: runtime.Exit{Code: failedCode}}
	if b.part.role == spec.RoleInit {
		st.Exit = runtime.Exit{Code: b.code, Unknown: b.unknown}
		if h.n.w.plant.SeesNoFailure {
			st.Exit = runtime.Exit{}
		}
	}
	return st, nil
}

// Signal asks the process to end, or ends it.
func (h hostRuntime) Signal(_ context.Context, id runtime.ContainerID, sig int, _ bool) error {
	return h.act(id.ID, "Signal", func(p *place) error {
		w, b := h.n.w, p.box(id.Name)
		if b.alive.IsZero() {
			return runtime.ErrNotRunning
		}
		w.judge.ending(b)
		if sig == 9 {
			w.judge.kills(b)
			b.kill()
			return nil
		}
		w.judge.asks(b)
		if w.plant.ToldTooEarly {
			h.n.agent.report(records.Report{ID: id.ID, Token: b.alive, Node: h.n.name, Phase: records.PhaseStopped, Seq: h.n.agent.nextSeq()})
		}
		b.code, b.asked = killedCode, h.n.now()
		b.exits = w.clock.Add(time.Duration(w.r.IntN(int(1500*b.grace/time.Second+1))) * time.Millisecond)
		return nil
	})
}

func (h hostRuntime) KillAll(_ context.Context, id spec.Identity) error {
	return h.act(id, "KillAll", func(p *place) error {
		for _, b := range p.running() {
			h.n.w.judge.ending(b)
			h.n.w.judge.kills(b)
			b.kill()
		}
		return nil
	})
}

func (h hostRuntime) Remove(_ context.Context, id runtime.ContainerID) error {
	return h.act(id.ID, "Remove", func(p *place) error {
		b := p.box(id.Name)
		if !b.alive.IsZero() {
			return errors.New("it has processes")
		}
		b.state, b.token, b.serial = "", spec.Token{}, b.serial+1
		if !h.n.w.plant.LateStartLands {
			b.lateness = nil
		}
		return nil
	})
}

func (h hostRuntime) Empty(_ context.Context, id spec.Identity) (bool, error) {
	p := h.n.place(id)
	p.pass()
	return p.alive().IsZero(), nil
}

// identities of which something stands here, in order.
func (n *node) identities(stands func(*place) bool) (ids []spec.Identity) {
	for id, p := range n.places {
		if stands(p) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, spec.Identity.Compare)
	return ids
}

// lifeOf is a life as the agent was told of it, or as one before it kept it.
func (n *node) lifeOf(id spec.Identity, token spec.Token) *records.Life {
	if l, told := n.agent.workers[id].lives[token]; told {
		return &l
	}
	if l := n.tmpfs.lives[id]; l.Member.Token == token {
		return &l
	}
	panic(fmt.Sprintf("%s does something for %s %s, of which it was told nothing", n.name, id, token))
}

// seesVolumes: all volumes of the life are in their places, as a container that is created
// would find them.
func (n *node) seesVolumes(id spec.Identity, token spec.Token) bool {
	return !slices.ContainsFunc(n.lifeOf(id, token).Member.Volumes, func(v records.MemberVolume) bool {
		return n.classes[v.Class].shows.dirs[volumeKey{v.Owner(id), v.Claim}].id != v.ID
	})
}

// sortedKeys are the keys of a map by identity, in order.
func sortedKeys[V any](m map[spec.Identity]V) []spec.Identity {
	return slices.SortedFunc(maps.Keys(m), spec.Identity.Compare)
}
