package cache

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// entry is a decoded record and the revision of its last write. A record that
// cannot be decoded has a revision and no value.
type entry[T any] struct {
	record *T
	mod    store.Rev
}

// state is the mirror at one revision. Records are never changed, only replaced.
type state struct {
	rev     store.Rev
	written *written             // nil: nothing is written here
	mods    map[string]store.Rev // of every key
	epoch   int64
	cluster string
	leader  store.Leadership
	hold    *records.Hold

	sets            map[spec.SetRef]*setState
	nodes           map[spec.NodeName]*nodeRecords
	nodeList        []plan.Node            // see listNodes; replaced whole
	movedNodes      map[spec.NodeName]bool // of which nodeList is to say anew what it says
	hosts           map[netip.Addr]int     // how many nodes of nodeList say that the address is their host's
	roomFreed       bool                   // a life left its node, or asks less of it
	withTerms       map[spec.SetRef]int    // lives with terms about members, by their set
	lastSessionEnd  store.Rev              // when a session ended last
	unknownLives    map[spec.Identity][]plan.NodeStray
	unknownVolumes  map[spec.Identity][]plan.UnknownVolume
	placed          map[spec.NodeName]map[string]*records.Volume // by the node that has them, and key
	services        map[spec.Namespace]map[string]entry[records.ServiceRecord]
	endpoints       map[spec.Namespace]map[string]entry[records.EndpointsRecord]
	slices          map[spec.Namespace]map[string]entry[records.SliceRecord]
	budgets         map[spec.Namespace]map[string]entry[records.BudgetRecord]
	policies        map[spec.Namespace]map[string]entry[records.NetworkPolicyRecord]
	quotas          map[spec.Namespace]map[string]entry[records.QuotaRecord]
	claims          map[spec.Namespace]map[string]entry[records.ClaimRecord]
	claimUsers      map[spec.Identity]map[spec.Identity]bool // members with a volume of a claim, by the claim
	movedClaims     []spec.Identity                          // whose users moved with the present event
	configs         map[string]entry[records.ConfigRecord]
	secrets         map[string]entry[records.SecretRecord]
	addresses       map[string]*records.AddressRecord
	serviceAddrs    map[netip.Addr]*records.ServiceAddress
	nodePorts       map[int32]*records.NodePort
	bootstrapped    map[spec.UID]bool
	wasBootstrapped map[spec.SetRef]bool // bootstrapped sets that are gone
	broken          map[string]error     // by key
	count           entry[records.Count] // of the last restore
	format          entry[records.Format]
	memories        map[string]entry[records.Known] // by server
	servers         map[string]entry[records.Server]
	keyring         entry[sealing.Ring]
	serverKeys      map[string]entry[sealing.ServerKeys]
	givenKeys       map[string]entry[sealing.GivenKeys]
	authority       entry[sealing.Authority]
	serverTrust     map[string]entry[sealing.ServerAuthorities]
	certified       map[string]entry[sealing.Certified]
}

func newState(rev store.Rev) *state {
	return &state{
		rev:             rev,
		mods:            map[string]store.Rev{},
		sets:            map[spec.SetRef]*setState{},
		nodes:           map[spec.NodeName]*nodeRecords{},
		movedNodes:      map[spec.NodeName]bool{},
		hosts:           map[netip.Addr]int{},
		withTerms:       map[spec.SetRef]int{},
		unknownLives:    map[spec.Identity][]plan.NodeStray{},
		unknownVolumes:  map[spec.Identity][]plan.UnknownVolume{},
		placed:          map[spec.NodeName]map[string]*records.Volume{},
		services:        map[spec.Namespace]map[string]entry[records.ServiceRecord]{},
		endpoints:       map[spec.Namespace]map[string]entry[records.EndpointsRecord]{},
		slices:          map[spec.Namespace]map[string]entry[records.SliceRecord]{},
		budgets:         map[spec.Namespace]map[string]entry[records.BudgetRecord]{},
		policies:        map[spec.Namespace]map[string]entry[records.NetworkPolicyRecord]{},
		quotas:          map[spec.Namespace]map[string]entry[records.QuotaRecord]{},
		claims:          map[spec.Namespace]map[string]entry[records.ClaimRecord]{},
		claimUsers:      map[spec.Identity]map[spec.Identity]bool{},
		configs:         map[string]entry[records.ConfigRecord]{},
		secrets:         map[string]entry[records.SecretRecord]{},
		addresses:       map[string]*records.AddressRecord{},
		serviceAddrs:    map[netip.Addr]*records.ServiceAddress{},
		nodePorts:       map[int32]*records.NodePort{},
		bootstrapped:    map[spec.UID]bool{},
		wasBootstrapped: map[spec.SetRef]bool{},
		broken:          map[string]error{},
		memories:        map[string]entry[records.Known]{},
		servers:         map[string]entry[records.Server]{},
		serverKeys:      map[string]entry[sealing.ServerKeys]{},
		givenKeys:       map[string]entry[sealing.GivenKeys]{},
		serverTrust:     map[string]entry[sealing.ServerAuthorities]{},
		certified:       map[string]entry[sealing.Certified]{},
	}
}

