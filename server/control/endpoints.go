package control

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/spec"
)

// endpoints decides about the Endpoints and EndpointSlices of the apply. An address of the range of services would
// lead to another service, or in a circle.
func (d *draft) endpoints(o *manifest.Objects) error {
	inRange := func(ip string) bool {
		a, err := netip.ParseAddr(ip)
		return err == nil && d.addresses.cidr.IsValid() && d.addresses.cidr.Contains(a)
	}
	refuse := func(kind string, m *records.Meta, path, ip string) {
		d.refused = append(d.refused, o.Locate(kind, m.Namespace, m.Name, []manifest.Problem{{Path: path,
			What: fmt.Sprintf("%s is an address for services: their range is %s (--service-cidr of the server)", ip, d.addresses.cidr),
			Fix:  "write the address of one machine, or of a member"}})...)
	}
	for _, m := range o.Endpoints {
		now := &records.EndpointsRecord{Meta: records.MetaOf(m.Metadata), Subsets: m.Subsets}
		for i, s := range m.Subsets {
			for of, list := range map[string][]records.EndpointAddress{"addresses": s.Addresses, "notReadyAddresses": s.NotReadyAddresses} {
				for j, a := range list {
					if inRange(a.IP) {
						refuse("Endpoints", &now.Meta, fmt.Sprintf("subsets[%d].%s[%d].ip", i, of, j), a.IP)
					}
				}
			}
		}
		e, err := objectEdit(proto.KindEndpoints, d.stored, now, func(old *records.EndpointsRecord) bool { return sameJSON(old.Subsets, now.Subsets) },
			func(r *records.EndpointsRecord) any { return manifest.OfEndpoints(r) })
		if err != nil {
			return err
		}
		d.edits, d.after.endpoints = append(d.edits, e), append(d.after.endpoints, now)
	}
	for _, m := range o.Slices {
		now := &records.SliceRecord{Meta: records.MetaOf(m.Metadata), AddressType: m.AddressType, Endpoints: m.Endpoints, Ports: m.Ports}
		for i, one := range m.Endpoints {
			for j, ip := range one.Addresses {
				if inRange(ip) {
					refuse("EndpointSlice", &now.Meta, fmt.Sprintf("endpoints[%d].addresses[%d]", i, j), ip)
				}
			}
		}
		e, err := objectEdit(proto.KindSlice, d.stored, now, func(old *records.SliceRecord) bool {
			return sameJSON(old.Endpoints, now.Endpoints) && sameJSON(old.Ports, now.Ports) && old.AddressType == now.AddressType
		}, func(r *records.SliceRecord) any { return manifest.OfSlice(r) })
		if err != nil {
			return err
		}
		d.edits, d.after.slices = append(d.edits, e), append(d.after.slices, now)
	}
	return nil
}

// ledNowhere warns of Endpoints and EndpointSlices to which no Service leads. They are stored: in Kubernetes, too,
// the order in which they and the Service come does not matter.
func (a *projection) ledNowhere(v cache.View) (warnings []string) {
	say := func(kind string, m *records.Meta, service string) {
		s := a.service(v, m.Namespace, service)
		what := ""
		switch {
		case service == "":
			return // its manifest says so
		case s == nil:
			what = fmt.Sprintf("there is no Service %s; nothing leads to it until there is", service)
		case s.Spec.IsAlias():
			what = fmt.Sprintf("Service %s has type ExternalName; nothing leads to it", service)
		case len(s.Spec.Selector) > 0:
			what = fmt.Sprintf("Service %s has a selector, and leads to the members that this selects alone", service)
		default:
			return
		}
		warnings = append(warnings, fmt.Sprintf("%s %s/%s: %s", kind, m.Namespace, m.Name, what))
	}
	for _, r := range a.endpoints {
		say("Endpoints", &r.Meta, r.Name)
	}
	for _, r := range a.slices {
		say("EndpointSlice", &r.Meta, r.Service())
	}
	return warnings
}

// service is a Service as it will be; nil: there is none.
func (a *projection) service(v cache.View, ns spec.Namespace, name string) *records.ServiceRecord {
	for _, s := range a.services {
		if s.Namespace == ns && s.Name == name {
			return s
		}
	}
	return cache.FindService(v, ns, name)
}

