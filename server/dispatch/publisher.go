package dispatch

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// snapshotPublisher has each set's snapshot, and what changed in it, once for all sessions. Versions
// count its rounds; a session asks for what is newer than the version it has.
type snapshotPublisher struct {
	cache      cache.Reader
	domain     string
	mostSilent bool // of the last round's nodes; round's own

	mu      sync.Mutex
	version uint64
	seq     spec.Sequence
	sets    map[spec.SetRef]*publishedSet // changed by round alone
	rounds  []publishedRound              // the last that changed a set, ascending
	oldest  uint64                        // rounds has all after this version
	moved   movedSets
	served  served
	// hosts are the addresses of all nodes, ascending, and hosted the round that changed them.
	hosts        []string
	hostsVersion uint64
	// servers are the addresses of all servers that the store tells of, ascending, and serversVersion the round that changed them.
	servers        []string
	serversVersion uint64
	// authority is the id of the one that signs, while it takes the place of another; "": none does.
	authority        string
	authorityVersion uint64
	// kind is that of the tunnel between them, as this server was told. tunnel is all of it in JSON, empty if there was never anything
	// to say, and tunnelVersion the round that changed it.
	kind          string
	tunnel        []byte
	tunnelVersion uint64
	roundDone     chan struct{} // closed and replaced at each round
	watchers      watchers
}

// publishedRound is a round, and the sets that it changed.
type publishedRound struct {
	version uint64
	sets    []spec.SetRef
}

// maxRounds bounds what is remembered of rounds: for a session that lacks more all sets are
// looked at.
const maxRounds = 256

func newSnapshotPublisher(w cache.Reader, domain string) *snapshotPublisher {
	return &snapshotPublisher{cache: w, domain: domain, sets: map[spec.SetRef]*publishedSet{}, roundDone: make(chan struct{}), watchers: newWatchers()}
}

func (p *snapshotPublisher) run(ctx context.Context) {
	sub := p.cache.Subscribe()
	defer sub.Close()
	var rest, near, far, brief <-chan time.Time // timers; nil: the next round need not wait, or there is nobody to wake
	var nearDue time.Time
	for {
		changed := sub.C()
		if rest != nil {
			changed = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-rest:
			rest = nil
		case <-near:
			near, nearDue = nil, time.Now().Add(nearAfter(p.watchers.wakeNear()))
		case <-far:
			p.watchers.wakeFar()
			far = nil
		case <-brief:
			p.watchers.wakeAll()
			brief = nil
		case <-changed:
			rest = time.After(intervalAfter(p.round(sub.Take())))
			if near == nil && p.watchers.waitsNear() {
				near = time.After(time.Until(nearDue))
			}
			if far == nil {
				far = time.After(farInterval)
			}
			if sessions := p.watchers.waitsBrief(); brief == nil && sessions > 0 {
				brief = time.After(briefAfter(sessions))
			}
		}
	}
}

// setChange is what a round publishes of a set.
type setChange struct {
	difference
	set   *records.Set
	full  step
	brief *step // nil: in brief it is as it was
}

// round publishes what differs after ch, and returns how many sessions that concerns at once. The snapshot of a set that is gone stays
// as a short note, so that each session sends it.
func (p *snapshotPublisher) round(ch cache.Changes) (sessions int) {
	version, hosts, servers, authority, tunnel := p.version+1, p.hosts, p.servers, p.authority, p.tunnel
	var changes []setChange
	var seq spec.Sequence
	near := map[spec.NodeName]bool{}
	p.cache.Look(func(v cache.View) {
		s := newSight(v, p.domain)
		seq = s.seq
		if ch.All || len(ch.Nodes) > 0 {
			hosts, tunnel = hostsOf(v.Nodes()), p.nextTunnel(v.Nodes())
		}
		if ch.All || ch.Servers {
			servers, authority = serversOf(v), signing(v)
		}
		for ref, t := range p.touched(s, ch) {
			was := p.sets[ref]
			if d := s.difference(ref, was, t); !d.empty() && (was != nil || !d.next.Gone) {
				changes = append(changes, setChange{difference: d, set: v.Set(ref)})
				for node := range cache.NodesWith(v, ref) {
					near[node] = true
				}
			}
		}
	})
	for i := range changes {
		c := &changes[i]
		c.full, c.brief = p.sets[c.next.Ref].stepsFrom(&c.difference, version, p.domain)
	}
	p.publish(version, seq, hosts, servers, authority, tunnel, changes)
	if ch.All {
		return p.watchers.wakeAll()
	}
	return p.watchers.noteNear(near)
}

