package sim

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// worker deals with one identity on a host, as agent/worker does, with the same
// decisions (step.Choose, step.Next) and the same ledger.
type worker struct {
	n  *node
	id spec.Identity

	orders  step.Orders
	lives   map[spec.Token]records.Life
	told    map[spec.Token]bool
	asked   map[spec.Token]bool
	last    *records.Report
	lastMin int32

	token    spec.Token
	standing step.Standing
	order    step.Order
	life     *records.Life
	state    keptLife // of token, but for its life
	stopAt   time.Time
	streak   int
	due      time.Time
	cause    spec.Cause
	prepared struct{ volumes, sandbox, network, files, image bool }
	left     struct{ containers, link, scratch, sandbox bool }
	held     map[step.Kind]hold
}

// hold is an operation that failed.
type hold struct {
	until time.Time
	cause spec.Cause
}

func newWorker(n *node, id spec.Identity) *worker {
	x := &worker{n: n, id: id, lives: map[spec.Token]records.Life{}, told: map[spec.Token]bool{}, asked: map[spec.Token]bool{}, held: map[step.Kind]hold{}}
	x.left.containers, x.left.link, x.left.scratch, x.left.sandbox = true, true, true, true
	if k, ok := n.kept[id]; ok && k.life.Member.Token == n.agent.led.Look(id).Open {
		x.lives[k.life.Member.Token] = k.life
		x.orders = step.Orders{Token: k.life.Member.Token, Goal: k.life.Member.Goal}
	}
	return x
}

// answerOld is worker.answerOld.
func (x *worker) answerOld(token spec.Token) {
	delete(x.asked, token)
	entry := x.n.agent.led.Look(x.id)
	if !entry.Spent(token) {
		return
	}
	if slices.ContainsFunc(entry.Ends, func(e ledger.End) bool { return !x.told[e.Token] }) {
		x.asked[token] = true
		return
	}
	x.n.agent.seq++
	x.n.agent.put(records.Report{ID: x.id, Token: token, Node: x.n.name, Phase: records.PhaseStopped, Seq: x.n.agent.seq})
}

// tell hands over what the server wants of a life. A Stop once told stays.
func (x *worker) tell(l records.Life) {
	token := l.Member.Token
	switch c := token.Compare(x.orders.Token); {
	case c < 0:
		if !x.n.w.plant.DeafToOldTokens {
			x.answerOld(token)
		}
		return
	case c == 0 && x.orders.Goal == records.GoalStop && l.Member.Goal != records.GoalStop:
		l.Member.Goal = records.GoalStop
	}
	x.orders.Token, x.orders.Goal = token, l.Member.Goal
	x.lives[token] = l
	delete(x.told, token)
}

// pending is a life that is to run here and is not open yet.
func (x *worker) pending() (spec.Token, bool) {
	t := x.orders.Token
	return t, x.orders.Goal == records.GoalRun && x.orders.Over.Compare(t) < 0 && t.Compare(x.n.agent.led.Look(x.id).Newest) > 0
}

// over tells that the identity has a newer token than the given one.
func (x *worker) over(token spec.Token) {
	if token.Compare(x.orders.Over) > 0 {
		x.orders.Over = token
	}
	delete(x.told, token)
}

// steps performs at most n operations, and tells how many there were.
func (x *worker) steps(n int) int {
	for i := range n {
		if !x.step() {
			return i
		}
	}
	return n
}

// step asks for the next operation and performs it; false: there was none.
func (x *worker) step() bool {
	if x.n.agent == nil || x.n.agent.workers[x.id] != x {
		return false
	}
	wanted, seen := x.look()
	op := step.Next(wanted, seen)
	x.report(op)
	if op.Kind == step.Wait || op.Kind == step.Nothing {
		return false
	}
	w := x.n.w
	crash := 0
	if !w.judge.settling {
		crash = w.r.IntN(300)
	}
	if crash == 1 {
		x.n.stopAgent("it crashed before " + string(op.Kind))
		w.did("fault: agent dies before an operation")
		return true
	}
	w.note("%s: %s %s for %s", x.n.name, x.id.MemberName(), op.Kind, x.token)
	w.did(string(op.Kind))
	if cause := x.do(op.Kind); cause != "" {
		x.held[op.Kind] = hold{w.clock.Add(time.Second), cause}
	} else {
		delete(x.held, op.Kind)
	}
	if crash == 2 {
		x.n.stopAgent("it crashed after " + string(op.Kind))
		w.did("fault: agent dies after an operation")
	}
	return true
}

