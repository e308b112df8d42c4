package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// life names one life; lives of different identities may have the same token.
type life struct {
	id    spec.Identity
	token spec.Token
}

// node is one machine: what stands on it is the truth.
type node struct {
	w        *Cluster
	name     spec.NodeName
	uid      spec.UID
	boots    int
	power    bool
	cut      bool      // its network is down
	late     time.Time // until when it, or the machine, stays so
	pace     pace
	stopped  bool      // the agent's process is
	noJobs   bool      // it is too old for jobs
	noChange bool      // it is too old for changes in place
	downAt   time.Time // on its own clock: when it is to be down, if it ends lives by itself
	removed  bool      // its record was, and it has not come back
	disk     *disk
	newest   spec.Sequence // on disk
	docs     documents     // likewise: of the store
	classes  map[string]*class
	made     map[records.VolumeID]bool                          // on disk: the volumes that were made here
	users    map[records.VolumeID]map[spec.Identity]spec.LifeID // likewise: who has the volumes of claims
	erased   map[records.VolumeID]bool                          // what was ever erased here
	lies     map[records.VolumeID]bool                          // of which it ever said what was not so
	uttered  []*proto.VolumeReports                             // what it said of volumes lately
	places   map[spec.Identity]*place
	slow     map[slowKey]time.Time // operations that fail until then
	// runtimeDown is until when containerd does not answer.
	runtimeDown time.Time
	parts       map[partKey]runtime.MovePart // likewise: in moves
	tmpfs       *tmpfs
	guard       *guard // likewise on tmpfs
	agent       *agent // nil: not running
}

func newNode(w *Cluster, name spec.NodeName) *node {
	n := &node{
		w: w, name: name, uid: spec.UID("uid-" + name), boots: 1, power: true, disk: &disk{}, docs: documents{}, erased: map[records.VolumeID]bool{}, slow: map[slowKey]time.Time{},
		classes: w.newClasses(), made: map[records.VolumeID]bool{}, users: map[records.VolumeID]map[spec.Identity]spec.LifeID{}, lies: map[records.VolumeID]bool{}, places: map[spec.Identity]*place{},
		parts: map[partKey]runtime.MovePart{},
	}
	n.disk.node, n.tmpfs, n.guard = n, newTmpfs(n), newGuard(n)
	return n
}

func (n *node) boot() spec.BootID { return spec.BootID(fmt.Sprint("boot", n.boots)) }

func (n *node) session() *stream {
	if n.agent == nil {
		return nil
	}
	return n.agent.sess
}

// startAgent begins the agent's process: it adopts what stands here and what the
// ledger says is open or not told.
func (n *node) startAgent() {
	if n.w.plant.ForgetfulAgent {
		n.disk.now, n.disk.safe = nil, nil
	}
	led, err := ledger.OpenDisk(n.disk, n.boot())
	if err != nil {
		if errors.Is(err, ledger.ErrCorrupt) {
			n.w.fail("ledger", "%s: %v", n.name, err)
		}
		return // its disk failed; it is started again
	}
	a := &agent{
		n: n, led: led, workers: map[spec.Identity]*memberWorker{},
		epochs: map[records.VolumeID]int64{}, forgotten: map[records.VolumeID]records.VolumeOrder{}, seq: led.Starts() << 32,
	}
	n.agent, n.noJobs = a, n.w.hasJobs && !n.w.judge.settling && n.w.chance(6)
	n.noChange = n.w.changes && !n.w.judge.settling && n.w.chance(8)
	n.w.note("%s's agent starts in %s", n.name, n.boot())
	n.run(func() { n.begin(a) })
}

// stopAgent ends the agent's process as SIGKILL does.
func (n *node) stopAgent(why string) bool {
	if n.agent == nil {
		return false
	}
	n.endSession(why)
	n.leavesJobs()
	n.agent, n.stopped = nil, false
	n.w.note("%s's agent ends: %s", n.name, why)
	return true
}

// place is what stands here of an identity.
func (n *node) place(id spec.Identity) *place {
	p := n.places[id]
	if p == nil {
		p = &place{n: n, id: id}
		n.places[id] = p
	}
	return p
}

// worker is that of an identity, begun if need be.
func (n *node) worker(id spec.Identity) *memberWorker {
	if x := n.agent.workers[id]; x != nil {
		return x
	}
	found, here := n.agent.found[id]
	found.Clean = !here
	x := newWorker(n, id, found)
	n.agent.workers[id] = x
	n.agent.ids = append(n.agent.ids, id)
	return x
}

// powerOff ends all that runs; what was not synced may be lost.
func (n *node) powerOff() {
	n.stopAgent("the machine went down")
	n.power = false
	n.stopTrash()
	n.disk.powerCut(n.w.r.IntN(60))
	for id, p := range n.places {
		if token := p.alive(); !token.IsZero() {
			n.w.judge.ended(life{id, token})
		}
		p.reset()
	}
	n.tmpfs, n.guard, n.runtimeDown = newTmpfs(n), newGuard(n), time.Time{}
}

func (n *node) powerOn() {
	n.power = true
	n.startTrash()
	n.boots++
	n.w.note("%s boots: %s", n.name, n.boot())
}

// start starts the agent, after the machine if that is off.
func (n *node) start() bool {
	if n.agent != nil {
		return false
	}
	if !n.power {
		if n.w.clock.Before(n.late) || !n.w.chance(3) {
			return false
		}
		n.powerOn()
	}
	n.startAgent()
	return true
}

// work has the first worker of a node that has something to do do some of it.
func (n *node) work() bool {
	if n.agent == nil || n.stopped || len(n.agent.ids) == 0 {
		return false
	}
	workers, ids := n.agent.workers, n.agent.ids
	at, most := n.w.r.IntN(len(ids)), 1+n.w.r.IntN(10)
	for i := range ids {
		if workers[ids[(at+i)%len(ids)]].steps(most) > 0 {
			return true
		}
	}
	return false
}

// mostNodes bounds the nodes that join later.
const mostNodes = 6

// addNode has a machine join that no backup of before knows.
func (w *Cluster) addNode() bool {
	if len(w.nodes) >= mostNodes {
		return false
	}
	name := fmt.Sprint("n", len(w.nodes))
	w.newcomer(spec.NodeName(name), "uid-"+name)
	return true
}

// takeName has a new machine join under the name of one that was removed.
func (n *node) takeName() bool {
	w := n.w
	if w.ownerOf(n.name) != "" || n.session() != nil || len(w.nodes) >= mostNodes {
		return false
	}
	w.newcomer(n.name, fmt.Sprintf("uid-%s-%d", n.name, len(w.nodes)))
	w.backups = nil // no name in them is another machine's
	return true
}

// newcomer has a machine begin its agent for the first time.
func (w *Cluster) newcomer(name spec.NodeName, uid string) {
	n := newNode(w, name)
	n.uid, n.pace = spec.UID(uid), somePace(w.r)
	w.nodes = append(w.nodes, n)
	n.startAgent()
	w.note("%s (%s) is new", n.name, n.uid)
}

// ownerOf is the machine that has joined under a name; "": none.
func (w *Cluster) ownerOf(name spec.NodeName) spec.UID {
	for _, n := range w.view().Nodes() {
		if n.Node.Name == name {
			return n.Node.UID
		}
	}
	return ""
}
