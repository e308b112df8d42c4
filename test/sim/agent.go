package sim

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/deadline"
	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/reclaim"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/test/sim/rules"
)

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
	interests *session.Interests
	// conditions are what the host is short of: here that it is being shut down.
	conditions *session.Conditions
	prepared   *session.PreparedImages
	toPrepare  []records.Preparation // as sent last
	// hasPrepared is what it says of them.
	hasPrepared []records.Prepared
	sets        *files.SetFiles
	notes       spec.LifeID // that has the volume of a claim about to be handed out
	unsaved     bool        // snapshots changed
	book        files.Cache
	epochs      map[records.VolumeID]int64               // of the servers that ordered something of a volume
	forgotten   map[records.VolumeID]records.VolumeOrder // the last order of each, for a plant
	seq         int64
	sess        *stream
	mover       *move.Mover
	moved       *session.MoveReports
	copier      *copier
	timers      []*timer
}

// begin takes up what stands here, as Agent.Run does.
func (n *node) begin(a *agent) {
	keeper := n.newKeeper(a)
	host := hostRuntime{n: n}
	a.outbox = session.NewOutbox(300*time.Millisecond, time.Second, n.now)
	a.known, a.snapshots = session.OpenKnown(n.docs, discard), session.OpenSnapshots(n.tmpfs.docs, discard)
	a.interests = session.NewInterests(a.snapshots, n.uptime, a.outbox.Notify)
	a.prepared = session.NewPreparedImages(a.outbox.Notify)
	a.conditions = session.NewConditions(a.outbox.Notify)
	a.keeper, a.reclaimer = keeper, n.newReclaimer(a)
	n.beginMoves(a)
	a.client = session.NewClient(session.Config{
		Home: home{n}, Boot: n.boot(), Workers: a, Ledger: a.led, Deadlines: keeper, Reclaimer: a.reclaimer, Outbox: a.outbox,
		Facts:    records.NodeFacts{Name: n.name, UID: n.uid, Boot: n.boot(), Level: spec.Level, Classes: allClasses, SharedClasses: []string{rules.SharedClass}},
		Prepared: a.prepared, Prepare: func(list []records.Preparation) { a.toPrepare = list; n.prepare() },
		Known: a.known, Snapshots: a.snapshots, Interests: a.interests, Conditions: a.conditions, Files: &a.book, FilesChanged: func() {},
		MoveReports: a.moved, TakeMoves: a.takeMoves,
		SnapshotsChanged: func([]records.Snapshot) { a.unsaved = true }, Listed: func(spec.Sequence) {}, HostsChanged: func([]netip.Addr) {},
		Clock: n.uptime, Now: n.now, Logger: slog.New(refusals{n}),
	})
	a.sets = files.NewSetFiles(files.SetFilesConfig{
		Snapshot: a.snapshots.Find, History: a.snapshots.History, Confirmed: a.client.ConfirmedUntil,
		RunDir: runDir, Disk: n.tmpfs.sets, Renew: tuning.Renew, Now: n.now, Logger: discard,
	})
	a.shared = &worker.Config{
		Runtime: host, Network: host, Volumes: hostVolumes{n: n}, Ledger: a.led, Guard: keeper, Files: n.tmpfs,
		Find: a.book.Find, Sets: memberSets{a}, Self: n.follow,
		Report: a.report, Seq: a.nextSeq, Node: files.Node{Name: n.name}, Boot: n.boot(), RunDir: runDir,
		Epoch: func() int64 {
			if n.w.plant.BeginsOldJobs { // of lives it is asked once more
				return 0
			}
			return a.known.Now().At.Epoch
		}, Clock: n.uptime, Now: n.now, Tuning: tuning, Logger: discard,
		Background: background{n}, Next: n.choose, AfterFunc: a.after,
	}
	a.found = map[spec.Identity]worker.Found{}
	for _, id := range n.identities((*place).visible) {
		a.found[id] = worker.Found{Containers: n.places[id].standing()}
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

// timer is what is done at a moment on the node's clock.
type timer struct {
	at time.Time
	do func()
}

// after has something be done later; no call takes time, so that only what goes on beside them lasts so long.
func (a *agent) after(d time.Duration, do func()) (stop func() bool) {
	t := &timer{a.n.now().Add(d), do}
	a.timers = append(a.timers, t)
	return func() bool {
		before := len(a.timers)
		a.timers = slices.DeleteFunc(a.timers, func(x *timer) bool { return x == t })
		return len(a.timers) < before
	}
}

// ring does what is due.
func (a *agent) ring() {
	for i := 0; i < len(a.timers); {
		t := a.timers[i]
		if a.n.now().Before(t.at) {
			i++
			continue
		}
		a.timers = slices.Delete(a.timers, i, i+1)
		t.do()
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

// The agent is the lives of its own sessions.
var _ session.Workers = (*agent)(nil)

// Tell implements session.Workers.
func (a *agent) Tell(l records.Life) {
	a.n.w.judge.told(&l)
	a.n.worker(l.Member.ID).tell(l)
}

// Over implements session.Workers.
func (a *agent) Over(id spec.Identity, token spec.Token) { a.n.worker(id).over(token) }

// FilesChanged implements session.Workers.
func (a *agent) FilesChanged(of func(spec.SetRef) bool) { a.sets.Changed(of) }

// SourcesChanged implements session.Workers.
func (a *agent) SourcesChanged(of func(files.FileSource) bool) {
	for _, id := range a.ids {
		a.workers[id].SourcesChanged(of)
		a.workers[id].due = true
	}
}

// Confirmed implements session.Workers.
func (a *agent) Confirmed() {
	a.sets.ConfirmedMoved()
	for _, id := range a.ids {
		a.workers[id].Confirmed()
		a.workers[id].due = true
	}
}

// Last implements session.Workers.
func (a *agent) Last() (reports []records.Report) {
	for _, id := range a.ids {
		if r, ok := a.workers[id].Last(); ok && !r.Phase.Over() {
			reports = append(reports, r)
		}
	}
	return reports
}

// Pending implements session.Workers.
func (a *agent) Pending() (lives []spec.LifeID) {
	for _, id := range a.ids {
		if token, ok := a.workers[id].Pending(); ok {
			lives = append(lives, spec.LifeID{ID: id, Token: token})
		}
	}
	return lives
}

// newReclaimer is the agent's, on the node's volumes.
func (n *node) newReclaimer(a *agent) *reclaim.Reclaimer {
	return reclaim.New(reclaim.Config{
		Volumes: hostVolumes{n: n}, RetryFirst: retryTime, RetryMost: retryTime, Now: n.now, Reported: a.outbox.Notify, Logger: discard,
		Open: func(id spec.Identity) spec.Token { return a.led.Look(id).Open },
		Empty: func(ctx context.Context, id spec.Identity) (bool, error) {
			empty, err := hostRuntime{n: n}.Empty(ctx, id)
			for n.w.chance(2) { // before the volume is moved the worker may go on
				if x := a.workers[id]; x == nil || !x.step() {
					break
				}
				n.mustRun(a)
			}
			return empty, err
		},
	})
}

// utter has a node say something of volumes.
func (x *stream) utter(m *proto.VolumeReports) {
	for _, r := range got(wire.ToDocuments[records.VolumeReport](m.GetReportsJson())) {
		if r.State == records.VolumeRefused {
			x.n.w.count("volume refused: " + string(r.Cause))
		}
	}
	if m.GetFull() || len(m.GetReportsJson()) > 0 {
		x.n.uttered = append(x.n.uttered[max(0, len(x.n.uttered)-7):], m)
	}
	x.up = append(x.up, &proto.FromNode{Kind: &proto.FromNode_Volumes{Volumes: m}})
}

// reclaim has an agent do something of what was ordered of volumes.
func (w *Cluster) reclaim() bool {
	at := w.r.IntN(len(w.nodes))
	for i := range w.nodes {
		if n := w.nodes[(at+i)%len(w.nodes)]; n.agent != nil && n.reclaim() {
			return true
		}
	}
	return false
}

// reclaim is one round of the agent's reclaimer; false: nothing was due.
func (n *node) reclaim() (did bool) {
	a := n.agent
	if len(a.epochs) == 0 {
		return false
	}
	for _, o := range a.forgotten {
		n.takeAny(o)
	}
	n.run(func() {
		a.reclaimer.Round(n.w.ctx, func(work func()) { did = true; work() })
	})
	return did
}
