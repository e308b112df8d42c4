package fakert

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

type link struct {
	netns string
	addr  netip.Addr
	ports []spec.HostPort
}

type scratchKey struct {
	id   spec.Identity
	name string
}

// Attach links a sandbox of this host; another namespace than one of
// EnsureSandbox is refused with ErrNotFound, an address in use with ErrExists, a port in
// use with ErrPortTaken.
func (h *Host) Attach(ctx context.Context, id spec.Identity, netns string, addr netip.Addr, ports ...spec.HostPort) error {
	if err := h.intercept(ctx, Call{Op: "Attach", ID: id}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.sandboxes[id]; !ok || s.NetNS != netns {
		return fmt.Errorf("attach %s: namespace %q: %w", id, netns, runtime.ErrNotFound)
	}
	for other, l := range h.links {
		if other != id && l.addr == addr {
			return fmt.Errorf("attach %s: %s is of %s: %w", id, addr, other, runtime.ErrExists)
		}
	}
	for other, l := range h.links {
		for _, theirs := range l.ports {
			if other != id && slices.ContainsFunc(ports, theirs.Meets) {
				h.links[id] = link{netns, addr, nil}
				return fmt.Errorf("attach %s: %s leads to %s: %w", id, theirs, other, runtime.ErrPortTaken)
			}
		}
	}
	h.links[id] = link{netns, addr, ports}
	return nil
}

// Detach removes the link.
func (h *Host) Detach(ctx context.Context, id spec.Identity) error {
	if err := h.intercept(ctx, Call{Op: "Detach", ID: id}); err != nil {
		return err
	}
	h.with(func() { delete(h.links, id) })
	return nil
}

// Attached lists the identities with a link, sorted.
func (h *Host) Attached(ctx context.Context) ([]spec.Identity, error) {
	if err := h.intercept(ctx, Call{Op: "Attached"}); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Keys(h.links), compareIdentity), nil
}

// Address returns the address of an attached identity.
func (h *Host) Address(id spec.Identity) (netip.Addr, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, ok := h.links[id]
	return l.addr, ok
}

// Ensure makes or checks a volume by its owner. The path exists only in name.
func (h *Host) Ensure(ctx context.Context, id spec.Identity, v records.MemberVolume, fresh bool, _ *int64) (string, error) {
	if err := h.intercept(ctx, Call{"Ensure", id, string(v.Claim)}); err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	path := placeOf(id, v.Claim)
	switch have, ok := h.volumes[path]; {
	case ok && have != v.ID:
		return "", fmt.Errorf("volume %s: it is of %s: %w", path, have, runtime.ErrForeign)
	case !ok && (!fresh || h.made[v.ID]):
		return "", fmt.Errorf("volume %s: %w", path, runtime.ErrAbsent)
	}
	h.volumes[path], h.made[v.ID] = v.ID, true
	return path, nil
}

// DropVolumes deletes the volumes of these claims of an identity, as a lost disk does.
func (h *Host) DropVolumes(id spec.Identity, claims ...spec.ClaimName) {
	h.with(func() {
		for _, c := range claims {
			delete(h.volumes, placeOf(id, c))
		}
	})
}

// Scratch makes a directory of one life in name. ErrExists: another token's stands.
func (h *Host) Scratch(ctx context.Context, s runtime.Scratch) (string, error) {
	if err := h.intercept(ctx, Call{"Scratch", s.ID, s.Name}); err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := scratchKey{s.ID, s.Name}
	if have, ok := h.scratch[key]; ok && have != s.Token {
		return "", fmt.Errorf("scratch %s of %s exists for token %s: %w", s.Name, s.ID, have, runtime.ErrExists)
	}
	h.scratch[key] = s.Token
	return fmt.Sprintf("/fake/scratch/%s/%s/%s", s.ID, s.Token, s.Name), nil
}

// SubPath mounts in name what stands beside a life's scratch.
func (h *Host) SubPath(ctx context.Context, s runtime.SubPath) (string, error) {
	if err := h.intercept(ctx, Call{"SubPath", s.ID, s.Container}); err != nil {
		return "", err
	}
	path := fmt.Sprintf("subpath/%s/%d", s.Container, s.Index)
	h.with(func() { h.scratch[scratchKey{s.ID, path}] = spec.Token{} })
	return fmt.Sprintf("/fake/%s/%s", s.ID, path), nil
}

// RemoveScratch forgets everything Scratch and SubPath made for the identity.
func (h *Host) RemoveScratch(ctx context.Context, id spec.Identity) error {
	if err := h.intercept(ctx, Call{Op: "RemoveScratch", ID: id}); err != nil {
		return err
	}
	h.with(func() {
		maps.DeleteFunc(h.scratch, func(k scratchKey, _ spec.Token) bool { return k.id == id })
	})
	return nil
}

// Clean reports whether no scratch of the identity is left.
func (h *Host) Clean(ctx context.Context, id spec.Identity) (bool, error) {
	if err := h.intercept(ctx, Call{Op: "Clean", ID: id}); err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.scratch {
		if k.id == id {
			return false, nil
		}
	}
	return true, nil
}
