package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
	"github.com/stead-project/stead/test/sim/plants"
)

// Cluster is one simulated cluster.
type Cluster struct {
	seed  uint64
	plant plants.Plant
	ctx   context.Context
	r     *rand.Rand // of the present choice
	pcg   *rand.PCG
	clock time.Time

	mem      *memstore.Store
	epoch    int64
	servers  []*server
	nodes    []*node
	refs     []spec.SetRef
	observer *cache.Cache // shows the store as it is
	seen     store.Rev    // of observer
	volumes  int
	uids     int
	shared   *fileSystem                  // that of all nodes
	classOf  map[claimOfSet]string        // of claims that are made; none: the local one
	fences   bool                         // the shared class takes no late write
	composed bool                         // members have init containers, sidecars and hooks
	shares   bool                         // members mount PersistentVolumeClaims
	prepares bool                         // nodes pull images of updates ahead
	moves    bool                         // members are moved
	hasJobs  bool                         // sets have jobs
	differs  bool                         // members of a set differ
	changes  bool                         // and change in place
	read     map[spec.SetRef]hooks.JobRun // what a person read last of the jobs of each
	keys     int                          // of moves, that agents made

	claimRefs []spec.SetRef // of the identities of those

	backups []saved
	// restores counts them; restoring: the store is being filled.
	restores  int
	restoring bool
	origin    int            // what the store names itself
	raft      uint64         // its term
	back      bool           // it went back, and nobody has declared that
	recovered bool           // one server went on alone, likewise
	forgot    bool           // and a server that knew more has lost its memory
	epochs    map[int64]bool // all there were

	q      *raftStore    // of the servers' own store; nil: the store is another program's
	frozen time.Duration // for how long leases were not counted

	fencing *fencing // that is under way; nil: none

	judge *judge
	// Steps counts what was done, choices without effect left out; Counts each kind.
	Steps  int
	Counts map[string]int
	// Trace is called with each thing that happens, when it is set.
	Trace func(line string)
	fault *Violation
	// beyondIt is why the run ended early: what came of it is not promised. "": it goes on.
	beyondIt  string
	cancelled func() bool // nobody wants to know the rest of the run
	done      []Choice
}

// Violation is a broken promise.
type Violation struct {
	Judge string // which one saw it
	Text  string
}

func (v *Violation) Error() string { return v.Judge + ": " + v.Text }

const (
	clusterID  = "c1"
	cold       = 20 * time.Second
	sessionTTL = 15 * time.Second
	leaderTTL  = 10 * time.Second
)

// began is the first moment of every run.
var began = time.Unix(1_000_000, 0)

// New makes the cluster of a seed, with a fault put in on purpose unless plant is zero.
func New(seed uint64, plant plants.Plant) *Cluster {
	w := &Cluster{
		seed: seed, plant: plant, ctx: context.Background(), clock: began, epoch: 1,
		origin: 1, raft: 1, epochs: map[int64]bool{1: true},
		shared: newFileSystem(), classOf: map[claimOfSet]string{}, read: map[spec.SetRef]hooks.JobRun{},
		cancelled: func() bool { return false }, Counts: map[string]int{}, pcg: rand.NewPCG(seed, 1),
	}
	w.r = rand.New(w.pcg)
	paces := rand.New(rand.NewPCG(seed, 3))
	w.judge = newJudge(w)
	w.freshStore()
	w.commit(store.Put(store.ClusterKey, []byte(clusterID)), store.Put(store.EpochKey, []byte("1")))
	for i := range 1 + w.r.IntN(3) {
		w.servers = append(w.servers, newServer(w, fmt.Sprint("s", i)))
		w.servers[i].pace = somePace(paces)
	}
	for i := range 1 + w.r.IntN(3) {
		w.nodes = append(w.nodes, newNode(w, spec.NodeName(fmt.Sprint("n", i))))
		w.nodes[i].pace = somePace(paces)
	}
	for i := range 1 + w.r.IntN(4)/3 {
		w.refs = append(w.refs, spec.SetRef{Namespace: "default", Name: spec.SetName([]string{"db", "kv"}[i])})
	}
	for _, s := range w.servers {
		s.start()
	}
	for _, n := range w.nodes {
		n.startAgent()
		n.connect(w.servers[0])
	}
	for _, ref := range w.refs {
		user{w}.createSet(ref)
	}
	return w
}

func (w *Cluster) freshStore() {
	w.mem = memstore.New(memstore.WithClock(func() time.Time { return w.clock.Add(-w.frozen) }), memstore.WithHistory(2000), memstore.WithCheckedRecords())
	w.observer, w.seen = cache.New(w.mem, discard), 1
	must(w.observer.Load(1, nil))
	if w.q != nil {
		w.q.rebase(1, nil)
	}
}

// Do makes one choice; after a violation nothing happens any more.
func (w *Cluster) Do(c Choice) {
	if w.over() {
		return
	}
	w.done = append(w.done, c)
	w.pcg.Seed(c.R, 7)
	w.advance(time.Duration(w.r.IntN(400)) * time.Millisecond)
	if w.q != nil && !w.q.ready() && direct[c.Kind] {
		return // no server would answer
	}
	if actions[c.Kind](w) {
		w.Steps++
		w.Counts[c.Kind]++
	}
	w.look()
}

