package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Detach removes the identity's host ports, its link and with it its route; see
// runtime.Network.
// It waits at most 5 s for the kernel.
func (n *Network) Detach(ctx context.Context, id spec.Identity) error {
	h, err := n.host()
	if err != nil {
		return fmt.Errorf("detach %s: %w", id, err)
	}
	defer h.Close()
	err = n.nat.unpublish(id) // before the link, by which the next process knows of them
	if err == nil {
		var link netlink.Link
		link, err = n.links.find(h, id)
		if err == nil && link != nil {
			err = remove(ctx, h, link)
		}
	}
	if err != nil {
		return fmt.Errorf("detach %s: %w", id, err)
	}
	return nil
}

// remove deletes a link and returns when it and its routes are gone.
func remove(ctx context.Context, h *netlink.Handle, link netlink.Link) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	attrs := link.Attrs()
	if err := h.LinkDel(link); err != nil && !isGone(err) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete link %s: %w", attrs.Name, err)
	}
	for {
		left, err := routes(h, attrs.Index)
		if err != nil {
			return err
		}
		now, err := h.LinkByName(attrs.Name)
		if err != nil && !isGone(err) {
			return fmt.Errorf("find link %s: %w", attrs.Name, err)
		}
		if len(left) == 0 && (err != nil || now.Attrs().Index != attrs.Index) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("link %s is still there: %w", attrs.Name, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// Attached lists the identities that have a link on this host, sorted.
func (n *Network) Attached(_ context.Context) ([]spec.Identity, error) {
	h, err := n.host()
	if err != nil {
		return nil, fmt.Errorf("list attached members: %w", err)
	}
	defer h.Close()
	all, err := links(h)
	if err != nil {
		return nil, fmt.Errorf("list attached members: %w", err)
	}
	var ids []spec.Identity
	for _, link := range all {
		if id, ours := n.identityOf(link.Attrs().Alias); ours {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b spec.Identity) int { return strings.Compare(a.String(), b.String()) })
	return ids, nil
}
