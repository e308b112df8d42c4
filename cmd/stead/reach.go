package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// reacher leads members' addresses to the hosts where they are, as pictures tell.
type reacher struct {
	node spec.NodeName
	net  *network.Network
	log  *slog.Logger
	// The newest that is not done yet; each holds one.
	told  chan map[netip.Addr]netip.Addr
	nodes chan []netip.Addr

	unknown map[spec.NodeName]bool // said to have no address; see's alone
}

func newReacher(node spec.NodeName, net *network.Network, log *slog.Logger) *reacher {
	return &reacher{
		node: node, net: net, log: log, unknown: map[spec.NodeName]bool{},
		told: make(chan map[netip.Addr]netip.Addr, 1), nodes: make(chan []netip.Addr, 1),
	}
}

// see takes all sets as last told; it does not block.
func (r *reacher) see(pictures []records.Snapshot) {
	members := map[netip.Addr]netip.Addr{}
	for i := range pictures {
		for _, p := range pictures[i].Peers {
			switch {
			case p.Node == "" || p.Node == r.node:
			case !p.Host.IsValid():
				if !r.unknown[p.Node] {
					r.log.Warn("host not reached: it does not say its address; start its agent with --address", "node", string(p.Node))
				}
				r.unknown[p.Node] = true
			default:
				members[p.Address] = p.Host
				delete(r.unknown, p.Node)
			}
		}
	}
	select {
	case <-r.told: // older
	default:
	}
	r.told <- members
}

// admit takes the addresses of all nodes; it does not block.
func (r *reacher) admit(nodes []netip.Addr) {
	select {
	case <-r.nodes: // older
	default:
	}
	r.nodes <- nodes
}

// run does as told until ctx ends. What fails is tried again by the network's repair.
func (r *reacher) run(ctx context.Context) error {
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case nodes := <-r.nodes:
			if err := r.net.Admit(nodes); err != nil {
				r.log.Warn("tunnel not closed to strangers", "err", err)
			}
		case members := <-r.told:
			err := r.net.Reach(ctx, members)
			if err == nil {
				said = ""
			} else if text := err.Error(); text != said && ctx.Err() == nil {
				said = text
				r.log.Warn("members elsewhere not reached", "err", err)
			}
		}
	}
}

// address is that of this host for other hosts: the one that was given, or the one that
// its routes tell; "" when they leave a choice.
func (o *hostOptions) address() (string, error) {
	if o.Address == "" {
		a, err := network.HostAddress()
		if err != nil || !a.IsValid() {
			return "", err
		}
		return a.String(), nil
	}
	if a, err := netip.ParseAddr(o.Address); err != nil || !a.Is4() {
		return "", usageError{fmt.Errorf("--address %q is no IPv4 address", o.Address)}
	}
	return o.Address, nil
}

// dnsListen are the addresses of --dns-listen; port 53 unless said.
func (o *hostOptions) dnsListen() (list []netip.AddrPort, err error) {
	for _, text := range o.DNSListen {
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return nil, usageError{fmt.Errorf("--dns-listen %q is no ADDRESS or ADDRESS:PORT", text)}
			}
			at = netip.AddrPortFrom(addr, 53)
		}
		list = append(list, at)
	}
	return list, nil
}