// decode makes the entry of one event. keyOf says where the record belongs: a
// record under another key than its own is as broken as one that is no JSON. The
// error names the key; the entry has no value then, so that nothing acts on it.
func decode[T any](s *state, ev store.Event, keyOf func(*T) string) (entry[T], error) {
	delete(s.broken, ev.Key)
	if ev.Delete {
		return entry[T]{}, nil
	}
	record, err := recordOf[T](s, &ev.KV)
	if err == nil {
		if want := keyOf(record); want != ev.Key {
			err = fmt.Errorf("decode %s: the record belongs to %s", ev.Key, want)
		}
	}
	if err != nil {
		s.broken[ev.Key] = err
		return entry[T]{mod: ev.Mod}, err
	}
	return entry[T]{record, ev.Mod}, nil
}

// recordOf is what kv is the stored form of.
func recordOf[T any](s *state, kv *store.KV) (*T, error) {
	if s.written != nil {
		if record, same := s.written.take(kv).(*T); same {
			return record, nil
		}
	}
	record, err := store.Decode[T](*kv)
	return &record, err
}

// keep has in m what one event wrote, or removes it.
func keep[K comparable, T any](s *state, m map[K]entry[T], key K, ev store.Event, keyOf func(*T) string) error {
	e, err := decode(s, ev, keyOf)
	if e.mod == 0 {
		delete(m, key)
	} else {
		m[key] = e
	}
	return err
}

// readable are the records of m that can be read; nil: none.
func readable[K comparable, T any](m map[K]entry[T]) map[K]*T {
	var out map[K]*T
	for key, e := range m {
		if e.record == nil {
			continue
		}
		if out == nil {
			out = make(map[K]*T, len(m))
		}
		out[key] = e.record
	}
	return out
}

// listed are the records of m that can be read, in the order of their keys.
func listed[K cmp.Ordered, T any](m map[K]entry[T]) []*T { return inOrder(readable(m)) }

// inOrder lists what m holds, in the order of its keys.
func inOrder[K cmp.Ordered, T any](m map[K]*T) (list []*T) {
	if len(m) == 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[key])
	}
	return list
}

// settle ends a batch: what is derived from many records is built again.
func (s *state) settle(rev store.Rev) {
	s.rev = rev
	if len(s.movedNodes) > 0 {
		s.nodeList = s.listNodes()
		clear(s.movedNodes)
	}
}

// apply takes over one change and notes in ch (may be nil) what moved. An error
// names a record that could not be read; it is kept as broken.
func (s *state) apply(ev store.Event, ch *Changes) (err error) {
	if ch == nil {
		ch = newChanges()
	}
	s.mods[ev.Key] = ev.Mod
	if ev.Delete {
		delete(s.mods, ev.Key)
	}
	if ref, ok := store.RefOfKey(ev.Key); ok {
		ch.Sets[ref] = true
		err := s.applySet(ref, ev, ch)
		s.noteClaims(ref, ch)
		ch.Room = ch.Room || s.roomFreed
		s.roomFreed = false
		return err
	}
	kind, rest := store.Kind(ev.Key)
	switch kind {
	case store.KindNode, store.KindFacts, store.KindSession, store.KindFence:
		return s.applyNode(kind, spec.NodeName(rest), ev, ch)
	case store.KindService, store.KindEndpoints, store.KindSlice, store.KindBudget, store.KindNetworkPolicy, store.KindQuota, store.KindClaim, store.KindConfig, store.KindSecret:
		return s.applyObject(kind, rest, ev, ch)
	case store.KindAddress:
		return s.applyAddress(rest, ev)
	case store.KindServiceAddress:
		return s.applyServiceAddress(rest, ev)
	case store.KindNodePort:
		return s.applyNodePort(rest, ev)
	case store.KindBootstrapped:
		s.applyBootstrapped(rest, ev, ch)
	case store.KindLeader:
		s.leader = store.Leadership{}
		if !ev.Delete {
			s.leader = store.Leadership{Value: string(ev.Value), Created: ev.Create}
		}
		ch.Leadership = true
	case store.KindCluster:
		s.cluster = string(ev.Value)
	case store.KindEpoch:
		ch.All = true
		return s.applyEpoch(ev)
	case store.KindHold:
		ch.All = true
		s.hold = nil
		if !ev.Delete {
			s.hold = store.HoldIn(map[string]store.KV{store.HoldKey: ev.KV})
		}
	case store.KindCount:
		ch.All = true
		s.count, err = decode(s, ev, func(*records.Count) string { return store.CountKey })
	case store.KindFormat:
		ch.All = true
		s.format, err = decode(s, ev, func(*records.Format) string { return store.FormatKey })
	case store.KindKnown:
		ch.All = true
		return keep(s, s.memories, rest, ev, func(*records.Known) string { return ev.Key }) // it does not name its server
	case store.KindServer:
		ch.Servers = true
		return keep(s, s.servers, rest, ev, func(r *records.Server) string { return store.ServerKey(r.Name) })
	case store.KindKeyring, store.KindServerKeys, store.KindGivenKeys:
		ch.Servers = true
		return applyKeys(s, kind, rest, ev)
	case store.KindAuthority, store.KindServerAuthorities, store.KindCertified:
		ch.Servers = true
		return applyAuthority(s, kind, rest, ev)
	}
	return err // kinds of newer versions are not ours to judge
}

// CheckRecord tells why a server could not read a record of the store; nil: it could, or its kind is not a cache's.
func CheckRecord(kv store.KV) error { return newState(kv.Mod).apply(store.Event{KV: kv}, nil) }
