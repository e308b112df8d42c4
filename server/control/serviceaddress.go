package control

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// serviceRest is how long the address of a deleted service leads to no other: hosts that are cut off
// may lead it to the old members meanwhile (SAFETY S17).
const serviceRest = 10 * time.Minute

// servicePool chooses addresses for services. Where the search begins follows from the service's name:
// after a restore of the store a service that is applied again gets the address that it had, and
// hardly any the address that another one had.
type servicePool struct {
	cidr  netip.Prefix // zero: services get no addresses
	whole bool         // the first and the last address are given, too, and none is left to manifests
	*rests
}

// rests are the rests of addresses, of all pools.
type rests struct {
	now func() time.Time

	mu sync.Mutex
	// resting is when this server first saw an address freed, on its own clock.
	resting map[netip.Addr]stay
}

// stay is one rest of an address.
type stay struct {
	freed store.Rev // of the record: a later one is another rest
	since time.Time
}

func newServicePool(cidr netip.Prefix) *servicePool {
	return &servicePool{cidr: cidr, rests: &rests{now: time.Now, resting: map[netip.Addr]stay{}}}
}

// of is the pool of another range, all of whose addresses are given.
func (p *servicePool) of(cidr netip.Prefix) *servicePool {
	return &servicePool{cidr: cidr, whole: true, rests: p.rests}
}

// look starts the rest of addresses that were freed.
func (p *rests) look(v cache.View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a, r := range cache.ServiceAddresses(v) {
		if rev := v.ModRev(store.ServiceAddressKey(a)); r.Freed && p.resting[a].freed != rev {
			p.resting[a] = stay{rev, p.now()}
		}
	}
}

// left is how long a freed address has to rest; v was looked at.
func (p *rests) left(a netip.Addr) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return serviceRest - p.now().Sub(p.resting[a].since)
}

// choose is the address for a service that has none, of those not in taken: the one that it had, the
// first that was never used, or the one that was freed longest ago and has rested; false: there is none.
func (p *servicePool) choose(v cache.View, ns spec.Namespace, name string, taken map[netip.Addr]bool) (netip.Addr, bool) {
	used := cache.ServiceAddresses(v)
	for a, r := range used {
		if r.Namespace == ns && r.Name == name && p.cidr.Contains(a) && !taken[a] {
			return a, true
		}
	}
	for a := range p.order(ns, name) {
		if used[a] == nil && !taken[a] {
			return a, true
		}
	}
	var rested []netip.Addr
	for a, r := range used {
		if r.Freed && p.cidr.Contains(a) && !taken[a] && p.left(a) <= 0 {
			rested = append(rested, a)
		}
	}
	if len(rested) == 0 {
		return netip.Addr{}, false
	}
	freed := func(a netip.Addr) store.Rev { return v.ModRev(store.ServiceAddressKey(a)) }
	return slices.MinFunc(rested, func(a, b netip.Addr) int { return cmp.Or(cmp.Compare(freed(a), freed(b)), a.Compare(b)) }), true
}

// order yields each address that may be given: but for the first and the last of the range, unless it is given whole. Those in its
// lower part come last: they are left to manifests that write one, as in Kubernetes.
func (p *servicePool) order(ns spec.Namespace, name string) func(yield func(netip.Addr) bool) {
	raw := p.cidr.Addr().As4()
	first, size, low := binary.BigEndian.Uint32(raw[:]), uint32(1)<<(32-p.cidr.Bits()), uint32(0)
	if !p.whole {
		first, size = first+1, size-2
		low = min(max(16, size/16), 256)
	}
	if size <= low {
		low = 0
	}
	hash := fnv.New32a()
	hash.Write([]byte(string(ns) + "/" + name))
	start := hash.Sum32()
	return func(yield func(netip.Addr) bool) {
		for i := range size {
			at := low + (start%(size-low)+i)%(size-low)
			if i >= size-low {
				at = i - (size - low)
			}
			if !yield(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, first+at)))) {
				return
			}
		}
	}
}

