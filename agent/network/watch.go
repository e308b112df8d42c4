package network

import (
	"context"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/notify"
)

// rewatch is the wait before a subscription that the kernel ended is made again.
const rewatch = 5 * time.Second

// Watch notifies changed when a link, an address or a route of the host was removed or
// a link went down, whoever did it; until ctx ends. It says nothing of what was added, for
// repairs add. Events may be lost: a caller that must be certain also looks from time to time.
func (n *Network) Watch(ctx context.Context, changed *notify.Signal) {
	for logged := false; ctx.Err() == nil; {
		err := n.watch(ctx, changed)
		if ctx.Err() != nil {
			return
		}
		if !logged {
			n.cfg.Logger.Warn("cannot watch host network, trying again", "err", err)
			logged = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(rewatch):
		}
	}
}

// watch is one subscription; it returns when all its channels are closed.
func (n *Network) watch(ctx context.Context, changed *notify.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	w, err := n.subscribe(ctx)
	defer w.drain()
	defer cancel()
	if err != nil {
		return err
	}
	for {
		var gone, ok bool
		var what string
		select {
		case u, open := <-w.links:
			what, ok, gone = "links", open, u.Header.Type == unix.RTM_DELLINK || u.IfInfomsg.Flags&unix.IFF_UP == 0 || n.lostProcess(u)
		case u, open := <-w.addrs:
			what, ok, gone = "addresses", open, !u.NewAddr
		case u, open := <-w.routes:
			what, ok, gone = "routes", open, u.Type == unix.RTM_DELROUTE
		}
		if !ok {
			return fmt.Errorf("the kernel ended the watch of %s", what)
		}
		if gone {
			changed.Notify()
		}
	}
}

// lostProcess reports whether the process of the WireGuard link ended: nobody sends what goes through it.
func (n *Network) lostProcess(u netlink.LinkUpdate) bool {
	return u.Link != nil && u.Link.Attrs().Name == n.wire.wireName() && u.IfInfomsg.Flags&unix.IFF_LOWER_UP == 0
}

// subscriptions are what the kernel says of the host's network.
type subscriptions struct {
	links  chan netlink.LinkUpdate
	addrs  chan netlink.AddrUpdate
	routes chan netlink.RouteUpdate
}

// drain returns once the library's goroutines have ended, as they do when the context of
// the subscriptions has, once nothing is received any more. One that was not opened is nil.
func (w subscriptions) drain() {
	drain(w.links)
	drain(w.addrs)
	drain(w.routes)
}

func drain[T any](c chan T) {
	if c == nil {
		return
	}
	for range c {
	}
}

// subscribe opens subscriptions that end with ctx; with an error, only some of them.
func (n *Network) subscribe(ctx context.Context) (w subscriptions, err error) {
	var at *netns.NsHandle
	if n.cfg.NetNS != "" {
		ns, err := netns.GetFromPath(n.cfg.NetNS)
		if err != nil {
			return w, fmt.Errorf("open the host's network namespace: %w", err)
		}
		defer ns.Close()
		at = &ns
	}
	links, addrs, routes := make(chan netlink.LinkUpdate), make(chan netlink.AddrUpdate), make(chan netlink.RouteUpdate)
	if err := netlink.LinkSubscribeWithOptions(links, ctx.Done(), netlink.LinkSubscribeOptions{Namespace: at}); err != nil {
		return w, fmt.Errorf("watch links: %w", err)
	}
	w.links = links
	if err := netlink.AddrSubscribeWithOptions(addrs, ctx.Done(), netlink.AddrSubscribeOptions{Namespace: at}); err != nil {
		return w, fmt.Errorf("watch addresses: %w", err)
	}
	w.addrs = addrs
	if err := netlink.RouteSubscribeWithOptions(routes, ctx.Done(), netlink.RouteSubscribeOptions{Namespace: at}); err != nil {
		return w, fmt.Errorf("watch routes: %w", err)
	}
	w.routes = routes
	return w, nil
}
