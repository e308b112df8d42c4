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
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// pool chooses addresses for identities without one: the lowest that was never
// used, then those freed longest ago (SAFETY S17). It belongs to one leader's loop.
type pool struct {
	cidr       netip.Prefix
	exclude    []netip.Prefix
	quarantine time.Duration
	cursor     netip.Addr // all below it have a record or are excluded
	// resting is when this leader first saw an address freed, on its own clock: what
	// FreedAt says is another machine's clock, and orders only.
	resting map[netip.Addr]rest
	// assigned holds addresses of commits that the cache may not show yet.
	assigned map[netip.Addr]store.Rev
}

// rest is one stay in quarantine.
type rest struct {
	freed time.Time // FreedAt: a later one is another stay
	since time.Time
}

func newPool(cfg Config) *pool {
	return &pool{
		cidr: cfg.CIDR.Masked(), exclude: cfg.Exclude, quarantine: cfg.Quarantine,
		resting: map[netip.Addr]rest{}, assigned: map[netip.Addr]store.Rev{},
	}
}

// addressesWanted is how many addresses the planner may ask for: one under OrderedReady,
// where one member starts at a time. A folded world lists those that may start.
func addressesWanted(w plan.World) int {
	n := unaddressed(w)
	if w.Set.Spec.PodManagementPolicy != spec.Parallel {
		n = min(n, 1)
	}
	return n
}

// unaddressed counts the members that are wanted and have no address.
func unaddressed(w plan.World) int {
	n, wanted := w.Set.Replicas(), w.Set.Range()
	if w.Folded != nil {
		n = 0
		for i := range w.Slots {
			if wanted.Has(w.Slots[i].ID.Ordinal) {
				n++
			}
		}
	}
	for i := range w.Slots {
		id := w.Slots[i].Identity
		if wanted.Has(w.Slots[i].ID.Ordinal) && id != nil && id.Address.IsValid() {
			n--
		}
	}
	return n
}

// candidates lists up to n addresses in the order of preference.
func (p *pool) candidates(v cache.View, n int, now time.Time) []netip.Addr {
	p.dropShown(v)
	if n == 0 || unknownLivesHoldAddresses(v) {
		return nil
	}
	used := v.Addresses()
	list := make([]netip.Addr, 0, n)
	if !p.cursor.IsValid() {
		p.cursor = p.cidr.Addr().Next() // not the network's own
	}
	advance := true
	for a := p.cursor; len(list) < n && p.cidr.Contains(a.Next()); a = a.Next() { // not the broadcast address
		_, known := used[a.String()]
		skipped := known || p.excluded(a)
		advance = advance && skipped
		switch {
		case advance:
			p.cursor = a.Next()
		case !skipped && !cache.HasHost(v, a) && p.assigned[a] == 0:
			list = append(list, a)
		}
	}
	return append(list, p.rested(v, used, n-len(list), now)...)
}

// dropShown forgets given addresses that the cache shows by now.
func (p *pool) dropShown(v cache.View) {
	for a, rev := range p.assigned {
		if rev <= v.Rev() {
			delete(p.assigned, a)
		}
	}
}

// rested lists up to n addresses whose quarantine is over, oldest freed first.
func (p *pool) rested(v cache.View, used map[string]*records.AddressRecord, n int, now time.Time) []netip.Addr {
	if n == 0 {
		return nil
	}
	p.startQuarantines(used, now)
	var freed []*records.AddressRecord
	for _, r := range used {
		a := r.Address
		if r.FreedAt == nil || !p.cidr.Contains(a) || p.excluded(a) || cache.HasHost(v, a) || p.assigned[a] != 0 {
			continue
		}
		if now.Sub(p.resting[a].since) >= p.quarantine {
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

// startQuarantines starts the quarantine of addresses that were freed.
func (p *pool) startQuarantines(used map[string]*records.AddressRecord, now time.Time) {
	for _, r := range used {
		p.startQuarantine(r, now)
	}
}

// startQuarantine starts the quarantine of an address if it was freed since it last was.
func (p *pool) startQuarantine(r *records.AddressRecord, now time.Time) {
	if r.FreedAt != nil && p.resting[r.Address].freed.Compare(*r.FreedAt) != 0 {
		p.resting[r.Address] = rest{*r.FreedAt, now}
	}
}

// wakeWhenRested has the set evaluated again when the next address has rested, if a member waits for one.
func (p *pool) wakeWhenRested(e *evaluation, now time.Time) {
	if !slices.ContainsFunc(e.blocked, func(b plan.Blocked) bool { return b.Reason == causes.BlockedAddress }) {
		return
	}
	for _, r := range p.resting {
		if left := p.quarantine - now.Sub(r.since); left > 0 {
			e.wakeWithin(left)
		}
	}
}

func (p *pool) excluded(a netip.Addr) bool {
	return slices.ContainsFunc(p.exclude, func(x netip.Prefix) bool { return x.Contains(a) })
}

// unknownLivesHoldAddresses reports whether a node runs lives of identities that the store has
// no address of: theirs might be any, so none is given (SAFETY S8, S17).
func unknownLivesHoldAddresses(v cache.View) bool {
	for _, n := range v.Nodes() {
		if n.Unread {
			return true
		}
		if n.Facts == nil {
			continue
		}
		for _, l := range n.Facts.Strays {
			if id := v.Identity(l.ID); id == nil || !id.Address.IsValid() {
				return true
			}
		}
	}
	return false
}
