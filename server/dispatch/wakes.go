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

// What goes to many is gathered for longer. snapshotInterval is the least time between two rounds of snapshots: what changes
// meanwhile is one. For each session that a round concerns it is sessionTime more, up to mostInterval. Nodes with a member of
// a set are woken at once, and again sessionTime for each that was woken later, up to mostNear.
//
// farInterval is how long a change waits for others before it is sent to nodes without a member of the set that asked for it,
// or to all. Which names and addresses there are, which all nodes need for DNS and routes only, is gathered for
// briefTime for each session, farInterval at least and mostBrief at most.
const (
	snapshotInterval = 10 * time.Millisecond
	sessionTime      = 500 * time.Microsecond
	mostInterval     = 50 * time.Millisecond
	mostNear         = 250 * time.Millisecond
	farInterval      = 100 * time.Millisecond
	briefTime        = time.Millisecond
	mostBrief        = time.Second
)

// intervalAfter is the time until the next round after one that concerned so many sessions.
func intervalAfter(sessions int) time.Duration {
	return min(snapshotInterval+time.Duration(sessions)*sessionTime, mostInterval)
}

// nearAfter is the time until nodes are woken again after so many sessions were.
func nearAfter(woken int) time.Duration { return min(time.Duration(woken)*sessionTime, mostNear) }

// briefAfter is how long what is sent to all of so many sessions is gathered.
func briefAfter(sessions int) time.Duration {
	return min(max(farInterval, time.Duration(sessions)*briefTime), mostBrief)
}

// watchers are the sessions that wait for something to send.
type watchers struct {
	mu    sync.Mutex
	nodes map[spec.NodeName]map[*watcher]bool
	// asking are those that asked for a set.
	asking map[spec.SetRef]map[*watcher]bool
	// What changed that nodes have not been woken for: the nodes with members of sets that changed, those sets, what
	// concerns all nodes (farAll), and what all nodes are told of sets in brief.
	near    map[spec.NodeName]bool
	farSets map[spec.SetRef]bool
	farAll  bool
	brief   bool
}

// watcher is notified when there is something for a session: at once when a set changed that has a
// member on its node, later for anything else that it is sent.
type watcher struct {
	moved *notify.Signal
	every bool // it is sent all of all sets
	// pong: an answer waits until all up to a revision was sent, so each round counts.
	pong  atomic.Bool
	asked map[spec.SetRef]bool // mu of watchers
}

func newWatchers() watchers {
	return watchers{nodes: map[spec.NodeName]map[*watcher]bool{}, asking: map[spec.SetRef]map[*watcher]bool{}, near: map[spec.NodeName]bool{}, farSets: map[spec.SetRef]bool{}}
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

// noteNear notes that a set with members on these nodes changed, and returns how many sessions that concerns.
func (ws *watchers) noteNear(nodes map[spec.NodeName]bool) (sessions int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for node := range nodes {
		ws.near[node] = true
		sessions += len(ws.nodes[node])
	}
	return sessions
}

// waitsNear reports whether a node is to be woken of which noteNear noted something.
func (ws *watchers) waitsNear() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.near) > 0
}

// wakeNear wakes the sessions of the nodes that were noted, and returns how many there are.
func (ws *watchers) wakeNear() (woken int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for node := range ws.near {
		woken += ws.wake(node)
	}
	clear(ws.near)
	return woken
}

// noteFar notes that a set changed (nil: none), whether that is to be sent to all nodes soon, and whether it changed in brief,
// which is sent to all later.
func (ws *watchers) noteFar(ref *spec.SetRef, all, brief bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ref != nil {
		ws.farSets[*ref] = true
	}
	ws.farAll = ws.farAll || all
	ws.brief = ws.brief || brief
}

// waitsBrief returns for how many sessions something in brief was noted; 0: nothing was.
func (ws *watchers) waitsBrief() (sessions int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if !ws.brief {
		return 0
	}
	for _, of := range ws.nodes {
		sessions += len(of)
	}
	return sessions
}

// wakeFar wakes the sessions for which something was noted that is sent soon, and those that are sent all or wait for a
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
	if ws.farAll {
		ws.brief = false
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
	clear(ws.near)
	ws.brief = false
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
