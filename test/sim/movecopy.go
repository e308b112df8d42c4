package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
)

// firstPort is where the first node hands out trees; the next one has the next.
const firstPort = 7000

// copier is what an agent has of agent/move/peer: keys and offers end with its process.
type copier struct {
	a      *agent
	keys   map[moves.MoveID]string
	offers map[moves.MoveID]move.Other
	sealed map[moves.MoveID]bool // as a plant says
}

var _ move.Copier = (*copier)(nil)

// beginMoves makes the agent's mover, and has it take up what the one before noted.
func (n *node) beginMoves(a *agent) {
	a.copier = &copier{a: a, keys: map[moves.MoveID]string{}, offers: map[moves.MoveID]move.Other{}, sealed: map[moves.MoveID]bool{}}
	a.moved = session.NewMoveReports(a.outbox.Notify)
	open, empty := func(id spec.Identity) spec.Token { return a.led.Look(id).Open }, hostRuntime{n: n}.Empty
	if n.w.plant.SealsUnderLives {
		open = func(spec.Identity) spec.Token { return spec.Token{} }
		empty = func(context.Context, spec.Identity) (bool, error) { return true, nil }
	}
	if n.w.plant.ForgetsSeals {
		n.forgetSeals(a)
	}
	a.mover = move.New(move.Config{
		Volumes: hostMoves{a}, Copier: a.copier, Open: open, Empty: empty,
		Reported:   func(all []moves.MoveReport) { n.w.judge.saysOfMoves(n, all); a.moved.Set(all) },
		RetryFirst: retryTime, RetryMost: retryTime, Between: 5 * time.Second, Now: n.now, Logger: discard,
	})
	if len(n.parts) > 0 {
		n.w.count("move taken up by the next agent")
	}
	must(a.mover.Begin(n.w.ctx))
}

// takeMoves hands the orders of a list to the mover.
func (a *agent) takeMoves(orders []moves.MoveOrder, epoch int64) {
	for i := range orders {
		a.n.w.count("move ordered: " + string(orders[i].Role) + " " + string(orders[i].Phase))
	}
	a.mover.Take(orders, epoch)
}

// meanwhile has other things go on at the node while it works on a move: new orders come, and workers work.
func (a *agent) meanwhile() {
	w := a.n.w
	if w.judge.settling || !w.chance(4) {
		return
	}
	if x := a.sess; x != nil && x.hasOrders() && !a.n.cut {
		x.receive()
	}
	a.n.mustRun(a)
	for _, id := range a.ids {
		if w.chance(2) {
			a.workers[id].step()
			a.n.mustRun(a)
		}
	}
}

// Key implements move.Copier.
func (c *copier) Key(m moves.MoveID) (string, uint16, error) {
	if c.keys[m] == "" {
		c.a.n.w.keys++
		c.keys[m] = fmt.Sprintf("%064x", c.a.n.w.keys)
	}
	return c.keys[m], c.a.n.port(), nil
}

func (n *node) port() uint16 {
	for i, x := range n.w.nodes {
		if x == n {
			return firstPort + uint16(i)
		}
	}
	return 0
}

// Offer implements move.Copier.
func (c *copier) Offer(_ context.Context, p move.Other, _ []runtime.MoveTree) {
	c.a.n.mustRun(c.a)
	c.offers[p.Move] = p
}

// Withdraw implements move.Copier.
func (c *copier) Withdraw(m moves.MoveID) {
	delete(c.offers, m)
	delete(c.keys, m)
}

// Sums implements move.Copier.
func (c *copier) Sums(_ context.Context, m moves.MoveID, trees []runtime.MoveTree, _ bool) (sums []moves.MoveSum, err error) {
	n := c.a.n
	n.mustRun(c.a)
	if !n.w.judge.settling && n.w.chance(30) {
		n.w.count("fault: agent dies before a sum is made")
		n.crash("before it made a sum")
	}
	for _, t := range trees {
		d := n.treeAt(m, t)
		if d == nil {
			return nil, runtime.ErrAbsent
		}
		n.w.judge.sums(n, m, d)
		if peer := n.w.offering(m); n.w.plant.SaysSumsUnread && peer != nil && peer != n {
			d = peer.treeOf(peer.parts[partKey{m, moves.MoveSource}], t.Claim)
		}
		sums = append(sums, moves.MoveSum{Claim: t.Claim, Sum: d.sum()})
	}
	return sums, nil
}

// offering is the node that hands out the trees of a move; nil: none.
func (w *Cluster) offering(m moves.MoveID) *node {
	for _, n := range w.nodes {
		if n.agent == nil {
			continue
		}
		if _, offers := n.agent.copier.offers[m]; offers {
			return n
		}
	}
	return nil
}

// treeAt is the directory of a tree of a move on this node.
func (n *node) treeAt(m moves.MoveID, t runtime.MoveTree) *tree {
	for _, role := range []moves.MoveRole{moves.MoveSource, moves.MoveTarget} {
		p, has := n.parts[partKey{m, role}]
		for _, c := range p.Claims {
			if has && c.Claim == t.Claim && (role == moves.MoveSource && c.Old == t.Path || role == moves.MoveTarget && c.New == t.Path) {
				return n.treeOf(p, t.Claim)
			}
		}
	}
	return nil
}

var errCut = errors.New("the connection broke")

// peer is the node at the other end, if it lets this one in; nil: nobody answers.
func (c *copier) peer(p move.Other) *node {
	n, w := c.a.n, c.a.n.w
	i := int(p.At.Port()) - firstPort
	if i < 0 || i >= len(w.nodes) || n.cut {
		return nil
	}
	x := w.nodes[i]
	if x.agent == nil || x.stopped || x.cut || x.agent.copier.keys[p.Move] != p.Key || x.agent.copier.offers[p.Move].Key != c.keys[p.Move] {
		return nil
	}
	return x
}

// Round implements move.Copier: file by file, while the member may write, and with what breaks at any of them. One that is
// not fresh may overlook a file.
func (c *copier) Round(ctx context.Context, p move.Other, trees []runtime.MoveTree, fresh bool, _ func(done, total int64)) (int64, error) {
	n, w := c.a.n, c.a.n.w
	copied := int64(0)
	for _, t := range trees {
		for i := range fileCount {
			c.a.meanwhile()
			n.mustRun(c.a)
			peer := c.peer(p)
			if peer == nil || !w.judge.settling && w.chance(40) {
				w.count("fault: a round of copying breaks")
				return copied, errCut
			}
			if !w.judge.settling && w.chance(150) {
				w.count("fault: agent dies in a round of copying")
				n.crash("in a round of copying")
			}
			part := peer.parts[partKey{p.Move, moves.MoveSource}]
			from, to := peer.treeOf(part, t.Claim), n.treeAt(p.Move, t)
			if from == nil || to == nil {
				return copied, errCut
			}
			if b := peer.writer(part.ID, from); b != nil && w.chance(3) {
				b.write()
			}
			if !fresh && to.files[i] != 0 && to.files[i] != from.files[i] && !w.judge.settling && (w.chance(30) || w.plant.SaysSumsUnread && w.chance(2)) {
				w.count("fault: a round overlooks a file")
				continue
			}
			to.files[i], to.compared = from.files[i], false
			copied++
		}
	}
	w.count("round of copying")
	return copied, ctx.Err()
}
