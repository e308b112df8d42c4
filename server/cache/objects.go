package cache

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// applyObject takes over one change of what users name in a namespace. A budget may concern any
// set of it.
func (s *state) applyObject(kind, rest string, ev store.Event, ch *Changes) error {
	namespace, name, _ := strings.Cut(rest, "/")
	ns := spec.Namespace(namespace)
	switch kind {
	case store.KindService:
		ch.Services[ns] = true
		return keepWithin(s, s.services, ns, name, ev, func(r *records.ServiceRecord) string { return store.ServiceKey(r.Namespace, r.Name) })
	case store.KindEndpoints:
		ch.Services[ns] = true
		return keepWithin(s, s.endpoints, ns, name, ev, func(r *records.EndpointsRecord) string { return store.EndpointsKey(r.Namespace, r.Name) })
	case store.KindSlice:
		ch.Services[ns] = true
		return keepWithin(s, s.slices, ns, name, ev, func(r *records.SliceRecord) string { return store.SliceKey(r.Namespace, r.Name) })
	case store.KindNetworkPolicy:
		ch.Policies[ns] = true
		s.noteSetsIn(ns, ch)
		return keepWithin(s, s.policies, ns, name, ev, func(r *records.NetworkPolicyRecord) string { return store.NetworkPolicyKey(r.Namespace, r.Name) })
	case store.KindQuota:
		return keepWithin(s, s.quotas, ns, name, ev, func(r *records.QuotaRecord) string { return store.QuotaKey(r.Namespace, r.Name) })
	case store.KindBudget:
		s.noteSetsIn(ns, ch)
		return keepWithin(s, s.budgets, ns, name, ev, func(r *records.BudgetRecord) string { return store.BudgetKey(r.Namespace, r.Name) })
	case store.KindClaim:
		ch.Sets[spec.ClaimIdentity(ns, name).Ref()] = true
		s.noteClaim(ns, name, ch)
		return keepWithin(s, s.claims, ns, name, ev, func(r *records.ClaimRecord) string { return store.ClaimKey(r.Namespace, r.Name) })
	case store.KindConfig:
		ch.files = true
		return keep(s, s.configs, ev.Key, ev, func(r *records.ConfigRecord) string { return store.ConfigKey(r.Namespace, r.Name) })
	default:
		ch.files = true
		return keep(s, s.secrets, ev.Key, ev, func(r *records.SecretRecord) string { return store.SecretKey(r.Namespace, r.Name) })
	}
}

// noteSetsIn notes that something moved that may concern any set of a namespace.
func (s *state) noteSetsIn(ns spec.Namespace, ch *Changes) {
	for ref := range s.sets {
		if ref.Namespace == ns {
			ch.Sets[ref] = true
		}
	}
}

// keepWithin is keep in the map of a namespace, which is there as long as it holds anything.
func keepWithin[T any](s *state, m map[spec.Namespace]map[string]entry[T], ns spec.Namespace, name string, ev store.Event, keyOf func(*T) string) error {
	if m[ns] == nil {
		m[ns] = map[string]entry[T]{}
	}
	err := keep(s, m[ns], name, ev, keyOf)
	if len(m[ns]) == 0 {
		delete(m, ns)
	}
	return err
}

// budgetsOf are the budgets that hold for set, by name.
func (s *state) budgetsOf(set *records.Set) []*records.BudgetRecord {
	return slices.DeleteFunc(listed(s.budgets[set.Ref.Namespace]), func(r *records.BudgetRecord) bool { return !r.Selects(set) })
}

// applyServiceAddress keeps an unreadable record as one of no service: it is not free.
func (s *state) applyServiceAddress(text string, ev store.Event) error {
	keyOf := func(r *records.ServiceAddress) string { return store.ServiceAddressKey(r.Address) }
	addr, err := netip.ParseAddr(text)
	if err != nil { // nobody asks for it
		_, err := decode(s, ev, keyOf)
		return err
	}
	return keepTaken(s, s.serviceAddrs, addr, ev, keyOf, &records.ServiceAddress{Address: addr})
}

// ServiceAddresses holds the records of all addresses that services have or had; an unreadable one
// is there without a name: it is not free. It must not be changed.
func ServiceAddresses(v View) map[netip.Addr]*records.ServiceAddress { return v.serviceAddrs }

// applyNodePort keeps an unreadable record as one of no service: it is not free.
func (s *state) applyNodePort(text string, ev store.Event) error {
	keyOf := func(r *records.NodePort) string { return store.NodePortKey(r.Port) }
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil { // nobody asks for it
		_, err := decode(s, ev, keyOf)
		return err
	}
	port := int32(number)
	return keepTaken(s, s.nodePorts, port, ev, keyOf, &records.NodePort{Port: port})
}

// NodePorts holds the records of all ports of nodes that services have; an unreadable one is there without a
// name: it is not free. It must not be changed.
func NodePorts(v View) map[int32]*records.NodePort { return v.nodePorts }

// AllServices yields the services of all namespaces, in any order.
func AllServices(v View) iter.Seq[*records.ServiceRecord] {
	return func(yield func(*records.ServiceRecord) bool) {
		for _, of := range v.services {
			for _, e := range of {
				if e.record != nil && !yield(e.record) {
					return
				}
			}
		}
	}
}

// FindService is the service of a name; nil: there is none, or it cannot be read.
func FindService(v View, ns spec.Namespace, name string) *records.ServiceRecord {
	return v.services[ns][name].record
}

// FindEndpoints are the Endpoints of a name; nil: there are none, or they cannot be read.
func FindEndpoints(v View, ns spec.Namespace, name string) *records.EndpointsRecord {
	return v.endpoints[ns][name].record
}

// SlicesOf are the EndpointSlices of a Service, by name.
func SlicesOf(v View, ns spec.Namespace, service string) []*records.SliceRecord {
	return slices.DeleteFunc(listed(v.slices[ns]), func(r *records.SliceRecord) bool { return r.Service() != service })
}

// Services lists the services of a namespace by name.
func (v View) Services(ns spec.Namespace) []*records.ServiceRecord { return listed(v.services[ns]) }

// NetworkPolicies lists those of a namespace by name.
func NetworkPolicies(v View, ns spec.Namespace) []*records.NetworkPolicyRecord {
	return listed(v.policies[ns])
}

// PolicyNamespaces lists the namespaces that have NetworkPolicies.
func PolicyNamespaces(v View) []spec.Namespace { return slices.Sorted(maps.Keys(v.policies)) }

// isIsolated reports whether a NetworkPolicy selects members of set.
func (s *state) isIsolated(set *records.Set) bool {
	for _, e := range s.policies[set.Ref.Namespace] {
		if e.record == nil || e.record.Selects(set) { // an unreadable one might
			return true
		}
	}
	return false
}

// Config is a ConfigMap.
func (v View) Config(ns spec.Namespace, name string) *records.ConfigRecord {
	return v.configs[store.ConfigKey(ns, name)].record
}

// Secret is a Secret, sealed as it is stored.
func (v View) Secret(ns spec.Namespace, name string) *records.SecretRecord {
	return v.secrets[store.SecretKey(ns, name)].record
}
