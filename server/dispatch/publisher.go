package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// snapshotInterval is the least time between two rounds of snapshots: what changes
// meanwhile is one.
const snapshotInterval = 10 * time.Millisecond

// snapshotPublisher builds each set's snapshot once for all sessions. Versions count its
// rounds; a session asks for what is newer than the version it has.
type snapshotPublisher struct {
	cache  cache.Reader
	domain string

	mu      sync.Mutex
	version uint64
	seq     spec.Sequence
	sets    map[spec.SetRef]*publishedSnapshot
	// hosts are the addresses of all nodes, ascending, and hosted the round that changed them.
	hosts        []string
	hostsVersion uint64
	roundDone    chan struct{} // closed and replaced at each round
}

// publishedSnapshot is one set's last snapshot, without its sequence in body.
type publishedSnapshot struct {
	version uint64
	body    records.Snapshot
	json    []byte
}

func newSnapshotPublisher(w cache.Reader, domain string) *snapshotPublisher {
	return &snapshotPublisher{cache: w, domain: domain, sets: map[spec.SetRef]*publishedSnapshot{}, roundDone: make(chan struct{})}
}

func (p *snapshotPublisher) run(ctx context.Context) {
	sub := p.cache.Subscribe()
	defer sub.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sub.C():
		}
		p.round(sub.Take())
		backoff.Sleep(ctx, snapshotInterval)
	}
}

// round builds what may differ after ch. The snapshot of a set that is gone stays
// as a short note, so that each session sends it.
func (p *snapshotPublisher) round(ch cache.Changes) {
	var built []records.Snapshot
	var seq spec.Sequence
	var hosts []string
	known := p.known()
	p.cache.Look(func(v cache.View) {
		seq = sequence(v)
		hosts = hostsOf(v.Nodes())
		for ref := range p.changed(v, ch, known) {
			snap := BuildSnapshot(seq, ref, v.World(ref), v.Services(ref.Namespace), p.domain)
			if !snap.Gone {
				snap.Told = v.LastChange(ref)
			}
			built = append(built, snap)
		}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	p.seq = seq
	if !slices.Equal(hosts, p.hosts) {
		p.hosts, p.hostsVersion = hosts, p.version
	}
	for _, snap := range built {
		p.put(snap)
	}
	close(p.roundDone)
	p.roundDone = make(chan struct{})
}

func (p *snapshotPublisher) known() []spec.SetRef {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.sets))
}

// changed is what to build again. A node that moved touches every set: proof.Judge.EffectiveReady
// counts all nodes.
func (p *snapshotPublisher) changed(v cache.View, ch cache.Changes, known []spec.SetRef) map[spec.SetRef]bool {
	refs := map[spec.SetRef]bool{}
	for ref := range ch.Sets {
		refs[ref] = true
	}
	all := ch.All || len(ch.Nodes) > 0
	for _, ref := range v.Sets() {
		if all || ch.Services[ref.Namespace] {
			refs[ref] = true
		}
	}
	if ch.All {
		for _, ref := range known {
			refs[ref] = true
		}
	}
	return refs
}

// put takes over a snapshot if it differs; mu is held.
func (p *snapshotPublisher) put(snap records.Snapshot) {
	body := snap
	body.Sequence = spec.Sequence{}
	old := p.sets[snap.Ref]
	if old == nil && snap.Gone || old != nil && reflect.DeepEqual(old.body, body) {
		return
	}
	doc, err := json.Marshal(snap)
	if err != nil {
		return // names and addresses always marshal
	}
	p.sets[snap.Ref] = &publishedSnapshot{version: p.version, body: body, json: doc}
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

// unsent is what a session has not sent yet.
type unsent struct {
	docs  [][]byte // snapshots, in the order of their sets
	hosts []string // the addresses of all nodes, when they changed
	seq   spec.Sequence
	next  uint64 // the version to ask with next
}

// since returns what is newer than version (0: all sets that exist, and all hosts).
func (p *snapshotPublisher) since(version uint64) unsent {
	p.mu.Lock()
	defer p.mu.Unlock()
	var fresh []*publishedSnapshot
	for _, s := range p.sets {
		if s.version > version && (version > 0 || !s.body.Gone) {
			fresh = append(fresh, s)
		}
	}
	slices.SortFunc(fresh, func(a, b *publishedSnapshot) int { return cmp.Compare(a.body.Ref.String(), b.body.Ref.String()) })
	n := unsent{seq: p.seq, next: p.version}
	for _, s := range fresh {
		n.docs = append(n.docs, s.json)
	}
	if p.hostsVersion > version {
		n.hosts = p.hosts // replaced whole, never changed
	}
	return n
}

// nextRound returns a channel that is closed at the next round.
func (p *snapshotPublisher) nextRound() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roundDone
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
