package control

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

// outside gives now, which replaces old (nil: it is new), its addresses for clients outside: one of the ranges for load
// balancers, which it keeps, and those that it writes as externalIPs. It returns what is to be written.
func (d *draft) outside(old, now *records.ServiceRecord) (also store.Txn, problem *manifest.Problem) {
	d.cfg.Cache.Look(func(v cache.View) {
		d.addresses.look(v)
		taken := d.takenAddresses()
		now.LoadBalancer, problem = d.loadBalancer(v, old, now, taken)
		if problem == nil {
			problem = d.externalIPs(v, now, taken)
		}
		if problem == nil {
			also = outsideWrites(v, old, now)
		}
	})
	return also, problem
}

// takenAddresses are those of the services of this apply that were decided about.
func (d *draft) takenAddresses() map[netip.Addr]bool {
	taken := map[netip.Addr]bool{}
	for _, s := range d.after.services {
		for _, a := range s.Addresses() {
			taken[a] = true
		}
	}
	return taken
}

// loadBalancer is the address of type LoadBalancer: the one that is written, the one that the service has, or any;
// invalid: it gets none.
func (d *draft) loadBalancer(v cache.View, old, now *records.ServiceRecord, taken map[netip.Addr]bool) (a netip.Addr, problem *manifest.Problem) {
	const path = "spec.loadBalancerIP"
	if now.Spec.Type != "LoadBalancer" || len(d.cfg.LoadBalancers) == 0 {
		return a, nil
	}
	if fixed, err := netip.ParseAddr(now.Spec.LoadBalancerIP); err == nil {
		if !containsAddress(d.cfg.LoadBalancers, fixed) {
			return a, &manifest.Problem{Path: path, What: fmt.Sprintf("%s is not an address for load balancers: their ranges are %s (--load-balancer-cidr of the servers)", fixed, rangesText(d.cfg.LoadBalancers)),
				Fix: "leave it out, or write an address of the ranges"}
		}
		return fixed, d.addresses.held(v, path, fixed, now, taken)
	}
	if old != nil && old.LoadBalancer.IsValid() {
		return old.LoadBalancer, nil
	}
	for _, cidr := range d.cfg.LoadBalancers {
		if a, ok := d.addresses.of(cidr).choose(v, now.Namespace, now.Name, taken); ok {
			return a, nil
		}
	}
	return a, &manifest.Problem{Path: "spec.type", What: fmt.Sprintf("no address of %s is free: freed ones rest for %s", rangesText(d.cfg.LoadBalancers), serviceRest),
		Fix: "write type: NodePort, delete Services that are not needed, or start the servers with another --load-balancer-cidr, too"}
}

// externalIPs refuses addresses that are not the operator's to give, or another service's. In Kubernetes whoever may
// write Services takes any address this way, also that of a machine that others reach (CVE-2020-8554).
func (d *draft) externalIPs(v cache.View, now *records.ServiceRecord, taken map[netip.Addr]bool) *manifest.Problem {
	for i, text := range now.Spec.ExternalIPs {
		a, _ := netip.ParseAddr(text) // it was checked
		at := fmt.Sprintf("spec.externalIPs[%d]", i)
		if !containsAddress(d.cfg.ExternalIPs, a) {
			what := "the operator lets Services have no addresses of this kind"
			if len(d.cfg.ExternalIPs) > 0 {
				what = fmt.Sprintf("the operator lets Services have those of %s alone", rangesText(d.cfg.ExternalIPs))
			}
			return &manifest.Problem{Path: at, What: what, Fix: fmt.Sprintf("start the servers with --external-ip-cidr %s/32, or remove it", a)}
		}
		if problem := d.addresses.held(v, at, a, now, taken); problem != nil {
			return problem
		}
	}
	return nil
}

// outsideWrites takes the addresses that a service has now, and has those rest that it had.
func outsideWrites(v cache.View, old, now *records.ServiceRecord) (also store.Txn) {
	var had []netip.Addr
	if old != nil {
		had = old.Outside()
	}
	has := now.Outside()
	for _, a := range has {
		if !slices.Contains(had, a) {
			key := store.ServiceAddressKey(a)
			also.If = append(also.If, v.Seen(key))
			also.Then = append(also.Then, store.Put(key, store.Encode(records.ServiceAddress{Address: a, Namespace: now.Namespace, Name: now.Name})))
		}
	}
	for _, a := range had {
		if !slices.Contains(has, a) {
			rest := restAddress(v, a, now)
			also.If, also.Then = append(also.If, rest.If...), append(also.Then, rest.Then...)
		}
	}
	return also
}

func containsAddress(ranges []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a) })
}

func rangesText(ranges []netip.Prefix) string {
	return listed(ranges, netip.Prefix.String)
}
