package sim

import (
	"errors"
	"fmt"
	"github.com/stead-project/stead/agent/deadline"
	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/reclaim"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/agent/worker"
	"log/slog"
	"net/netip"
	"time"

	"github.com/stead-project/stead/agent/ledger"
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
	w       *Cluster
	name    spec.NodeName
	uid     spec.UID
	boots   int
	power   bool
	cut     bool      // its network is down
	late    time.Time // until when it, or the machine, stays so
	pace    pace
	stopped bool // the agent's process is
	removed bool // its record was, and it has not come back
	disk    *disk
	newest  spec.Sequence // on disk
	docs    documents     // likewise: of the store
	classes map[string]*class
	made    map[records.VolumeID]bool // on disk: the volumes that were made here
	erased  map[records.VolumeID]bool // what was ever erased here
	lies    map[records.VolumeID]bool // of which it ever said what was not so
	uttered []*proto.VolumeReports    // what it said of volumes lately
	places  map[spec.Identity]*place
	slow    map[slowKey]time.Time // operations that fail until then
	// runtimeDown is until when containerd does not answer.
	runtimeDown time.Time
	tmpfs       *tmpfs
	guard       *guard // likewise on tmpfs
	agent       *agent // nil: not running
}

// agent is the agent's process: it forgets all of this when it ends.
type agent struct {
	n         *node
	led       *ledger.Ledger
	keeper    *deadline.Keeper
	reclaimer *reclaim.Reclaimer
	shared    *worker.Config
	found     map[spec.Identity]worker.Found
	begun     bool // it has looked around, and has workers
	workers   map[spec.Identity]*memberWorker
	ids       []spec.Identity // of workers, in the order in which they began
	outbox    *session.Outbox
	known     *session.Known
	client    *session.Client
	snapshots *session.SnapshotCache
	unsaved   bool // snapshots changed
	book      files.Cache
	epochs    map[records.VolumeID]int64               // of the servers that ordered something of a volume
	forgotten map[records.VolumeID]records.VolumeOrder // the last order of each, for a plant
	seq       int64
	sess      *stream
}

