package network

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// rewatch is the wait before a subscription that the kernel ended is made again.
const rewatch = 5 * time.Second

// Watch sends on changed, which must have room for one, when a link, an address or
// a route of the host has gone or a link went down, whoever did it; until ctx ends.
// What came is no news: a repair brings it about itself. Events may be lost; who
// must be certain looks from time to time, too.
func (n *Network) Watch(ctx context.Context, changed chan<- struct{}) {
	for said := false; ctx.Err() == nil; {
		err := n.watch(ctx, changed)
		if ctx.Err() != nil {
			return
		}
		if !said {
			n.cfg.Logger.Warn("host's network not watched", "err", err)
			said = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(rewatch):
		}
	}
}

// watch is one subscription; it returns when all its channels are closed.
func (n *Network) watch(ctx context.Context, changed chan<- struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	links, addrs, routes, err := n.subscribe(ctx)
	defer func() { // the library's goroutines end when nobody keeps them
		cancel()
		for range links {
		}
		for range addrs {
		}
		for range routes {
		}
	}()
	if err != nil {
		return err
	}
	for {
		gone := false
		select {
		case u, ok := <-links:
			if !ok {
				return errors.New("the kernel ended the watch of links")
			}
			gone = u.Header.Type == unix.RTM_DELLINK || u.IfInfomsg.Flags&unix.IFF_UP == 0
		case u, ok := <-addrs:
			if !ok {
				return errors.New("the kernel ended the watch of addresses")
			}
			gone = !u.NewAddr
		case u, ok := <-routes:
			if !ok {
				return errors.New("the kernel ended the watch of routes")
			}
			gone = u.Type == unix.RTM_DELROUTE
		}
		if !gone {
			continue
		}
		select {
		case changed <- struct{}{}:
		default: // one is waiting already
		}
	}
}

// subscribe opens three subscriptions that end with ctx. A channel it returns is
// closed at their end, or already where there is none.
func (n *Network) subscribe(ctx context.Context) (links chan netlink.LinkUpdate, addrs chan netlink.AddrUpdate, routes chan netlink.RouteUpdate, err error) {
	var at *netns.NsHandle
	if n.cfg.NetNS != "" {
		ns, err := netns.GetFromPath(n.cfg.NetNS)
		if err != nil {
			return closed[netlink.LinkUpdate](), closed[netlink.AddrUpdate](), closed[netlink.RouteUpdate](), fmt.Errorf("open the host's network namespace: %w", err)
		}
		defer ns.Close()
		at = &ns
	}
	l, a, r := make(chan netlink.LinkUpdate), make(chan netlink.AddrUpdate), make(chan netlink.RouteUpdate)
	if err := netlink.LinkSubscribeWithOptions(l, ctx.Done(), netlink.LinkSubscribeOptions{Namespace: at}); err != nil {
		return closed[netlink.LinkUpdate](), closed[netlink.AddrUpdate](), closed[netlink.RouteUpdate](), fmt.Errorf("watch links: %w", err)
	}
	if err := netlink.AddrSubscribeWithOptions(a, ctx.Done(), netlink.AddrSubscribeOptions{Namespace: at}); err != nil {
		return l, closed[netlink.AddrUpdate](), closed[netlink.RouteUpdate](), fmt.Errorf("watch addresses: %w", err)
	}
	if err := netlink.RouteSubscribeWithOptions(r, ctx.Done(), netlink.RouteSubscribeOptions{Namespace: at}); err != nil {
		return l, a, closed[netlink.RouteUpdate](), fmt.Errorf("watch routes: %w", err)
	}
	return l, a, r, nil
}

func closed[T any]() chan T {
	c := make(chan T)
	close(c)
	return c
}
