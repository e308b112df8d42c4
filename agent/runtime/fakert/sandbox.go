package fakert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// EnsureImage makes an image present as OnPull says. Never does not pull.
func (h *Host) EnsureImage(ctx context.Context, p runtime.Pull) (img runtime.Image, err error) {
	ref, policy := p.Image, p.Policy
	var there bool
	var pull func(ref, policy string) error
	err = h.ask(ctx, Call{Op: "EnsureImage", Name: ref}, func() error {
		img, there = h.images[ref]
		pull = h.script.image
		return nil
	})
	if err != nil || there && policy != spec.PullAlways {
		return img, err
	}
	if policy == spec.PullNever {
		return img, fmt.Errorf("image %q: %w", ref, runtime.ErrImageMissing)
	}
	if _, err := p.Tried(); err != nil {
		return runtime.Image{}, fmt.Errorf("pull %q: %w: %w", ref, runtime.ErrImagePull, err)
	}
	if pull != nil {
		if err := pull(ref, policy); err != nil {
			return runtime.Image{}, fmt.Errorf("pull %q: %w", ref, err)
		}
	}
	h.AddImage(ref)
	return image(ref), nil
}

// LoadImage takes the archive's text as the name of the one image in it.
func (h *Host) LoadImage(ctx context.Context, r io.Reader) ([]runtime.Image, error) {
	if err := h.ask(ctx, Call{Op: "LoadImage"}, func() error { return nil }); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("load image: %w", err)
	}
	name := strings.TrimSpace(string(text))
	h.AddImage(name)
	return []runtime.Image{image(name)}, nil
}

// Images lists the present images by name.
func (h *Host) Images(ctx context.Context) (out []runtime.Image, err error) {
	err = h.ask(ctx, Call{Op: "Images"}, func() error {
		out = slices.Collect(maps.Values(h.images))
		return nil
	})
	slices.SortFunc(out, func(a, b runtime.Image) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// EnsureSandbox makes the sandbox of a life, or its process anew; it needs no daemon.
func (h *Host) EnsureSandbox(ctx context.Context, want runtime.Sandbox) (s runtime.Sandbox, err error) {
	id := want.ID
	err = h.do(ctx, Call{Op: "EnsureSandbox", ID: id}, func() error {
		have, there := h.sandboxes[id]
		switch {
		case !there:
			have = want
			have.NetNS = "/fake/ns/" + id.String() + "/net"
			h.sandboxes[id] = have
		case have.Token != want.Token:
			return fmt.Errorf("it exists for token %s: %w", have.Token, runtime.ErrExists)
		case h.lost[id] && !h.empty(id):
			return fmt.Errorf("processes are left: %w", runtime.ErrExists)
		}
		delete(h.lost, id)
		s = have
		return nil
	})
	return s, err
}

// LoseSandbox ends the process of a sandbox whose containers share their processes, and so all of these.
func LoseSandbox(h *Host, id spec.Identity) { h.with(func() { endPause(h, id) }) }

// endPause expects h.mu held.
func endPause(h *Host, id spec.Identity) {
	if !h.sandboxes[id].SharedPIDs {
		return
	}
	h.lost[id] = true
	for _, c := range running(h, id) {
		h.kill(c)
	}
	killLeft(h, id)
}

// Sandboxes lists all sandboxes, sorted by identity; it needs no daemon.
func (h *Host) Sandboxes(ctx context.Context) (out []runtime.Sandbox, err error) {
	err = h.do(ctx, Call{Op: "Sandboxes"}, func() error {
		out = slices.Collect(maps.Values(h.sandboxes))
		return nil
	})
	slices.SortFunc(out, func(a, b runtime.Sandbox) int { return a.ID.Compare(b.ID) })
	return out, err
}

// RemoveSandbox forgets the sandbox, and refuses while a process of the identity
// runs.
func (h *Host) RemoveSandbox(ctx context.Context, id spec.Identity) error {
	return h.do(ctx, Call{Op: "RemoveSandbox", ID: id}, func() error {
		if !h.empty(id) {
			return fmt.Errorf("processes are left: %w", runtime.ErrExists)
		}
		delete(h.sandboxes, id)
		delete(h.lost, id)
		return nil
	})
}

func image(name string) runtime.Image {
	sum := sha256.Sum256([]byte(name))
	return runtime.Image{Name: name, Digest: "sha256:" + hex.EncodeToString(sum[:]), SizeBytes: int64(len(name))}
}

type link struct {
	netns string
	addr  netip.Addr
	ports []spec.HostPort
}

// network is the sandboxes of a host and their links.
type network struct {
	*machine
	sandboxes map[spec.Identity]runtime.Sandbox
	lost      map[spec.Identity]bool // those whose own process has ended
	links     map[spec.Identity]link
	dial      func(id spec.Identity, port uint16) (net.Conn, error) // nil: nothing listens
}

// OnDial lets f answer Dial of identities with a sandbox. nil: nothing listens.
func (n *network) OnDial(f func(id spec.Identity, port uint16) (net.Conn, error)) {
	n.with(func() { n.dial = f })
}

// Dial asks OnDial; it needs no daemon.
func (n *network) Dial(ctx context.Context, id spec.Identity, port uint16) (net.Conn, error) {
	var dial func(spec.Identity, uint16) (net.Conn, error)
	err := n.do(ctx, Call{Op: "Dial", ID: id}, func() error {
		dial = n.dial
		if _, there := n.sandboxes[id]; !there {
			return runtime.ErrNotRunning
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case dial == nil:
		return nil, syscall.ECONNREFUSED
	}
	return dial(id, port)
}

// Attach links a sandbox of this host; another namespace than one of
// EnsureSandbox is refused with ErrNotFound, an address in use with ErrExists, a port in
// use with ErrPortTaken.
func (n *network) Attach(ctx context.Context, id spec.Identity, netns string, addr netip.Addr, ports ...spec.HostPort) error {
	return n.do(ctx, Call{Op: "Attach", ID: id}, func() error {
		if s, ok := n.sandboxes[id]; !ok || s.NetNS != netns {
			return fmt.Errorf("namespace %q: %w", netns, runtime.ErrNotFound)
		}
		for other, l := range n.links {
			if other != id && l.addr == addr {
				return fmt.Errorf("%s is of %s: %w", addr, other, runtime.ErrExists)
			}
		}
		for other, l := range n.links {
			for _, theirs := range l.ports {
				if other != id && slices.ContainsFunc(ports, theirs.Meets) {
					n.links[id] = link{netns, addr, nil}
					return fmt.Errorf("%s leads to %s: %w", theirs, other, runtime.ErrPortTaken)
				}
			}
		}
		n.links[id] = link{netns, addr, ports}
		return nil
	})
}

// Detach removes the link.
func (n *network) Detach(ctx context.Context, id spec.Identity) error {
	return n.do(ctx, Call{Op: "Detach", ID: id}, func() error {
		delete(n.links, id)
		return nil
	})
}

// Attached lists the identities with a link, sorted.
func (n *network) Attached(ctx context.Context) (ids []spec.Identity, err error) {
	err = n.do(ctx, Call{Op: "Attached"}, func() error {
		ids = slices.SortedFunc(maps.Keys(n.links), spec.Identity.Compare)
		return nil
	})
	return ids, err
}

// Address returns the address of an attached identity.
func (n *network) Address(id spec.Identity) (netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l, ok := n.links[id]
	return l.addr, ok
}
