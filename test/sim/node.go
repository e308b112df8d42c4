package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/step"
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
	w       *World
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
	known   records.Known // likewise
	classes map[string]*class
	made    map[records.VolumeID]bool // on disk: the volumes that were made here
	lies    map[records.VolumeID]bool // of which it ever said what was not so
	uttered []*proto.VolumeReports    // what it said of volumes lately
	places  map[spec.Identity]*place
	kept    map[spec.Identity]keptLife // on tmpfs
	guard   guard                      // likewise
	agent   *agent                     // nil: not running
}

// keptLife is what a worker keeps on tmpfs for the agent after it.
type keptLife struct {
	life      records.Life
	phase     records.Phase
	signalled bool
	ready     bool
	readyOnce bool
	since     time.Time
	restarts  int
}

// agent is the agent's process: it forgets all of this when it ends.
type agent struct {
	led     *ledger.Ledger
	workers map[spec.Identity]*worker
	ids     []spec.Identity // of workers, in the order in which they began
	letters map[life]*letter
	duties  map[records.VolumeID]*duty
	said    map[records.VolumeID]records.VolumeReport // not sent yet
	seq     int64
	sess    *session
}

// letter is the newest report of a life that the server has not stored.
type letter struct {
	report records.Report
	sent   bool
}

func newNode(w *World, name spec.NodeName) *node {
	return &node{
		w: w, name: name, uid: spec.UID("uid-" + name), boots: 1, power: true, disk: &disk{},
		classes: w.newClasses(), made: map[records.VolumeID]bool{}, lies: map[records.VolumeID]bool{}, places: map[spec.Identity]*place{}, kept: map[spec.Identity]keptLife{}, guard: newGuard(),
	}
}

func (n *node) boot() spec.BootID { return spec.BootID(fmt.Sprint("boot", n.boots)) }

func (n *node) session() *session {
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
	n.agent = &agent{
		led: led, workers: map[spec.Identity]*worker{}, letters: map[life]*letter{},
		duties: map[records.VolumeID]*duty{}, said: map[records.VolumeID]records.VolumeReport{}, seq: led.Starts() << 32,
	}
	n.guard.held = false
	if n.w.plant.ForgetsDeadline {
		n.guard.confirmed = n.uptime()
	}
	for _, id := range n.stands() {
		n.worker(id)
	}
	for _, e := range led.Entries() {
		if !e.Open.IsZero() || len(e.Ends) > 0 {
			n.worker(e.ID)
		}
	}
	n.w.note("%s's agent starts in %s", n.name, n.boot())
	n.miss()
}

// stands lists the identities of which something stands here.
func (n *node) stands() []spec.Identity {
	var ids []spec.Identity
	for id, p := range n.places {
		if p.stands() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIdentity)
	return ids
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
		p = &place{n: n, id: id, box: step.Absent}
		n.places[id] = p
	}
	return p
}

// worker is that of an identity, begun if need be.
func (n *node) worker(id spec.Identity) *worker {
	if x := n.agent.workers[id]; x != nil {
		return x
	}
	x := newWorker(n, id)
	n.agent.workers[id] = x
	n.agent.ids = append(n.agent.ids, id)
	return x
}

// put takes a report in place of an older one of its life.
func (a *agent) put(r records.Report) {
	l := life{r.ID, r.Token}
	if old := a.letters[l]; old != nil && old.report.Seq > r.Seq {
		return
	}
	a.letters[l] = &letter{report: r}
}

// due are the reports that were not sent, in the order in which they were made.
func (a *agent) due() []records.Report {
	var list []records.Report
	for _, l := range a.letters {
		if !l.sent {
			l.sent = true
			list = append(list, l.report)
		}
	}
	slices.SortFunc(list, func(x, y records.Report) int { return int(x.Seq - y.Seq) })
	return list
}

// stored ends the sending of a report; the end of a token may then be forgotten.
func (a *agent) stored(l life, seq int64) {
	x := a.letters[l]
	if x == nil || !x.sent || x.report.Seq > seq {
		return
	}
	delete(a.letters, l)
	if x.report.Phase.Over() {
		_ = a.led.Stored(l.id, l.token)
	}
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
		*p = place{n: n, id: id, box: step.Absent, serial: p.serial + 1}
	}
	n.kept, n.guard = map[spec.Identity]keptLife{}, newGuard()
}

func (n *node) powerOn() {
	n.power = true
	n.startTrash()
	n.boots++
	n.w.note("%s boots: %s", n.name, n.boot())
}

func (w *World) startAgent() bool {
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
func (w *World) work() bool {
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