// Run makes n choices of the seed's own and settles after every few hundred.
func (w *Cluster) Run(n int) *Violation {
	d := newDealer(w.seed, w.plant)
	w.Do(Choice{"choose", d.r.Uint64N(1_000_000)})
	w.Do(Choice{"compose", d.r.Uint64N(1_000_000)})
	w.Do(Choice{"share", d.r.Uint64N(1_000_000)})
	w.Do(Choice{"ahead", w.seed % 1_000_000})
	if d.servers {
		w.Do(Choice{"servers", w.seed % 1_000_000})
	}
	if d.jobs {
		w.Do(Choice{"jobs", d.r.Uint64N(1_000_000)})
	}
	if d.moves {
		w.Do(Choice{"moves", w.seed % 1_000_000})
	}
	if d.changes {
		w.Do(Choice{"change", d.r.Uint64N(1_000_000)})
	}
	if d.differs {
		w.Do(Choice{"differ", d.r.Uint64N(1_000_000)})
	}
	for i := 1; i <= n && !w.over() && !w.cancelled(); i++ {
		w.Do(d.next(i))
		if i%d.settles() == 0 || i == n {
			w.Do(Choice{"settle", d.r.Uint64N(1_000_000)})
			if d.jobs { // which run when all is well
				w.Do(Choice{"jobs", d.r.Uint64N(1_000_000)})
			}
		}
	}
	return w.fault
}

// over: a promise was broken, or what happens is not promised any more.
func (w *Cluster) over() bool { return w.fault != nil || w.beyondIt != "" }

// Violation is the promise that was broken; nil: none.
func (w *Cluster) Violation() *Violation { return w.fault }

func (w *Cluster) fail(judge, format string, args ...any) {
	if !w.over() && !strings.Contains(w.plant.Blind, judge) {
		w.fault = &Violation{judge, fmt.Sprintf(format, args...)}
		w.note("VIOLATION %v", w.fault)
	}
}

func (w *Cluster) note(format string, args ...any) {
	if w.Trace != nil {
		w.Trace(fmt.Sprintf(format, args...))
	}
}

// count counts one action that a decision took.
func (w *Cluster) count(what string) { w.Counts[what]++ }

// chance is true once in n times.
func (w *Cluster) chance(n int) bool { return w.r.IntN(n) == 0 }

// commit writes as someone who needs no guards.
func (w *Cluster) commit(ops ...store.Op) store.Rev {
	return w.write(store.Txn{Then: ops})
}

// write is commit with guards that hold.
func (w *Cluster) write(t store.Txn) store.Rev {
	rev := got(w.mem.Commit(w.ctx, t))
	w.look()
	return rev
}

// must ends the simulation when something fails of which no failure is simulated.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// got is what was returned with an error that must be nil.
func got[T any](v T, err error) T {
	must(err)
	return v
}

// advance moves the clock and keeps alive what lives by leases.
func (w *Cluster) advance(d time.Duration) {
	w.clock = w.clock.Add(d)
	if w.q != nil {
		w.q.tick(d)
	}
	for _, s := range w.servers {
		s.lookBack()
		s.keepAlive()
	}
	w.mem.Expire()
	w.look()
	w.judge.seeSessions()
	for _, n := range w.nodes {
		n.guardLives()
		n.keepAlive()
	}
}

// look takes in what the store has, and judges each change.
func (w *Cluster) look() {
	for _, b := range w.mem.Since(w.seen) {
		w.judge.before(b)
		must(w.observer.Apply(b))
		w.seen = b.Rev
		if w.q != nil {
			w.q.saw(b)
		}
		w.judge.given(w.view(), b)
		w.judge.jobsLeft(w.view())
	}
}

// view is the store as it is.
func (w *Cluster) view() (v cache.View) {
	w.observer.Look(func(x cache.View) { v = x })
	return v
}

func (w *Cluster) newVolume() records.VolumeID {
	w.volumes++
	if w.plant.OneVolumeID {
		w.volumes = (w.volumes-1)%20 + 1
	}
	return records.VolumeID(fmt.Sprintf("%032x", w.volumes))
}

func (w *Cluster) someServer() *server { return w.servers[w.r.IntN(len(w.servers))] }
func (w *Cluster) someNode() *node     { return w.nodes[w.r.IntN(len(w.nodes))] }
func (w *Cluster) someRef() spec.SetRef {
	return w.refs[w.r.IntN(len(w.refs))]
}

func (w *Cluster) wait() bool {
	d := time.Duration(1+w.r.IntN(20)) * time.Second
	for ; d > 0; d -= time.Second {
		w.advance(time.Second)
	}
	return true
}

// mostDrift is by how many parts in a million one clock goes faster than another: within
// the hundredth that SAFETY S5 allows for.
const mostDrift = 9_900

// pace is how fast a process's monotonic clock goes, in parts in a million too fast. No
// wall clock is compared anywhere, so that what it shows is of no matter.
type pace int64

func somePace(r *rand.Rand) pace {
	if r.IntN(3) == 0 {
		return mostDrift * pace(r.IntN(2))
	}
	return pace(r.IntN(mostDrift + 1))
}

func (p pace) of(d time.Duration) time.Duration { return d + d/1_000_000*time.Duration(p) }

// now is what the node's clock shows, which goes on from boot to boot.
func (n *node) now() time.Time { return began.Add(n.pace.of(n.w.clock.Sub(began))) }

func (s *server) now() time.Time { return began.Add(s.pace.of(s.w.clock.Sub(began))) }
