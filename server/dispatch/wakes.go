package dispatch

import (
	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// wakes has moved notified when there is something for a session of node, until stop is called: at once
// when a set changed that has a member there, soon for anything else.
func (p *snapshotPublisher) wakes(node spec.NodeName) (moved *notify.Signal, stop func()) {
	moved = notify.New()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions[node] == nil {
		p.sessions[node] = map[*notify.Signal]bool{}
	}
	p.sessions[node][moved] = true
	return moved, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.sessions[node], moved)
		if len(p.sessions[node]) == 0 {
			delete(p.sessions, node)
		}
	}
}

// wakeAll wakes all sessions.
func (p *snapshotPublisher) wakeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for node := range p.sessions {
		p.wake(node)
	}
}

// wakeNodes wakes the sessions of these nodes.
func (p *snapshotPublisher) wakeNodes(nodes map[spec.NodeName]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for node := range nodes {
		p.wake(node)
	}
}

// wake wakes the sessions of a node; mu is held.
func (p *snapshotPublisher) wake(node spec.NodeName) {
	for moved := range p.sessions[node] {
		moved.Notify()
	}
}

// seen is the revision up to which there is something to send.
func (p *snapshotPublisher) seen() store.Rev {
	p.mu.Lock()
	defer p.mu.Unlock()
	return store.Rev(p.seq.Rev)
}
