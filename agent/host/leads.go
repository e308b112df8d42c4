package host

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/network"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// leads has this host lead connections to addresses of services to their members, as snapshots say, and say how many of
// them are here.
type leads struct {
	keeper[wantedServices]
	node   spec.NodeName
	cidr   func() string // the range of services' addresses; "": they have none
	health *healthPorts
}

// wantedServices is what a host is to lead.
type wantedServices struct {
	rng    netip.Prefix
	list   []network.Service
	health []serviceHealth
}

func (w *wantedServices) equal(o *wantedServices) bool {
	return w.rng == o.rng && slices.Equal(w.health, o.health) && slices.EqualFunc(w.list, o.list, func(a, b network.Service) bool {
		return a.Address == b.Address && a.Port == b.Port && a.Protocol == b.Protocol && a.Affinity == b.Affinity && slices.Equal(a.Endpoints, b.Endpoints) &&
			a.OnlyNear == b.OnlyNear && slices.Equal(a.Near, b.Near) && slices.Equal(a.Sources, b.Sources)
	})
}

func newLeads(node spec.NodeName, cidr func() string, set func(netip.Prefix, []network.Service) error, log *slog.Logger) *leads {
	health := newHealthPorts(log)
	keep := func(w wantedServices) error {
		err := set(w.rng, w.list)
		health.set(w.health, err == nil)
		return err
	}
	return &leads{newKeeper(keep, (*wantedServices).equal, "addresses of services not led to their members", log), node, cidr, health}
}

// run keeps the host at the newest until ctx ends.
func (l *leads) run(ctx context.Context) error {
	defer l.health.close()
	return l.keeper.run(ctx)
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
	now.list, now.health = servicesOf(snapshots, l.node), healthOf(snapshots, l.node)
	l.offer(now)
}

// servicesOf are the ports of services' addresses, by address, port and protocol, with the members that
// they lead to on node. A service may select several sets: its members are those of all.
func servicesOf(snapshots []records.Snapshot, node spec.NodeName) []network.Service {
	found := foundServices{}
	for i := range snapshots {
		s := &snapshots[i]
		for j := range s.Names {
			if n := &s.Names[j]; n.Address.IsValid() {
				for k := range n.Ports {
					found.add(s, n, &n.Ports[k], node)
				}
			}
		}
	}
	list := make([]network.Service, 0, len(found))
	for _, s := range found {
		for _, endpoints := range []*[]netip.AddrPort{&s.Endpoints, &s.Near} {
			slices.SortFunc(*endpoints, netip.AddrPort.Compare)
			*endpoints = slices.Compact(*endpoints)
		}
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b network.Service) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
	})
	return list
}

// serviceKey is what packets to a service have in common; the address of a port of the nodes is invalid.
type serviceKey struct {
	address  netip.Addr
	port     uint16
	protocol string
}

type foundServices map[serviceKey]*network.Service

// add adds where a port of a service leads: its own address, those for clients outside, and the port of the nodes.
// internalTrafficPolicy is about the first alone, and externalTrafficPolicy about the others, as in Kubernetes.
func (f foundServices) add(s *records.Snapshot, n *records.DNSName, p *spec.ServicePort, node spec.NodeName) {
	var all, near []netip.AddrPort
	for _, e := range s.EndpointsOf(n, p) {
		at := netip.AddrPortFrom(e.Address, uint16(e.Port))
		all = append(all, at)
		if e.Node == node {
			near = append(near, at)
		}
	}
	port, protocol := uint16(p.Port), cmp.Or(p.Protocol, "TCP")
	own := f.at(serviceKey{n.Address, port, protocol}, n)
	if n.OnNode {
		own.Endpoints = append(own.Endpoints, near...)
	} else {
		own.Endpoints = append(own.Endpoints, all...)
	}
	var outside []*network.Service
	for _, a := range n.Outside {
		service := f.at(serviceKey{a, port, protocol}, n)
		if a == n.Balancer {
			service.Sources = n.Sources
		}
		outside = append(outside, service)
	}
	if p.NodePort != 0 {
		outside = append(outside, f.at(serviceKey{port: uint16(p.NodePort), protocol: protocol}, n))
	}
	for _, service := range outside {
		service.Endpoints = append(service.Endpoints, all...)
		if n.OutsideOnNode {
			service.OnlyNear, service.Near = true, append(service.Near, near...)
		}
	}
}

func (f foundServices) at(key serviceKey, n *records.DNSName) *network.Service {
	if f[key] == nil {
		f[key] = &network.Service{Address: key.address, Port: key.port, Protocol: key.protocol, Affinity: time.Duration(n.AffinitySeconds) * time.Second}
	}
	return f[key]
}
