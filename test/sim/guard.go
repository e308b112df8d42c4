package sim

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// guard is what lies on a node's tmpfs for the killers of guarded lives, and the watchdog.
// It is what agent/watchdog has as files and processes, with the same decision.
type guard struct {
	confirmed time.Duration // on the node's clock; 0: never since boot
	records   map[spec.Identity]*record
	watchdog  bool                         // it runs
	acks      map[spec.Identity]spec.Token // what it said that it guards
	killed    map[spec.Identity]spec.Token // whose end was seen once, for a plant
	looks     time.Time                    // when the agent looks for itself at the latest
	held      bool                         // the store is: no life is begun
	evidence  time.Time                    // the truth: when the ping was sent
}

// record is what killers know of a life.
type record struct {
	token spec.Token
	bound time.Duration
	ended bool
}

func newGuard() guard {
	return guard{records: map[spec.Identity]*record{}, acks: map[spec.Identity]spec.Token{}, killed: map[spec.Identity]spec.Token{}}
}

// uptime is the node's clock as killers read it; 0 is never.
func (n *node) uptime() time.Duration { return time.Hour + n.now().Sub(began) }

func (n *node) passed(r *record) bool {
	bound := r.bound
	if n.w.plant.KillsEarly {
		bound /= 2
	}
	return r.ended || watchdog.Passed(n.guard.confirmed, bound, n.uptime())
}

// guarded are the identities that have records, in order.
func (g *guard) guarded() []spec.Identity {
	return slices.SortedFunc(maps.Keys(g.records), compareIdentity)
}

// guardLives is a tick of the killers, then of the agent.
func (n *node) guardLives() {
	g := &n.guard
	if len(g.records) > 0 {
		for _, id := range g.guarded() {
			if n.passed(g.records[id]) {
				n.killGuarded(id, g.records[id])
			}
		}
	}
	if g.watchdog {
		for id, r := range g.records {
			g.acks[id] = r.token
		}
	}
	if n.agent == nil || n.stopped {
		return
	}
	if !g.watchdog {
		g.watchdog = true
		clear(g.acks)
	}
	if !n.w.clock.Before(n.guard.looks) {
		n.miss()
	}
}

// killGuarded has the watchdog, or the life's loggers, kill what is left: as often as it
// takes, within the tick.
func (n *node) killGuarded(id spec.Identity, r *record) {
	p := n.place(id)
	before := n.guard.killed[id] == r.token
	n.guard.killed[id] = r.token
	if p.alive.IsZero() || !n.guard.watchdog && p.logger != r.token || before && n.w.plant.KillsOnce {
		return
	}
	n.w.note("%s: %s %s is killed: its deadline has passed", n.name, id.MemberName(), p.alive)
	n.w.did("guarded life killed")
	if !n.guard.watchdog {
		n.w.did("guarded life killed by its logger")
	}
	n.w.judge.expired(n, id, r)
	p.end()
}

// miss closes the lives whose deadline was missed, and marks their records; false: one
// could not be closed, and no deadline may move.
func (n *node) miss() bool {
	n.guard.looks = n.w.clock.Add(5 * time.Second)
	for _, id := range n.guard.guarded() {
		r := n.guard.records[id]
		if r.ended || !n.passed(r) {
			continue
		}
		// Also one that was never opened, for the disk failed: it is told to be over.
		if n.agent.led.CloseToken(id, r.token, spec.CauseDeadlinePassed) != nil {
			return false
		}
		n.w.note("%s closes %s %s: it missed its deadline", n.name, id.MemberName(), r.token)
		n.w.did("deadline missed")
		n.worker(id)
		if !n.w.judge.settling && n.w.chance(20) {
			n.stopAgent("it crashed between the ledger and the record")
			n.w.did("fault: agent dies between ledger and record")
			return false
		}
		r.ended = true
	}
	return true
}

// confirm moves the deadlines: a server answered a ping that was sent then.
func (n *node) confirm(sent time.Duration, truth time.Time) {
	if n.w.plant.ConfirmedByArrival {
		sent = n.uptime()
	}
	if !n.miss() {
		return
	}
	if n.guard.confirmed < sent {
		n.guard.confirmed, n.guard.evidence = sent, truth
	}
}

