package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/spec"
)

// Detach removes the identity's host ports, its link and with it its route; see
// runtime.Network.
// It waits at most 5 s for the kernel.
func (n *Network) Detach(ctx context.Context, id spec.Identity) (err error) {
	defer wrap.Error(&err, "detach %s", id)
	h, err := n.host()
	if err != nil {
		return err
	}
	defer h.Close()
	if err := n.nat.unpublish(id); err != nil { // before the link, by which the next process knows of them
		return err
	}
	link, err := n.links.find(h, id)
	if err != nil || link == nil {
		return err
	}
	return remove(ctx, h, link)
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
func (n *Network) Attached(_ context.Context) (ids []spec.Identity, err error) {
	defer wrap.Error(&err, "list attached members")
	h, err := n.host()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	all, err := links(h)
	for _, link := range all {
		if id, ours := n.identityOf(link.Attrs().Alias); ours {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b spec.Identity) int { return strings.Compare(a.String(), b.String()) })
	return ids, err
}
