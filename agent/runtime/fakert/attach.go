package fakert

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

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