// look says what is wanted and seen, as worker.look does.
func (x *worker) look() (step.Wanted, step.Seen) {
	entry := x.n.agent.led.Look(x.id)
	m := step.Memory{Newest: entry.Newest, Open: entry.Open}
	for _, e := range entry.Ends {
		m.Ends = append(m.Ends, e.Token)
	}
	token, standing, order := step.Choose(m, x.orders, func(t spec.Token) bool { return x.told[t] })
	x.standing, x.order = standing, order
	if token != x.token {
		x.turnTo(token)
	}
	x.life = nil
	if l, ok := x.lives[token]; ok {
		x.life = &l
	}
	for _, t := range slices.SortedFunc(maps.Keys(x.asked), spec.Token.Compare) {
		x.answerOld(t)
	}
	told := x.told[token] || token.IsZero()
	s := step.Seen{Standing: standing, Told: told}
	wanted := step.Wanted{Order: order, OtherBoot: x.life != nil && x.life.Member.Boot != x.n.boot(), Restored: token.Epoch < x.n.newest.Epoch && !x.n.w.plant.OpensAfterRestore}
	if told && (standing == step.Spent || standing == step.Closed) {
		return wanted, s
	}
	if standing == step.Spent {
		s.Empty = x.n.place(x.id).alive.IsZero()
		return wanted, s
	}
	x.keep()
	if x.state.signalled && x.stopAt.IsZero() {
		x.stopAt = x.n.w.clock.Add(x.grace())
	}
	p := x.n.place(x.id)
	p.pass()
	x.see(p, entry, &s)
	x.seeGuard(&s)
	s.Volumes, s.Sandbox, s.Network, s.Files = x.prepared.volumes, x.prepared.sandbox, x.prepared.network, x.prepared.files
	s.Signalled, s.GraceOver = x.state.signalled, x.state.signalled && !x.n.w.clock.Before(x.stopAt)
	s.Removed, s.Detached, s.Unmounted, s.Unpinned = !x.left.containers, !x.left.link, !x.left.scratch, !x.left.sandbox
	for kind, h := range x.held {
		if h.until.After(x.n.w.clock) {
			held := step.Held{Op: kind, Cause: h.cause, Message: string(h.cause)}
			switch kind {
			case step.EnsureImage, step.CreateContainer, step.StartContainer, step.RemoveContainer:
				held.Container = containerName
			}
			s.Held = append(s.Held, held)
		}
	}
	return wanted, s
}

const containerName = "c"

// see looks at the container and at the host itself.
func (x *worker) see(p *place, entry ledger.Entry, s *step.Seen) {
	c := step.Container{Name: containerName, State: p.box, Image: x.prepared.image, Cause: x.cause, Message: string(x.cause)}
	if p.box != step.Absent {
		x.left.containers = true
		switch {
		case p.token == x.token:
			x.countEnd(p)
		case entry.Spent(p.token):
			c.State = step.Exited
		default:
			s.Strange = "a container of token " + p.token.String() + " stands here, which the ledger does not know"
		}
	}
	c.Due = !x.n.w.clock.Before(x.due)
	s.Containers = []step.Container{c}
	up := c.State == step.Running
	s.Empty = !(up && x.order != step.OrderStop && x.standing == step.Open) && p.alive.IsZero()
}

// countEnd takes in that the container ended: each end waits longer.
func (x *worker) countEnd(p *place) {
	if p.box != step.Exited || p.counted {
		return
	}
	p.counted = true
	x.cause = spec.CauseExited
	if x.streak > 0 {
		x.cause = spec.CauseCrashLoop
		x.due = x.n.w.clock.Add(min(time.Second<<min(x.streak, 6), time.Minute))
	}
	x.streak++
	x.state.restarts++
}

