package dispatch

import (
	"maps"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// unsent is what a session has not sent yet.
type unsent struct {
	sets  [][]byte // differences, in the order of their sets
	docs  [][]byte // snapshots for a node that does not know differences, in that order
	hosts []string // the addresses of all nodes, when they changed
	// servers are the addresses of all servers, when they changed.
	servers []string
	// authority is the id of the one that signs, when that changed.
	authority string
	// tunnel is the tunnel between hosts in JSON, when it changed.
	tunnel []byte
	seq    spec.Sequence
	next   uint64 // the version to ask with next
}

// none: there is nothing.
func (n *unsent) none() bool {
	return len(n.sets)+len(n.docs)+len(n.hosts)+len(n.servers)+len(n.authority)+len(n.tunnel) == 0
}

// need is what a session is to be sent.
type need struct {
	since       uint64                 // what is newer than this version; 0: all sets that exist, and all hosts
	differences bool                   // else documents
	brief       func(spec.SetRef) bool // nil: no set is sent in brief
	whole       map[spec.SetRef]bool   // sets that are sent whole
	turned      map[spec.SetRef]bool   // sets that were in the other form up to that version
}

// since returns what a session needs.
func (p *snapshotPublisher) since(want need) unsent {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := unsent{seq: p.seq, next: p.version}
	brief := func(ref spec.SetRef) bool { return want.brief != nil && want.brief(ref) }
	for _, ref := range p.movedSince(want.since) {
		switch s := p.sets[ref]; {
		case want.since == 0 && s.body.Gone, want.whole[ref], want.turned[ref]:
		case want.differences:
			n.sets = append(n.sets, s.since(want.since, brief(ref), p.domain)...)
		default:
			n.docs = append(n.docs, s.jsonDoc())
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(want.whole), spec.SetRef.Compare) {
		n.sets = append(n.sets, p.published(ref).wholeDoc(brief(ref), p.domain))
	}
	for _, ref := range slices.SortedFunc(maps.Keys(want.turned), spec.SetRef.Compare) {
		if !want.whole[ref] {
			n.sets = append(n.sets, p.published(ref).turned(want.since, brief(ref), p.domain)...)
		}
	}
	if p.hostsVersion > want.since {
		n.hosts = p.hosts // replaced whole, never changed
	}
	if p.serversVersion > want.since {
		n.servers = p.servers // replaced whole, never changed
	}
	if p.authorityVersion > want.since {
		n.authority = p.authority
	}
	if p.tunnelVersion > want.since {
		n.tunnel = p.tunnel
	}
	return n
}

// published is a set as it was published last; of one that was not, that it is gone. mu is held.
func (p *snapshotPublisher) published(ref spec.SetRef) *publishedSet {
	if s := p.sets[ref]; s != nil {
		return s
	}
	s := &publishedSet{body: records.Snapshot{Ref: ref, Sequence: p.seq, Gone: true}}
	s.full.number, s.brief.number = p.version, p.version
	return s
}

// movedSince lists the sets that changed after version, in order; mu is held.
func (p *snapshotPublisher) movedSince(version uint64) []spec.SetRef {
	if p.moved.until == p.version && p.moved.since == version && p.version > 0 {
		return p.moved.refs
	}
	var refs []spec.SetRef
	if version == 0 || version < p.oldest {
		for ref, s := range p.sets {
			if s.full.number > version {
				refs = append(refs, ref)
			}
		}
	} else {
		for i := len(p.rounds) - 1; i >= 0 && p.rounds[i].version > version; i-- {
			refs = append(refs, p.rounds[i].sets...)
		}
	}
	slices.SortFunc(refs, spec.SetRef.Compare)
	p.moved = movedSets{version, p.version, slices.Compact(refs)}
	return p.moved.refs
}
