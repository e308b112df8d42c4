package network

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/stead-project/stead/internal/notify"
)

func TestWhatGoesIsNoticedAndWhatARepairDoesIsNot(t *testing.T) {
	n, h := host(t, nil)
	must(t, n.Setup(t.Context()))
	a, addrA := attach(t, n, 0)
	hh := handle(t, h)

	ctx, cancel := context.WithCancel(t.Context())
	changed := notify.New()
	var group sync.WaitGroup
	group.Go(func() { n.Watch(ctx, changed) })
	defer group.Wait() // it ends with ctx
	defer cancel()
	// The watch stands once it sees something go.
	lo, err := hh.LinkByName("lo")
	must(t, err)
	probe := &netlink.Addr{IPNet: hostPrefix(netip.MustParseAddr("192.0.2.1"))}
	for begun := false; !begun; {
		must(t, hh.AddrAdd(lo, probe))
		must(t, hh.AddrDel(lo, probe))
		select {
		case <-changed.C():
			begun = true
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("nothing was seen to go")
		}
	}
	quiet := func(what string) {
		t.Helper()
		for drained := false; !drained; { // what went before
			select {
			case <-changed.C():
			case <-time.After(2 * time.Second):
				drained = true
			}
		}
		must(t, n.Repair(t.Context(), []Assignment{{ID: member(0), NetNS: a, Address: addrA}}))
		select {
		case <-changed.C():
			t.Errorf("%s: a repair wakes the next one", what)
		case <-time.After(200 * time.Millisecond):
		}
	}
	quiet("at rest")
	for name, harm := range map[string]func(){
		"a route":    func() { must(t, hh.RouteDel(n.unreachable())) },
		"an address": func() { must(t, hh.AddrDel(lo, n.gateway())) },
		"a link": func() {
			l, err := hh.LinkByName(n.linkName(member(0)))
			must(t, err)
			must(t, hh.LinkSetDown(l))
		},
	} {
		harm()
		select {
		case <-changed.C():
		case <-time.After(time.Minute):
			t.Errorf("nobody noticed that %s went", name)
		}
		must(t, n.Repair(t.Context(), []Assignment{{ID: member(0), NetNS: a, Address: addrA}}))
		quiet(name)
	}
}