// begin records a life for its killers, before its token is opened.
func (x *worker) begin() error {
	if x.bound() == 0 {
		return nil
	}
	r := &record{token: x.token, bound: x.bound()}
	if x.n.guard.held || x.n.passed(r) {
		return errors.New("its deadline would have passed")
	}
	if old := x.n.guard.records[x.id]; old == nil || old.token != x.token {
		x.n.guard.records[x.id] = r
		x.n.w.did("life guarded")
	}
	return nil
}

// bound is that of the life; 0: it is not guarded.
func (x *worker) bound() time.Duration {
	if x.life == nil || x.n.w.plant.StartsUnguarded {
		return 0
	}
	return x.life.Member.Bound
}

// seeGuard looks how a guarded life is guarded, as worker.seeGuard does.
func (x *worker) seeGuard(s *step.Seen) {
	r := x.n.guard.records[x.id]
	recorded := r != nil && r.token == x.token
	if x.standing == step.Closed || x.bound() == 0 && !recorded {
		return
	}
	if !recorded {
		r = &record{bound: x.bound()}
	}
	if s.Unwatched = !x.n.guard.watchdog || recorded && x.n.guard.acks[x.id] != x.token; x.standing == step.Open {
		s.Expired = x.n.passed(r) || !recorded
	} else {
		s.Unconfirmed = x.n.guard.held || x.n.passed(r)
	}
}

// expire closes the token of a life that missed its deadline; its killers go on.
func (x *worker) expire() error {
	if err := x.n.agent.led.CloseToken(x.id, x.token, spec.CauseDeadlinePassed); err != nil {
		return err
	}
	if r := x.n.guard.records[x.id]; r != nil && r.token == x.token {
		r.ended = true
	}
	x.n.w.did("deadline missed")
	return nil
}

// mayStart asks once more before a start.
func (x *worker) mayStart() bool {
	r := x.n.guard.records[x.id]
	return x.bound() == 0 || r != nil && r.token == x.token && !x.n.passed(r) && x.n.guard.acks[x.id] == x.token
}

// free removes the record of a life that is cleared.
func (x *worker) free() {
	if r := x.n.guard.records[x.id]; r != nil && r.token == x.token {
		delete(x.n.guard.records, x.id)
		delete(x.n.guard.acks, x.id)
	}
}

// killWatchdog ends the watchdog's process, if every guarded life has a logger that kills.
func (w *World) killWatchdog() bool {
	n := w.someNode()
	if !n.power || !n.guard.watchdog {
		return false
	}
	for id := range n.guard.records {
		if p := n.place(id); !p.alive.IsZero() && p.logger != p.alive {
			return false
		}
	}
	n.guard.watchdog = false
	clear(n.guard.acks)
	w.note("%s's watchdog ends", n.name)
	return true
}

// killLogger ends the loggers of a life, if there is a watchdog.
func (w *World) killLogger() bool {
	n := w.someNode()
	for _, id := range n.guard.guarded() {
		if p := n.place(id); n.guard.watchdog && !p.logger.IsZero() && w.chance(2) {
			p.logger = spec.Token{}
			w.note("%s: the loggers of %s end", n.name, id.MemberName())
			return true
		}
	}
	return false
}

// expireSession has the store end a session early, whatever its lease's time: as a change
// of etcd's leader or a jump of its clock may.
func (w *World) expireSession() bool {
	x := w.some(anySession)
	if x == nil || w.mem.Revoke(w.ctx, store.LeaseID(x.id)) != nil {
		return false
	}
	w.note("the store ends session %d of %s", x.id, x.n.name)
	return true
}

// away is a control plane that nobody reaches for a while; members do what they do.
func (w *World) away() bool {
	for _, s := range w.servers {
		s.setCut(true)
	}
	for d := 10 + w.r.IntN(60); d > 0; d-- {
		w.advance(time.Second)
		if w.chance(4) {
			w.work()
		}
	}
	for _, s := range w.servers {
		s.setCut(false)
	}
	return true
}
