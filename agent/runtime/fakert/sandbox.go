package fakert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// EnsureImage makes an image present as OnPull says. Never does not pull.
func (h *Host) EnsureImage(ctx context.Context, ref, policy string) (runtime.Image, error) {
	if err := h.enter(ctx, Call{Op: "EnsureImage", Name: ref}); err != nil {
		return runtime.Image{}, err
	}
	h.mu.Lock()
	img, ok := h.images[ref]
	pull := h.script.image
	h.mu.Unlock()
	if ok && policy != spec.PullAlways {
		return img, nil
	}
	if policy == spec.PullNever {
		return runtime.Image{}, fmt.Errorf("image %q: %w", ref, runtime.ErrImageMissing)
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
	if err := h.enter(ctx, Call{Op: "LoadImage"}); err != nil {
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
func (h *Host) Images(ctx context.Context) ([]runtime.Image, error) {
	if err := h.enter(ctx, Call{Op: "Images"}); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]runtime.Image, 0, len(h.images))
	for _, name := range slices.Sorted(maps.Keys(h.images)) {
		out = append(out, h.images[name])
	}
	return out, nil
}

// EnsureSandbox makes the sandbox of a life; it needs no daemon.
func (h *Host) EnsureSandbox(ctx context.Context, id spec.Identity, token spec.Token, hostname string) (runtime.Sandbox, error) {
	if err := h.intercept(ctx, Call{Op: "EnsureSandbox", ID: id}); err != nil {
		return runtime.Sandbox{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.sandboxes[id]; ok {
		if s.Token != token {
			return runtime.Sandbox{}, fmt.Errorf("sandbox of %s exists for token %s: %w", id, s.Token, runtime.ErrExists)
		}
		return s, nil
	}
	s := runtime.Sandbox{ID: id, Token: token, NetNS: "/fake/ns/" + id.String() + "/net", Hostname: hostname}
	h.sandboxes[id] = s
	return s, nil
}

// Sandboxes lists all sandboxes, sorted by identity; it needs no daemon.
func (h *Host) Sandboxes(ctx context.Context) ([]runtime.Sandbox, error) {
	if err := h.intercept(ctx, Call{Op: "Sandboxes"}); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	out := slices.Collect(maps.Values(h.sandboxes))
	slices.SortFunc(out, func(a, b runtime.Sandbox) int { return a.ID.Compare(b.ID) })
	return out, nil
}

// RemoveSandbox forgets the sandbox, and refuses while a process of the identity
// runs.
func (h *Host) RemoveSandbox(ctx context.Context, id spec.Identity) error {
	if err := h.intercept(ctx, Call{Op: "RemoveSandbox", ID: id}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.empty(id) {
		return fmt.Errorf("remove sandbox of %s: processes are left: %w", id, runtime.ErrExists)
	}
	delete(h.sandboxes, id)
	return nil
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
	links     map[spec.Identity]link
}

// Attach links a sandbox of this host; another namespace than one of
// EnsureSandbox is refused with ErrNotFound, an address in use with ErrExists, a port in
// use with ErrPortTaken.
func (n *network) Attach(ctx context.Context, id spec.Identity, netns string, addr netip.Addr, ports ...spec.HostPort) error {
	if err := n.intercept(ctx, Call{Op: "Attach", ID: id}); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if s, ok := n.sandboxes[id]; !ok || s.NetNS != netns {
		return fmt.Errorf("attach %s: namespace %q: %w", id, netns, runtime.ErrNotFound)
	}
	for other, l := range n.links {
		if other != id && l.addr == addr {
			return fmt.Errorf("attach %s: %s is of %s: %w", id, addr, other, runtime.ErrExists)
		}
	}
	for other, l := range n.links {
		for _, theirs := range l.ports {
			if other != id && slices.ContainsFunc(ports, theirs.Meets) {
				n.links[id] = link{netns, addr, nil}
				return fmt.Errorf("attach %s: %s leads to %s: %w", id, theirs, other, runtime.ErrPortTaken)
			}
		}
	}
	n.links[id] = link{netns, addr, ports}
	return nil
}

// Detach removes the link.
func (n *network) Detach(ctx context.Context, id spec.Identity) error {
	if err := n.intercept(ctx, Call{Op: "Detach", ID: id}); err != nil {
		return err
	}
	n.with(func() { delete(n.links, id) })
	return nil
}

// Attached lists the identities with a link, sorted.
func (n *network) Attached(ctx context.Context) ([]spec.Identity, error) {
	if err := n.intercept(ctx, Call{Op: "Attached"}); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.SortedFunc(maps.Keys(n.links), spec.Identity.Compare), nil
}

// Address returns the address of an attached identity.
func (n *network) Address(id spec.Identity) (netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l, ok := n.links[id]
	return l.addr, ok
}
