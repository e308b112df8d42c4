package sim

import (
	"context"
	"reflect"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
)

// memberWorker is the real worker of an identity, and what the simulation does for it
// between its turns.
type memberWorker struct {
	*worker.Worker
	n     *node
	id    spec.Identity
	token spec.Token // the life that it dealt with last
	lives map[spec.Token]records.Life
	due   bool      // somebody told it something since its last turn
	next  time.Time // when its next turn is due on the node's clock; zero: never by itself
	crash string    // it is to die after this operation
	op    step.Kind // that was chosen last

	attended []*attendance
	ordered  *orderedHook
	last     *records.Report // that it made, and how long was enough then, for a plant
	enough   time.Duration
}

// attendance is what goes on for one container beside the turns of its worker.
type attendance struct {
	name    string
	watched *watch
	probed  *probing
	said    *saying
	hook    *hooking
}

// attend is that of a container.
func (x *memberWorker) attend(name string) *attendance {
	for _, a := range x.attended {
		if a.name == name {
			return a
		}
	}
	a := &attendance{name: name}
	x.attended = append(x.attended, a)
	return a
}

// watch waits for the end of a process, as containerd would tell it.
type watch struct {
	ctx   context.Context
	run   int // of the process
	ended func()
}

// probing tells each change of a container's health.
type probing struct {
	ctx    context.Context
	report func(probe.Health)
	last   probe.Health
}

func newWorker(n *node, id spec.Identity, found worker.Found) *memberWorker {
	return &memberWorker{
		Worker: worker.New(n.agent.shared, id, found), n: n, id: id, due: true, lives: map[spec.Token]records.Life{},
	}
}

// tell hands over what the server wants of a life.
func (x *memberWorker) tell(l records.Life) {
	newest, _ := x.Pending()
	if x.n.w.plant.DeafToOldTokens && l.Member.Token.Compare(newest) < 0 {
		return
	}
	x.lives[l.Member.Token] = l
	if x.n.w.plant.StartsUnguarded {
		l.Member.Bound = 0
	}
	if x.n.w.plant.TakesAnyTemplate {
		l.Member.Change = &inplace.ChangeOrder{ID: spec.Sequence{Epoch: 1, Rev: int64(x.n.w.latest())}, Revision: l.Member.Revision}
	}
	x.Tell(l)
	x.due = true
}

// over says that the identity has a newer token than the given one.
func (x *memberWorker) over(token spec.Token) {
	x.Over(token)
	x.due = true
}

func (x *memberWorker) tellExpired() {
	x.Expired()
	x.due = true
}

// background watches and probes the containers of all workers of a node.
type background struct{ n *node }

var _ worker.Background = background{}

// Watch implements worker.Background.
func (b background) Watch(ctx context.Context, id runtime.ContainerID, ended func()) {
	b.n.agent.workers[id.ID].attend(id.Name).watched = &watch{ctx, b.n.place(id.ID).box(id.Name).runs, ended}
}

// Pull implements worker.Background: at once.
func (b background) Pull(ctx context.Context, pull func(context.Context)) { pull(ctx) }

// Probe implements worker.Background.
func (b background) Probe(ctx context.Context, t probe.Target, report func(probe.Health)) {
	box := b.n.place(t.ID.ID).box(t.ID.Name)
	if box.part.hasPost && !box.post.over && !box.alive.IsZero() {
		b.n.w.fail("hooks", "%s probes %s %s, and its postStart hook has not returned", b.n.name, t.ID.ID.MemberName(), box.name)
	}
	b.n.agent.workers[t.ID.ID].attend(t.ID.Name).probed = &probing{ctx: ctx, report: report}
}

// hear has watches, probes and hooks say what is so.
func (x *memberWorker) hear() {
	p := x.n.place(x.id)
	p.pass()
	x.hearOrdered()
	for _, a := range x.attended {
		b := p.box(a.name)
		if w := a.watched; w != nil && (w.ctx.Err() != nil || b.runs != w.run || b.alive.IsZero()) {
			a.watched, x.due = nil, true
			w.ended()
		}
		if r := a.probed; r != nil && r.ctx.Err() == nil {
			if h := b.health(); h != r.last {
				r.last, x.due = h, true
				r.report(h)
			}
		}
		x.due = a.said.hear(b) || x.due
		if h := a.hook; h != nil && h.hear(b) {
			x.due = true
			if a.hook == h {
				a.hook = nil
			}
		}
	}
}

