package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// pictureGap is the least time between two rounds of pictures: what changes
// meanwhile is told as one.
const pictureGap = 10 * time.Millisecond

// publisher draws each set's picture once for all sessions. Versions count its
// rounds; a session asks for what is newer than the version it has.
type publisher struct {
	cache  cache.Reader
	domain string

	mu      sync.Mutex
	version uint64
	seq     spec.Sequence
	sets    map[spec.SetRef]*published
	// hosts are the addresses of all nodes, ascending, and hosted the round that changed them.
	hosts  []string
	hosted uint64
	moved  chan struct{} // closed and made anew at each round
}

// published is one set's last picture, without its sequence in body.
type published struct {
	version uint64
	body    records.Snapshot
	json    []byte
}

func newPublisher(w cache.Reader, domain string) *publisher {
	return &publisher{cache: w, domain: domain, sets: map[spec.SetRef]*published{}, moved: make(chan struct{})}
}

func (p *publisher) run(ctx context.Context) {
	sub := p.cache.Subscribe()
	defer sub.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sub.C():
		}
		p.round(sub.Take())
		select {
		case <-ctx.Done():
			return
		case <-time.After(pictureGap):
		}
	}
}

// round draws what may differ after ch. The picture of a set that is gone stays
// as a short note, so that each session hears of it.
func (p *publisher) round(ch cache.Changes) {
	var drawn []records.Snapshot
	var seq spec.Sequence
	var hosts []string
	known := p.known()
	p.cache.Look(func(v cache.View) {
		seq = sequence(v)
		hosts = hostsOf(v.Nodes())
		for ref := range p.dirty(v, ch, known) {
			pic := Picture(seq, ref, v.World(ref), v.Services(ref.Namespace), p.domain)
			if !pic.Gone {
				pic.Told = v.LastChange(ref)
			}
			drawn = append(drawn, pic)
		}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	p.seq = seq
	if !slices.Equal(hosts, p.hosts) {
		p.hosts, p.hosted = hosts, p.version
	}
	for _, pic := range drawn {
		p.put(pic)
	}
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *publisher) known() []spec.SetRef {
	p.mu.Lock()
	defer p.mu.Unlock()
	refs := make([]spec.SetRef, 0, len(p.sets))
	for ref := range p.sets {
		refs = append(refs, ref)
	}
	return refs
}

// dirty is what to draw again. A node that moved touches every set: proof.Judge.EffectiveReady
// counts all nodes.
func (p *publisher) dirty(v cache.View, ch cache.Changes, known []spec.SetRef) map[spec.SetRef]bool {
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

// put takes over a picture if it differs; mu is held.
func (p *publisher) put(pic records.Snapshot) {
	body := pic
	body.Sequence = spec.Sequence{}
	old := p.sets[pic.Ref]
	if old == nil && pic.Gone || old != nil && reflect.DeepEqual(old.body, body) {
		return
	}
	doc, err := json.Marshal(pic)
	if err != nil {
		return // names and addresses always marshal
	}
	p.sets[pic.Ref] = &published{version: p.version, body: body, json: doc}
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

// news is what a session has not been told yet.
type news struct {
	docs  [][]byte // pictures, in the order of their sets
	hosts []string // the addresses of all nodes, when they changed
	seq   spec.Sequence
	next  uint64 // the version to ask with next
}

// since returns what is newer than version (0: all sets that exist, and all hosts).
func (p *publisher) since(version uint64) news {
	p.mu.Lock()
	defer p.mu.Unlock()
	var fresh []*published
	for _, s := range p.sets {
		if s.version > version && (version > 0 || !s.body.Gone) {
			fresh = append(fresh, s)
		}
	}
	slices.SortFunc(fresh, func(a, b *published) int { return cmp.Compare(a.body.Ref.String(), b.body.Ref.String()) })
	n := news{seq: p.seq, next: p.version}
	for _, s := range fresh {
		n.docs = append(n.docs, s.json)
	}
	if p.hosted > version {
		n.hosts = p.hosts // replaced whole, never changed
	}
	return n
}

// wait returns a channel that is closed at the next round.
func (p *publisher) wait() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moved
}

// reach blocks until a round has seen revision rev, or ctx ends.
func (p *publisher) reach(ctx context.Context, rev store.Rev) error {
	for {
		p.mu.Lock()
		reached, moved := p.seq.Rev >= int64(rev), p.moved
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
