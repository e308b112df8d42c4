package host

import (
	"cmp"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// leads has this host lead connections to addresses of services to their members, as snapshots say.
type leads struct {
	keeper[wantedServices]
	node spec.NodeName
	cidr func() string // the range of services' addresses; "": they have none
}

// wantedServices is what a host is to lead.
type wantedServices struct {
	rng  netip.Prefix
	list []network.Service
}

func (w *wantedServices) equal(o *wantedServices) bool {
	return w.rng == o.rng && slices.EqualFunc(w.list, o.list, func(a, b network.Service) bool {
		return a.Address == b.Address && a.Port == b.Port && a.Protocol == b.Protocol && a.Affinity == b.Affinity && slices.Equal(a.Endpoints, b.Endpoints)
	})
}

func newLeads(node spec.NodeName, cidr func() string, set func(netip.Prefix, []network.Service) error, log *slog.Logger) *leads {
	keep := func(w wantedServices) error { return set(w.rng, w.list) }
	return &leads{newKeeper(keep, (*wantedServices).equal, "addresses of services not led to their members", log), node, cidr}
}

// rng is the range of services' addresses; invalid: they have none.
func (l *leads) rng() netip.Prefix {
	rng, _ := netip.ParsePrefix(l.cidr())
	return rng
}

// update takes the newest snapshots of all sets; it does not block.
func (l *leads) update(snapshots []records.Snapshot) {
	now := wantedServices{rng: l.rng()}
	switch {
	case now.rng.IsValid():
	case l.last == nil:
		return // of a server that gives services no addresses
	default: // of one that gives none any more
		now.rng = l.last.rng
	}
	now.list = servicesOf(snapshots, l.node)
	l.offer(now)
}

// servicesOf are the ports of services' addresses, by address, port and protocol, with the members that
// they lead to on node. A service may select several sets: its members are those of all.
func servicesOf(snapshots []records.Snapshot, node spec.NodeName) []network.Service {
	type key struct {
		address  netip.Addr
		port     uint16
		protocol string
	}
	found := map[key]*network.Service{}
	for i := range snapshots {
		s := &snapshots[i]
		for j := range s.Names {
			n := &s.Names[j]
			if !n.Address.IsValid() {
				continue
			}
			for _, p := range n.Ports {
				members := endpoints(s, n, &p, node)
				keys := []key{{n.Address, uint16(p.Port), cmp.Or(p.Protocol, "TCP")}}
				for _, a := range n.Outside {
					keys = append(keys, key{a, keys[0].port, keys[0].protocol})
				}
				if p.NodePort != 0 {
					keys = append(keys, key{port: uint16(p.NodePort), protocol: keys[0].protocol})
				}
				for _, k := range keys {
					if found[k] == nil {
						found[k] = &network.Service{
							Address: k.address, Port: k.port, Protocol: k.protocol, Affinity: time.Duration(n.AffinitySeconds) * time.Second,
						}
					}
					found[k].Endpoints = append(found[k].Endpoints, members...)
				}
			}
		}
	}
	list := make([]network.Service, 0, len(found))
	for _, s := range found {
		slices.SortFunc(s.Endpoints, netip.AddrPort.Compare)
		s.Endpoints = slices.Compact(s.Endpoints)
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b network.Service) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
	})
	return list
}

// endpoints are where a port of a service leads to on node.
func endpoints(s *records.Snapshot, n *records.DNSName, p *spec.ServicePort, node spec.NodeName) (out []netip.AddrPort) {
	for _, e := range s.EndpointsOf(n, p) {
		if !n.OnNode || e.Node == node {
			out = append(out, netip.AddrPortFrom(e.Address, uint16(e.Port)))
		}
	}
	return out
}