// health is what the probes of a container find.
func (b *box) health() probe.Health {
	if b.part.startup && !b.started && b.healthy() {
		b.started = true
		b.p.n.w.judge.passes(b, b.alive)
	}
	return probe.Health{Started: !b.part.startup || b.started, Ready: b.healthy(), Failed: b.dead}
}

// steps performs at most n operations, and tells how many there were.
func (x *memberWorker) steps(n int) int {
	for i := range n {
		if !x.step() {
			return i
		}
	}
	return n
}

// step takes turns until an operation was performed; false: none was due.
func (x *memberWorker) step() (acted bool) {
	if x.n.agent == nil || x.n.agent.workers[x.id] != x {
		return false
	}
	x.n.agent.ring()
	x.hear()
	x.n.agent.sets.Turn()
	if now := x.n.now(); !x.due && (x.next.IsZero() || now.Before(x.next)) {
		return false
	}
	x.due = false
	died := x.n.run(func() {
		acted, x.next = x.Turn(x.n.w.ctx)
		if x.crash != "" {
			x.n.w.count("fault: agent dies after an operation")
			x.n.crash("after " + x.crash)
		}
	})
	x.due = acted
	return acted || died
}

// choose is step.Next for a worker of this node: before and after what it chooses the agent may die.
func (n *node) choose(id spec.Identity, token spec.Token, wanted step.Wanted, seen step.Seen) step.Op {
	w, x := n.w, n.agent.workers[id]
	x.token = token
	wanted.Restored = token.Epoch < n.agent.known.Now().At.Epoch && !w.plant.OpensAfterRestore
	op := step.Next(wanted, w.plant.Looks(wanted, seen))
	x.op = op.Kind
	if op.Kind == step.Wait || op.Kind == step.Nothing {
		return op
	}
	crash := 0
	if !w.judge.settling {
		crash = w.r.IntN(300)
	}
	switch crash {
	case 1:
		w.count("fault: agent dies before an operation")
		n.crash("before " + string(op.Kind))
	case 2:
		x.crash = string(op.Kind)
	}
	w.note("%s: %s %s for %s %s", n.name, id.MemberName(), op.Kind, token, op.Container)
	w.count(string(op.Kind))
	if op.Kind == step.EndContainer {
		n.place(id).box(op.Container).toEnd()
	}
	return op
}

// toEnd: the agent is about to end the container alone. Of one whose image changes the grace begins once.
func (b *box) toEnd() {
	switch {
	case b.gaveUp() && !b.changing:
	case b.changing:
		return
	default:
		b.p.n.w.judge.endsForChange(b)
		b.changing = true
	}
	b.endSince = b.p.n.now()
}

// report takes what a worker reports, as the plants have it.
func (a *agent) report(r records.Report) {
	w := a.n.w
	if x := a.workers[r.ID]; x != nil {
		life := x.lives[r.Token]
		if w.plant.StartsUnguarded {
			r.Bound = life.Member.Bound
		}
		enough := time.Duration(life.MinReadySeconds) * time.Second
		if w.plant.AvailableOnce && x.last != nil && x.last.ReadyFor >= x.enough && sameButForTime(r, *x.last) {
			return
		}
		x.last, x.enough = &r, enough
	}
	if w.plant.SaysChanged && r.Change.ID != (spec.Sequence{}) {
		r.Change.Done = true
	}
	w.judge.saysReady(a.n.place(r.ID), &r)
	w.judge.saysChanged(a.n.place(r.ID), &r)
	w.note("%s reports %s %s: %s, ready %v for %s, %s", a.n.name, r.ID.MemberName(), r.Token, r.Phase, r.Ready, r.ReadyFor, r.Cause)
	a.outbox.Put(r)
}

func sameButForTime(a, b records.Report) bool {
	a.Seq, a.At, a.ReadyFor = b.Seq, b.At, b.ReadyFor
	return reflect.DeepEqual(a, b)
}