// publish takes over what a round found.
func (p *snapshotPublisher) publish(version uint64, seq spec.Sequence, hosts, servers []string, authority string, tunnel []byte, changes []setChange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version, p.seq = version, seq
	if !slices.Equal(hosts, p.hosts) {
		p.hosts, p.hostsVersion = hosts, version
		p.watchers.noteFar(nil, true, false)
	}
	if !slices.Equal(servers, p.servers) {
		p.servers, p.serversVersion = servers, version
		p.watchers.noteFar(nil, true, false)
	}
	if authority != p.authority {
		p.authority, p.authorityVersion = authority, version
		p.watchers.noteFar(nil, true, false)
	}
	if !bytes.Equal(tunnel, p.tunnel) {
		p.tunnel, p.tunnelVersion = tunnel, version
		p.watchers.noteFar(nil, true, false)
	}
	moved := publishedRound{version: version}
	if p.served.note(changes, version) {
		p.watchers.noteFar(nil, true, false)
	}
	for i := range changes {
		c := &changes[i]
		s := p.sets[c.next.Ref]
		if s == nil {
			s = &publishedSet{}
			p.sets[c.next.Ref] = s
		}
		s.take(&c.difference, c.full, c.brief, c.set)
		p.watchers.noteFar(&c.next.Ref, p.served.sets[c.next.Ref], c.brief != nil)
		moved.sets = append(moved.sets, c.next.Ref)
	}
	if len(moved.sets) > 0 {
		p.rounds = append(p.rounds, moved)
	}
	if len(p.rounds) > maxRounds {
		half := len(p.rounds) / 2
		p.oldest = p.rounds[half-1].version
		p.rounds = slices.Clone(p.rounds[half:])
	}
	close(p.roundDone)
	p.roundDone = make(chan struct{})
}

// touched is what to look at again. A node that moved touches its members, and all sets when it makes
// more than half of the nodes silent, or not: proof.Judge.EffectiveReady counts them.
func (p *snapshotPublisher) touched(s *sight, ch cache.Changes) map[spec.SetRef]*touch {
	sets := map[spec.SetRef]*touch{}
	at := func(ref spec.SetRef) *touch {
		if sets[ref] == nil {
			sets[ref] = &touch{ordinals: map[int]bool{}}
		}
		return sets[ref]
	}
	for ref := range ch.Sets {
		at(ref)
	}
	for id := range ch.Members {
		at(id.Ref()).ordinals[id.Ordinal] = true
	}
	for node := range ch.Nodes {
		for _, id := range s.MembersOn(node) {
			at(id.Ref()).ordinals[id.Ordinal] = true
		}
	}
	all := ch.All || s.judge.MostSilent() != p.mostSilent
	p.mostSilent = s.judge.MostSilent()
	if all || len(ch.Services) > 0 {
		for _, ref := range s.Sets() {
			if all || ch.Services[ref.Namespace] {
				t := at(ref)
				t.all, t.services = all, true
			}
		}
	}
	p.touchServices(s.View, ch, at)
	if !all {
		p.touchPolicies(s, ch.Policies, ch.Sets, at)
	}
	if ch.All {
		for ref := range p.sets { // those that are gone, too
			at(ref).all = true
		}
	}
	maps.DeleteFunc(sets, func(ref spec.SetRef, _ *touch) bool { // which is none to anybody
		_, claim := ref.ClaimName()
		return claim
	})
	return sets
}

// hostsOf lists the addresses that nodes say they have, each once, ascending.
func hostsOf(nodes []plan.Node) (hosts []string) {
	for _, n := range nodes {
		if a := n.Facts.Address(); a.Is4() {
			hosts = append(hosts, a.String())
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// serversOf lists the addresses of the servers of which the store tells, each once, ascending.
func serversOf(v cache.View) (addresses []string) {
	for _, s := range cache.Servers(v) {
		addresses = append(addresses, s.Addresses...)
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// signing is the id of the authority that signs certificates in place of the one that servers show; "": there is none.
func signing(v cache.View) string {
	a := cache.AuthorityRecord(v)
	if a == nil || a.Next == nil || !a.Next.Issuing {
		return ""
	}
	return trust.ShortID(a.Next.Certificate)
}

// waitFor blocks until a round has seen revision rev, or ctx ends.
func (p *snapshotPublisher) waitFor(ctx context.Context, rev store.Rev) error {
	for {
		p.mu.Lock()
		reached, moved := p.seq.Rev >= int64(rev), p.roundDone
		p.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-moved:
		}
	}
}