// fixed is what is wrong with an address that a manifest writes as clusterIP; nil: nothing.
func (p *servicePool) fixed(v cache.View, a netip.Addr, s *records.ServiceRecord, taken map[netip.Addr]bool) *manifest.Problem {
	if !p.cidr.Contains(a) || a == p.cidr.Addr() || !p.cidr.Contains(a.Next()) {
		return &manifest.Problem{Path: "spec.clusterIP", What: fmt.Sprintf("%s is not an address for services: their range is %s (--service-cidr of the server)", a, p.cidr),
			Fix: "leave clusterIP out, or write an address of the range"}
	}
	return p.held(v, "spec.clusterIP", a, s, taken)
}

// held is why a service must not have an address that its manifest writes at path: another one has it, or had; nil:
// it may.
func (p *rests) held(v cache.View, path string, a netip.Addr, s *records.ServiceRecord, taken map[netip.Addr]bool) *manifest.Problem {
	field, _, _ := strings.Cut(strings.TrimPrefix(path, "spec."), "[")
	problem := &manifest.Problem{Path: path, Fix: "write another address, or leave " + field + " out"}
	r := cache.ServiceAddresses(v)[a]
	switch {
	case taken[a]:
		problem.What = fmt.Sprintf("%s is the address of another Service of this apply", a)
	case r == nil || r.Namespace == s.Namespace && r.Name == s.Name:
		return nil
	case !r.Freed:
		problem.What = fmt.Sprintf("%s is the address of Service %s/%s", a, r.Namespace, r.Name)
	default:
		left := p.left(a)
		if left <= 0 {
			return nil
		}
		problem.What = fmt.Sprintf("%s was the address of Service %s/%s until a moment ago", a, r.Namespace, r.Name)
		problem.Fix = fmt.Sprintf("try again in %s, or leave %s out", left.Round(time.Second), field)
	}
	return problem
}

// freeAddress adds to the deletion of a service that its addresses begin to rest, and that its ports of the
// nodes are free.
func (s *shared) freeAddress(ctx context.Context, kv store.KV, txn *store.Txn) error {
	service, err := store.Decode[records.ServiceRecord](kv)
	if err != nil {
		return nil // one that cannot be read is deleted all the same
	}
	var keys []string
	for _, a := range service.Addresses() {
		keys = append(keys, store.ServiceAddressKey(a))
	}
	addresses := len(keys)
	for _, port := range service.NodePorts() {
		keys = append(keys, store.NodePortKey(port))
	}
	_, kvs, err := s.cfg.Store.Get(ctx, keys...)
	if err != nil {
		return err
	}
	// What is not the service's is left: whose it is must be found out by a person.
	for _, key := range keys[:addresses] {
		if held, err := store.DecodeIn[records.ServiceAddress](kvs, key); err == nil && held != nil && held.Namespace == service.Namespace && held.Name == service.Name {
			held.Freed = true
			txn.If = append(txn.If, store.Seen(key, kvs[key].Mod))
			txn.Then = append(txn.Then, store.Put(key, store.Encode(held)))
		}
	}
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys[addresses:]))) {
		if held, err := store.DecodeIn[records.NodePort](kvs, key); err == nil && held != nil && held.Namespace == service.Namespace && held.Name == service.Name {
			txn.If = append(txn.If, store.Seen(key, kvs[key].Mod))
			txn.Then = append(txn.Then, store.Del(key))
		}
	}
	return nil
}

// freePruned is freeAddress for what an apply removes.
func (s *shared) freePruned(ctx context.Context, r removal, txn *store.Txn) error {
	if r.applied.GetKind() != proto.KindService {
		return nil
	}
	_, kvs, err := s.cfg.Store.Get(ctx, r.key)
	if err != nil {
		return err
	}
	return s.freeAddress(ctx, kvs[r.key], txn)
}