// ports lists the ports of the endpoints that a Service without a selector will have; false: it has no endpoints.
func (a *projection) endpointPorts(v cache.View, s *records.ServiceRecord) (ports []records.EndpointPort, any bool) {
	own := cache.FindEndpoints(v, s.Namespace, s.Name)
	for _, r := range a.endpoints {
		if r.Namespace == s.Namespace && r.Name == s.Name {
			own = r
		}
	}
	if own != nil {
		for i := range own.Subsets {
			any, ports = true, append(ports, own.Subsets[i].Ports...)
		}
	}
	given := func(r *records.SliceRecord) bool {
		return slices.ContainsFunc(a.slices, func(n *records.SliceRecord) bool { return n.Namespace == r.Namespace && n.Name == r.Name })
	}
	for _, r := range slices.Concat(slices.DeleteFunc(cache.SlicesOf(v, s.Namespace, s.Name), given), a.slices) {
		if r.Namespace == s.Namespace && r.Service() == s.Name && len(r.Endpoints) > 0 {
			any, ports = true, append(ports, r.Ports...)
		}
	}
	return ports, any
}

// withoutEndpoints warns of what of a Service without a selector leads nowhere.
func (a *projection) withoutEndpoints(v cache.View, s *records.ServiceRecord) (warnings []string) {
	ports, any := a.endpointPorts(v, s)
	if !any {
		return []string{fmt.Sprintf("Service %s/%s: it has no selector, and there are no Endpoints or EndpointSlices of it; it leads nowhere until there are", s.Namespace, s.Name)}
	}
	for _, p := range s.Spec.Ports {
		same := func(e records.EndpointPort) bool {
			return e.Name == p.Name && cmp.Or(e.Protocol, "TCP") == cmp.Or(p.Protocol, "TCP")
		}
		if !slices.ContainsFunc(ports, same) {
			warnings = append(warnings, fmt.Sprintf("Service %s/%s: none of its endpoints has a port with the name %q and the protocol %s, to which port %d would lead",
				s.Namespace, s.Name, p.Name, cmp.Or(p.Protocol, "TCP"), p.Port))
		}
	}
	return warnings
}

// fromEndpoints reads the Endpoints that are stored, and derives those of all other Services, as Kubernetes'
// controller makes them.
func (s queries) fromEndpoints(ctx context.Context, q query) ([]item, error) {
	items, err := s.fromStore(ctx, q)
	if err != nil {
		return nil, err
	}
	type key struct {
		ns   spec.Namespace
		name string
	}
	stored := map[key]bool{}
	for _, i := range items {
		stored[key{i.ns(), i.name()}] = true
	}
	s.cfg.Cache.Look(func(v cache.View) {
		for service := range cache.AllServices(v) {
			wanted := (q.ns == "" || q.ns == service.Namespace) && (q.name == "" || q.name == service.Name)
			if !wanted || stored[key{service.Namespace, service.Name}] || service.Spec.IsAlias() {
				continue
			}
			items = append(items, showEndpoints(records.EndpointsRecord{
				Meta:    records.Meta{Namespace: service.Namespace, Name: service.Name, Labels: service.Labels},
				Subsets: subsetsOf(dispatch.EndpointsOf(v, service, s.cfg.About.GetDomain())),
			}))
		}
	})
	return items, nil
}

// subsetsOf puts endpoints together, those of one address first, and then addresses with the same ports.
func subsetsOf(list []records.Endpoint) (out []records.EndpointSubset) {
	ports := map[records.EndpointAddress][]records.EndpointPort{}
	var addresses []records.EndpointAddress
	for _, e := range list {
		a := records.EndpointAddress{IP: e.Address.String(), Hostname: e.Host, NodeName: string(e.Node)}
		if _, seen := ports[a]; !seen {
			addresses, ports[a] = append(addresses, a), nil
		}
		if e.Port != 0 {
			ports[a] = append(ports[a], records.EndpointPort{Name: e.PortName, Port: e.Port, Protocol: e.Protocol})
		}
	}
	for _, a := range addresses {
		at := slices.IndexFunc(out, func(s records.EndpointSubset) bool { return slices.Equal(s.Ports, ports[a]) })
		if at < 0 {
			at, out = len(out), append(out, records.EndpointSubset{Ports: ports[a]})
		}
		out[at].Addresses = append(out[at].Addresses, a)
	}
	return out
}

func showEndpoints(r records.EndpointsRecord) item {
	m := manifest.OfEndpoints(&r)
	return item{kind: proto.KindEndpoints, body: object{APIVersion: m.APIVersion, Kind: m.Kind, Subsets: m.Subsets, Metadata: showMeta(r.Meta)}}
}

func showSlice(r records.SliceRecord) item {
	m := manifest.OfSlice(&r)
	return item{kind: proto.KindSlice, body: object{APIVersion: m.APIVersion, Kind: m.Kind, Metadata: showMeta(r.Meta),
		AddressType: m.AddressType, Endpoints: m.Endpoints, Ports: m.Ports}}
}
