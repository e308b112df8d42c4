package control

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// unled warns, in one line, of connected nodes whose agents are too old to lead the addresses of the
// services of this apply.
func (d *draft) unled(v cache.View) []string {
	var addressed []*records.ServiceRecord
	for _, s := range d.after.services {
		if s.Address.IsValid() {
			addressed = append(addressed, s)
		}
	}
	var old []spec.NodeName
	for _, n := range d.cfg.Planner.Nodes(v) {
		if n.Connected() && n.Facts != nil && !n.Facts.LeadsServices() {
			old = append(old, n.Node.Name)
		}
	}
	if len(addressed) == 0 || len(old) == 0 {
		return nil
	}
	first := addressed[0]
	which := fmt.Sprintf("Service %s/%s: its address", first.Namespace, first.Name)
	if more := len(addressed) - 1; more > 0 {
		which = fmt.Sprintf("Service %s/%s and %d more: their addresses", first.Namespace, first.Name, more)
	}
	names := place.Names(old[:min(len(old), place.MostNamed)])
	if more := len(old) - place.MostNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return []string{fmt.Sprintf("%s cannot be reached from node %s, where the agent is too old to lead Services; upgrade stead there", which, names)}
}

// service decides about one service of the apply, and about its address.
func (d *draft) service(m spec.Service, o *manifest.Objects) error {
	type record = records.ServiceRecord
	key := store.ServiceKey(m.Metadata.Namespace, m.Metadata.Name)
	old, err := before[record](d.stored[key])
	if err != nil {
		return err
	}
	now := &record{Meta: records.MetaOf(m.Metadata), Spec: m.Spec}
	also, problem := d.address(old, now)
	ports, problem2 := d.nodePorts(old, now, o)
	outside, problem3 := d.outside(old, now)
	for _, p := range []*manifest.Problem{problem, problem2, problem3} {
		if p != nil {
			d.refused = append(d.refused, o.Locate("Service", now.Namespace, now.Name, []manifest.Problem{*p})...)
		}
	}
	e, err := objectEdit(proto.KindService, d.stored, now, func(old *record) bool {
		return sameJSON(old.Spec, now.Spec) && old.Address == now.Address && old.LoadBalancer == now.LoadBalancer
	}, func(r *record) any { return manifest.OfService(r) })
	if err != nil {
		return err
	}
	e.also = store.Txn{If: slices.Concat(also.If, ports.If, outside.If), Then: slices.Concat(also.Then, ports.Then, outside.Then)}
	if old != nil && now.Address.IsValid() && !old.Address.IsValid() {
		e.applied.Effects = []string{fmt.Sprintf(
			"gets the address %s: its name resolves to it from now on, and no longer to the members' addresses", now.Address)}
	}
	if had := old != nil && old.LoadBalancer.IsValid(); now.LoadBalancer.IsValid() && !(had && old.LoadBalancer == now.LoadBalancer) {
		e.applied.Effects = append(e.applied.Effects, fmt.Sprintf("gets the address %s for clients outside", now.LoadBalancer))
	}
	d.edits = append(d.edits, e)
	d.after.services = append(d.after.services, now)
	return nil
}

// address gives now, which replaces old (nil: it is new), the address that it keeps or gets, and returns
// what is to be written for it. What a manifest must not change is Kubernetes' rule: a service keeps
// its address, or that it has none, as long as it exists.
func (d *draft) address(old, now *records.ServiceRecord) (also store.Txn, problem *manifest.Problem) {
	fixed, headless := now.Spec.FixedIP(), now.Spec.Headless()
	if !headless {
		now.Spec.ClusterIP = ""
	}
	switch {
	case now.Spec.IsAlias(): // Kubernetes takes the address, or None, from it
		if old != nil {
			d.cfg.Cache.Look(func(v cache.View) { also = restAddress(v, old.Address, old) })
		}
		return also, nil
	case old != nil && old.Spec.Headless():
		now.Spec.ClusterIP = old.Spec.ClusterIP
		return also, d.staysHeadless(now, fixed, headless)
	case old != nil && old.Address.IsValid():
		now.Address = old.Address
		if headless || fixed.IsValid() && fixed != old.Address {
			to := "None"
			if !headless {
				to = fixed.String()
			}
			return also, &manifest.Problem{Path: "spec.clusterIP", What: fmt.Sprintf("must not change from %s to %s", old.Address, to),
				Fix: fmt.Sprintf("leave it out or write %s, or delete the Service first", old.Address)}
		}
		return also, nil
	case headless || !d.addresses.cidr.IsValid():
		return also, nil
	}
	d.cfg.Cache.Look(func(v cache.View) { also, problem = d.giveAddress(v, now, fixed) })
	return also, problem
}

// restAddress has an address of a service that loses it begin to rest.
func restAddress(v cache.View, a netip.Addr, s *records.ServiceRecord) (also store.Txn) {
	held := cache.ServiceAddresses(v)[a]
	if held == nil || held.Namespace != s.Namespace || held.Name != s.Name {
		return also
	}
	freed, key := *held, store.ServiceAddressKey(a)
	freed.Freed = true
	return store.Txn{If: []store.Compare{v.Seen(key)}, Then: []store.Op{store.Put(key, store.Encode(freed))}}
}

// staysHeadless is what is wrong with a service that is headless and, by its manifest, would not be.
func (d *draft) staysHeadless(now *records.ServiceRecord, fixed netip.Addr, headless bool) *manifest.Problem {
	switch {
	case fixed.IsValid():
		return &manifest.Problem{Path: "spec.clusterIP", What: fmt.Sprintf("must not change from None to %s", fixed),
			Fix: "write None, or delete the Service first"}
	case now.Spec.Type != "ClusterIP":
		return &manifest.Problem{Path: "spec.type", What: fmt.Sprintf("%s does not go with clusterIP None, which stays while the Service exists", now.Spec.Type),
			Fix: "write type: ClusterIP, or delete the Service first"}
	case !headless:
		d.warnings = append(d.warnings, fmt.Sprintf(
			"Service %s/%s: clusterIP stays None, as in Kubernetes; write it, or delete the Service first to give it an address", now.Namespace, now.Name))
	}
	return nil
}

// giveAddress gives a service its first address: the one that its manifest writes, or (zero) any.
func (d *draft) giveAddress(v cache.View, now *records.ServiceRecord, fixed netip.Addr) (also store.Txn, problem *manifest.Problem) {
	d.addresses.look(v)
	taken := d.takenAddresses()
	if fixed.IsValid() {
		problem = d.addresses.fixed(v, fixed, now, taken)
	} else if a, ok := d.addresses.choose(v, now.Namespace, now.Name, taken); ok {
		fixed = a
	} else {
		problem = &manifest.Problem{Path: "spec.clusterIP", What: fmt.Sprintf("no address of %s is free: freed ones rest for %s", d.addresses.cidr, serviceRest),
			Fix: "write clusterIP: None, or delete Services that are not needed"}
	}
	if problem != nil {
		return also, problem
	}
	now.Address = fixed
	key := store.ServiceAddressKey(now.Address)
	also.If = []store.Compare{v.Seen(key)}
	also.Then = []store.Op{store.Put(key, store.Encode(records.ServiceAddress{Address: now.Address, Namespace: now.Namespace, Name: now.Name}))}
	return also, nil
}