// turnTo begins to deal with another life.
func (x *worker) turnTo(token spec.Token) {
	x.token, x.state, x.stopAt, x.last = token, keptLife{}, time.Time{}, nil
	x.streak, x.due, x.cause = 0, time.Time{}, ""
	x.prepared = struct{ volumes, sandbox, network, files, image bool }{}
	x.held = map[step.Kind]hold{}
	if k, ok := x.n.kept[x.id]; ok && k.life.Member.Token == token {
		x.state = k
	}
}

// keep writes what the next agent needs of an open life to tmpfs.
func (x *worker) keep() {
	if x.life == nil || x.standing != step.Open {
		return
	}
	if x.order == step.OrderStop && x.life.Member.Goal != records.GoalStop {
		x.life.Member.Goal = records.GoalStop
		x.lives[x.token] = *x.life
	}
	x.state.life = *x.life
	x.n.kept[x.id] = x.state
}

func (x *worker) grace() time.Duration {
	if x.life == nil {
		return 30 * time.Second
	}
	return time.Duration(x.life.Member.GraceSeconds) * time.Second
}

// report tells what was seen of the life, when it differs from what was told last.
func (x *worker) report(op step.Op) {
	if x.token.IsZero() || x.standing == step.Spent || x.standing == step.Closed {
		return
	}
	p := x.n.place(x.id)
	up := p.box == step.Running && p.token == x.token
	phase := records.PhaseAssigned
	switch {
	case x.standing != step.Open:
	case x.order == step.OrderStop:
		phase = records.PhaseStopping
	case up:
		phase = records.PhaseRunning
	case op.Kind == step.StartContainer || x.state.restarts > 0:
		phase = records.PhaseStarting
	default:
		phase = records.PhasePreparing
	}
	if phase.Rank() > x.state.phase.Rank() {
		x.state.phase = phase
	}
	ready := x.standing == step.Open && x.order != step.OrderStop && up && p.healthy()
	if ready && !x.state.ready {
		x.state.since = x.n.w.clock
	}
	x.state.ready, x.state.readyOnce = ready, x.state.readyOnce || ready
	r := records.Report{ID: x.id, Token: x.token, Node: x.n.name, Phase: x.state.phase, Ready: ready, ReadyOnce: x.state.readyOnce}
	if ready {
		r.ReadyFor = x.n.w.clock.Sub(x.state.since)
	} else if op.Kind == step.Wait && op.Cause != spec.CauseGrace {
		r.Cause, r.Message = op.Cause, op.Message
	} else if x.order != step.OrderStop && x.cause != "" {
		r.Cause, r.Message = x.cause, "container c: "+string(x.cause)
	}
	r.Containers = []records.ContainerReport{{Name: containerName, State: string(p.box), Ready: ready, Restarts: x.state.restarts}}
	if x.last != nil && !x.news(r) {
		return
	}
	x.emit(r)
}

func (x *worker) news(r records.Report) bool {
	if x.life != nil && r.Ready {
		enough := time.Duration(x.life.MinReadySeconds) * time.Second
		if r.ReadyFor >= enough && (x.last.ReadyFor < enough || x.lastMin != x.life.MinReadySeconds && !x.n.w.plant.AvailableOnce) {
			return true
		}
	}
	r.Seq, r.ReadyFor, r.Bound = x.last.Seq, x.last.ReadyFor, x.last.Bound
	return !reflect.DeepEqual(r, *x.last)
}

func (x *worker) emit(r records.Report) {
	x.n.agent.seq++
	r.Seq = x.n.agent.seq
	if x.life != nil {
		x.lastMin, r.Bound = x.life.MinReadySeconds, x.life.Member.Bound
	}
	x.last = &r
	x.n.w.note("%s reports %s %s: %s, ready %v for %s, %s", x.n.name, r.ID.MemberName(), r.Token, r.Phase, r.Ready, r.ReadyFor, r.Cause)
	x.n.agent.put(r)
}
