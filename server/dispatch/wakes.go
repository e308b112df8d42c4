package dispatch

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stead-project/stead/internal/notify"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// snapshotInterval is the least time between two rounds of snapshots: what changes
// meanwhile is one. For each session that a round wakes it is sessionTime more, up to mostInterval: what is
// sent to many is gathered for longer. farInterval is how long a change waits for others before it is sent to nodes without
// a member of the set, which need it for DNS and routes only.
const (
	snapshotInterval = 10 * time.Millisecond
	sessionTime      = 500 * time.Microsecond
	mostInterval     = 50 * time.Millisecond
	farInterval      = 100 * time.Millisecond
)

// intervalAfter is the time until the next round after one that woke so many sessions.
func intervalAfter(woken int) time.Duration {
	return min(snapshotInterval+time.Duration(woken)*sessionTime, mostInterval)
}

// watchers are the sessions that wait for something to send.
type watchers struct {
	mu    sync.Mutex
	nodes map[spec.NodeName]map[*watcher]bool
	// asking are those that asked for a set.
	asking map[spec.SetRef]map[*watcher]bool
	// What changed that nodes have not been woken for: sets, and (farAll) what concerns all nodes.
	farSets map[spec.SetRef]bool
	farAll  bool
}

// watcher is notified when there is something for a session: at once when a set changed that has a
// member on its node, soon for anything else that it is sent.
type watcher struct {
	moved *notify.Signal
	every bool // it is sent all of all sets
	// pong: an answer waits until all up to a revision was sent, so each round counts.
	pong  atomic.Bool
	asked map[spec.SetRef]bool // mu of watchers
}

func newWatchers() watchers {
	return watchers{nodes: map[spec.NodeName]map[*watcher]bool{}, asking: map[spec.SetRef]map[*watcher]bool{}, farSets: map[spec.SetRef]bool{}}
}

// add has a session of node notified until stop is called. every: it is sent all of all sets.
func (ws *watchers) add(node spec.NodeName, every bool) (w *watcher, stop func()) {
	w = &watcher{moved: notify.New(), every: every}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	addTo(ws.nodes, node, w)
	return w, func() {
		ws.ask(w, nil)
		ws.mu.Lock()
		defer ws.mu.Unlock()
		removeFrom(ws.nodes, node, w)
	}
}

// ask has w notified of changes of these sets, and no others beside those of its node.
func (ws *watchers) ask(w *watcher, sets map[spec.SetRef]bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if maps.Equal(w.asked, sets) {
		return
	}
	for ref := range w.asked {
		removeFrom(ws.asking, ref, w)
	}
	for ref := range sets {
		addTo(ws.asking, ref, w)
	}
	w.asked = sets
}

func addTo[K comparable](m map[K]map[*watcher]bool, key K, w *watcher) {
	if m[key] == nil {
		m[key] = map[*watcher]bool{}
	}
	m[key][w] = true
}

func removeFrom[K comparable](m map[K]map[*watcher]bool, key K, w *watcher) {
	delete(m[key], w)
	if len(m[key]) == 0 {
		delete(m, key)
	}
}

// noteFar notes that a set changed (nil: none), and whether all nodes are to be sent something.
func (ws *watchers) noteFar(ref *spec.SetRef, all bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ref != nil {
		ws.farSets[*ref] = true
	}
	ws.farAll = ws.farAll || all
}

// wakeFar wakes the sessions for which something was noted, and those that are sent all or wait for a
// revision.
func (ws *watchers) wakeFar() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, of := range ws.nodes {
		for w := range of {
			if ws.farAll || w.every || w.pong.Load() {
				w.moved.Notify()
			}
		}
	}
	for ref := range ws.farSets {
		for w := range ws.asking[ref] {
			w.moved.Notify()
		}
	}
	clear(ws.farSets)
	ws.farAll = false
}

// wakeAll wakes all sessions, and returns how many there are.
func (ws *watchers) wakeAll() (woken int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for node := range ws.nodes {
		woken += ws.wake(node)
	}
	return woken
}

// wakeNodes wakes the sessions of these nodes, and returns how many there are.
func (ws *watchers) wakeNodes(nodes map[spec.NodeName]bool) (woken int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for node := range nodes {
		woken += ws.wake(node)
	}
	return woken
}

// wake wakes the sessions of a node, and returns how many there are; mu is held.
func (ws *watchers) wake(node spec.NodeName) (woken int) {
	for w := range ws.nodes[node] {
		w.moved.Notify()
	}
	return len(ws.nodes[node])
}

// seen is the revision up to which there is something to send.
func (p *snapshotPublisher) seen() store.Rev {
	p.mu.Lock()
	defer p.mu.Unlock()
	return store.Rev(p.seq.Rev)
}