func newNode(w *Cluster, name spec.NodeName) *node {
	n := &node{
		w: w, name: name, uid: spec.UID("uid-" + name), boots: 1, power: true, disk: &disk{}, docs: documents{}, erased: map[records.VolumeID]bool{}, slow: map[slowKey]time.Time{},
		classes: w.newClasses(), made: map[records.VolumeID]bool{}, lies: map[records.VolumeID]bool{}, places: map[spec.Identity]*place{},
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
	n.agent = a
	n.w.note("%s's agent starts in %s", n.name, n.boot())
	n.run(func() { n.begin(a) })
}

// begin takes up what stands here, as Agent.Run does.
func (n *node) begin(a *agent) {
	keeper, err := n.newKeeper(a)
	if err != nil {
		panic(err)
	}
	host := hostRuntime{n: n}
	a.outbox = session.NewOutbox(300*time.Millisecond, time.Second, n.now)
	a.known, a.snapshots = session.OpenKnown(n.docs, discard), session.OpenSnapshots(n.tmpfs.docs, discard)
	a.keeper, a.reclaimer = keeper, n.newReclaimer(a)
	a.client = session.NewClient(session.Config{
		Home: home{n}, Boot: n.boot(), Workers: a, Ledger: a.led, Deadlines: keeper, Reclaimer: a.reclaimer, Outbox: a.outbox,
		Facts: records.NodeFacts{Name: n.name, UID: n.uid, Boot: n.boot(), Classes: allClasses, SharedClasses: []string{sharedClass}},
		Known: a.known, Snapshots: a.snapshots, Files: &a.book, FilesChanged: func() {},
		SnapshotsChanged: func([]records.Snapshot) { a.unsaved = true }, HostsChanged: func([]netip.Addr) {},
		Clock: n.uptime, Now: n.now, Logger: slog.New(refusals{n}),
	})
	a.shared = &worker.Config{
		Runtime: host, Network: host, Volumes: hostVolumes{n: n}, Ledger: a.led, Guard: keeper, Files: n.tmpfs,
		Find:    a.book.Find,
		Picture: a.snapshots.Find,
		History: a.snapshots.History, Confirmed: a.client.ConfirmedUntil,
		Report: a.report, Seq: a.nextSeq, Node: files.Node{Name: n.name}, Boot: n.boot(), RunDir: "/run",
		Epoch: func() int64 { return a.known.Now().At.Epoch }, Clock: n.uptime, Now: n.now, Tuning: tuning, Logger: discard,
		Background: background{n}, Next: n.choose,
		AfterFunc: func(time.Duration, func()) func() bool { return func() bool { return true } }, // no call takes time
	}
	a.found = map[spec.Identity]worker.Found{}
	for _, id := range n.identities((*place).visible) {
		f := worker.Found{}
		if n.places[id].state != "" {
			f.Containers = []string{containerName}
		}
		a.found[id] = f
	}
	a.begun = true
	keeper.Tick()
	for _, id := range sortedKeys(a.found) {
		n.worker(id)
	}
	for _, e := range a.led.Entries() {
		if !e.Open.IsZero() || len(e.Ends) > 0 {
			n.worker(e.ID)
		}
	}
}

// tuning are the waits of workers: short, so that a run sees their ends.
var tuning = worker.Tuning{
	CrashFirst: 2 * time.Second, CrashMost: time.Minute, ImageFirst: retryTime, ImageMost: retryTime,
	RetryFirst: retryTime, RetryMost: retryTime,
}.Filled()

const retryTime = time.Second

func (a *agent) nextSeq() int64 {
	a.seq++
	return a.seq
}

// crashed is what an agent panics with that dies in the middle of something.
type crashed struct{ a *agent }

// crash ends the agent here and now, as SIGKILL does; it does not return.
func (n *node) crash(why string) {
	a := n.agent
	n.stopAgent("it crashed " + why)
	panic(crashed{a})
}

// mayCrash is a moment at which the agent may die.
func (n *node) mayCrash(why string) {
	if w := n.w; !w.judge.settling && w.chance(500) {
		w.count("fault: agent dies in an operation")
		n.crash(why)
	}
}

// run has the agent do something, in which it may die.
func (n *node) run(do func()) (died bool) {
	a := n.agent
	defer func() {
		if r := recover(); r != nil {
			if c, ok := r.(crashed); !ok || c.a != a {
				panic(r)
			}
			died = true
		}
	}()
	do()
	return false
}

// mustRun stops what an agent does that died meanwhile.
func (n *node) mustRun(a *agent) {
	if n.agent != a {
		panic(crashed{a})
	}
}

// stopAgent ends the agent's process as SIGKILL does.
func (n *node) stopAgent(why string) {
	if n.agent == nil {
		return
	}
	n.endSession(why)
	n.agent, n.stopped = nil, false
	n.w.note("%s's agent ends: %s", n.name, why)
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
		if !p.alive.IsZero() {
			n.w.judge.ended(life{id, p.alive})
		}
		*p = place{n: n, id: id, serial: p.serial + 1, runs: p.runs + 1}
	}
	n.tmpfs, n.guard, n.runtimeDown = newTmpfs(n), newGuard(n), time.Time{}
}

func (n *node) powerOn() {
	n.power = true
	n.startTrash()
	n.boots++
	n.w.note("%s boots: %s", n.name, n.boot())
}

func (w *Cluster) startAgent() bool {
	n := w.someNode()
	if n.agent != nil {
		return false
	}
	if !n.power {
		if w.clock.Before(n.late) || !w.chance(3) {
			return false
		}
		n.powerOn()
	}
	n.startAgent()
	return true
}

// work has the first worker of a node that has something to do do some of it.
func (w *Cluster) work() bool {
	n := w.someNode()
	if n.agent == nil || n.stopped || len(n.agent.ids) == 0 {
		return false
	}
	workers, ids := n.agent.workers, n.agent.ids
	at, most := w.r.IntN(len(ids)), 1+w.r.IntN(10)
	for i := range ids {
		if workers[ids[(at+i)%len(ids)]].steps(most) > 0 {
			return true
		}
	}
	return false
}
