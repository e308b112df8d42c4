package engine

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// pool chooses addresses for identities without one: the lowest that was never
// used, then those freed longest ago (SAFETY S17). It belongs to one leader's loop.
type pool struct {
	cidr       netip.Prefix
	exclude    []netip.Prefix
	quarantine time.Duration
	cursor     netip.Addr // all below it have a record or are excluded
	// seen is when this leader first saw an address freed, on its own clock: what
	// FreedAt says is another machine's clock, and orders only.
	seen map[netip.Addr]resting
	// given holds addresses of commits that the cache may not show yet.
	given map[netip.Addr]store.Rev
}

// resting is one stay in quarantine.
type resting struct {
	freed time.Time // FreedAt: a later one is another stay
	since time.Time
}

func newPool(cfg Config) *pool {
	return &pool{
		cidr: cfg.CIDR.Masked(), exclude: cfg.Exclude, quarantine: cfg.Quarantine,
		seen: map[netip.Addr]resting{}, given: map[netip.Addr]store.Rev{},
	}
}

// missing is how many addresses the planner may ask for: one under OrderedReady,
// where one member starts at a time.
func missing(w plan.World) int {
	n, wanted := w.Set.Replicas(), w.Set.Range()
	for i := range w.Slots {
		id := w.Slots[i].Identity
		if wanted.Has(w.Slots[i].ID.Ordinal) && id != nil && id.Address.IsValid() {
			n--
		}
	}
	if w.Set.Spec.PodManagementPolicy != spec.Parallel {
		n = min(n, 1)
	}
	return n
}

// free lists up to n addresses in the order of preference.
func (p *pool) free(v cache.View, n int, now time.Time) []netip.Addr {
	p.settle(v)
	if n == 0 || strangersHold(v) {
		return nil
	}
	used := v.Addresses()
	hosts := hostAddresses(v.Nodes())
	list := make([]netip.Addr, 0, n)
	if !p.cursor.IsValid() {
		p.cursor = p.cidr.Addr().Next() // not the network's own
	}
	last, advance := broadcast(p.cidr), true
	for a := p.cursor; len(list) < n && a.Less(last); a = a.Next() {
		_, known := used[a.String()]
		switch {
		case known || p.excluded(a):
			if advance {
				p.cursor = a.Next()
			}
		case hosts[a] || p.given[a] != 0:
			advance = false
		default:
			advance = false
			list = append(list, a)
		}
	}
	return append(list, p.rested(used, hosts, n-len(list), now)...)
}

// settle forgets given addresses that the cache shows by now.
func (p *pool) settle(v cache.View) {
	for a, rev := range p.given {
		if rev <= v.Rev() {
			delete(p.given, a)
		}
	}
}

// rested lists up to n addresses whose quarantine is over, oldest freed first.
func (p *pool) rested(used map[string]*records.AddressRecord, hosts map[netip.Addr]bool, n int, now time.Time) []netip.Addr {
	if n == 0 {
		return nil
	}
	p.notice(used, now)
	var freed []*records.AddressRecord
	for _, r := range used {
		a := r.Address
		if r.FreedAt == nil || !p.cidr.Contains(a) || p.excluded(a) || hosts[a] || p.given[a] != 0 {
			continue
		}
		if now.Sub(p.seen[a].since) >= p.quarantine {
			freed = append(freed, r)
		}
	}
	slices.SortFunc(freed, func(a, b *records.AddressRecord) int {
		return cmp.Or(a.FreedAt.Compare(*b.FreedAt), a.Address.Compare(b.Address))
	})
	list := make([]netip.Addr, 0, n)
	for _, r := range freed[:min(n, len(freed))] {
		list = append(list, r.Address)
	}
	return list
}

// notice begins the quarantine of addresses that were freed.
func (p *pool) notice(used map[string]*records.AddressRecord, now time.Time) {
	for _, r := range used {
		p.see(r, now)
	}
}

// see begins the quarantine of an address if it was freed since it last was.
func (p *pool) see(r *records.AddressRecord, now time.Time) {
	if r.FreedAt != nil && p.seen[r.Address].freed.Compare(*r.FreedAt) != 0 {
		p.seen[r.Address] = resting{*r.FreedAt, now}
	}
}

// await looks again when the next address has rested, if a member waits for one.
func (p *pool) await(t *turn, now time.Time) {
	if !slices.ContainsFunc(t.blocked, func(b plan.Blocked) bool { return b.Reason == plan.BlockedAddress }) {
		return
	}
	for _, r := range p.seen {
		if left := p.quarantine - now.Sub(r.since); left > 0 {
			t.sooner(left)
		}
	}
}

func (p *pool) excluded(a netip.Addr) bool {
	for _, x := range p.exclude {
		if x.Contains(a) {
			return true
		}
	}
	return false
}

// hostAddresses are addresses that nodes say are their own.
func hostAddresses(nodes []plan.Node) map[netip.Addr]bool {
	hosts := map[netip.Addr]bool{}
	for i := range nodes {
		if a := nodes[i].Facts.Address(); a.IsValid() {
			hosts[a] = true
		}
	}
	return hosts
}

// broadcast is the last address of an IPv4 range.
func broadcast(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(b)
}

// strangersHold reports whether a node runs lives of identities that the store has
// no address of: theirs might be any, so none is given (SAFETY S8, S17).
func strangersHold(v cache.View) bool {
	for _, n := range v.Nodes() {
		if n.Unread {
			return true
		}
		if n.Facts == nil {
			continue
		}
		for _, stray := range n.Facts.Strays {
			if id, _ := v.Identity(stray.ID); id == nil || !id.Address.IsValid() {
				return true
			}
		}
	}
	return false
}
