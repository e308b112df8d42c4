package control

import (
	"context"
	"fmt"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// Move implements proto.ControlServer. It writes a request; the engine begins or aborts the move, if what was judged here
// holds then.
func (s volumes) Move(ctx context.Context, r *proto.MoveRequest) (*proto.MoveResponse, error) {
	set, ordinal, err := spec.ParseMemberName(r.GetMember())
	if err != nil {
		return nil, invalid("%v", err)
	}
	id := spec.Identity{Namespace: namespace(r.GetNamespace()), Set: set, Ordinal: ordinal}
	switch {
	case r.GetLook():
		return s.moveState(id)
	case countTrue(r.GetAbort(), r.GetBack(), r.GetNode() != "") != 1:
		return nil, invalid("name the node to which the member is to go, or abort its move, or have it go back")
	case r.GetBytesPerSecond() < 0:
		return nil, invalid("the rate must be 0 or more")
	}
	q := moves.MoveRequest{ID: id, Verb: moves.MoveBegin, BytesPerSecond: r.GetBytesPerSecond(), By: user(ctx)}
	effects, err := s.askMove(ctx, q, r.GetDryRun(), func(v cache.View, slot *plan.Slot, q *moves.MoveRequest) error {
		if r.GetAbort() {
			q.Verb = moves.MoveAbort
			q.Move = plan.UnknownMove(slot, v.Nodes(), v.Epoch())
			if slot.Move != nil {
				q.Move = slot.Move.Move
			}
			return nil
		}
		if r.GetBack() {
			q.Verb = moves.MoveGiveBack
			if slot.Move != nil {
				q.Move = slot.Move.Move
			}
			return nil
		}
		n := proof.FindNode(v.Nodes(), spec.NodeName(r.GetNode()))
		if n == nil {
			return notFound(proto.KindNode, "", r.GetNode())
		}
		q.To = moves.MoveEnd{Node: n.Node.Name, UID: n.Node.UID}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out, err := s.moveState(id)
	if err == nil {
		out.Effects = effects
	}
	return out, err
}

// askMove writes what a person asks about the move of a member, as complete makes it of what is stored, unless the planner
// would refuse it: guarded by all that the judgement rests on. Effects are what it means.
func (s volumes) askMove(ctx context.Context, q moves.MoveRequest, dryRun bool, complete func(cache.View, *plan.Slot, *moves.MoveRequest) error) (effects []string, err error) {
	id, name := q.ID, q.ID.MemberName()
	var w plan.World
	var guards []store.Compare
	var slot *plan.Slot
	s.cfg.Cache.Look(func(v cache.View) {
		w = s.cfg.Planner.World(v, id.Ref(), nil)
		guards = []store.Compare{
			v.Seen(store.SetKey(id.Ref())), v.Seen(store.MemberKey(id)), v.Seen(store.MoveKey(id)), v.Seen(store.MoveRequestKey(id)),
		}
		slot = slotOf(w.Slots, id)
		if slot == nil || w.Set == nil {
			err = notFound(proto.KindMember, id.Namespace, name)
			return
		}
		for claim := range slot.Volumes {
			guards = append(guards, v.Seen(store.VolumeKey(id, claim)), v.Seen(store.VolumeRequestKey(id, claim)))
		}
		if err = complete(v, slot, &q); q.To.Node != "" {
			guards = append(guards, v.Seen(store.NodeKey(q.To.Node)))
		}
	})
	if err != nil {
		return nil, err
	}
	if why := plan.MoveRefusal(w, q); why != "" {
		return nil, precondition("%s: %s; nothing was changed", name, why)
	}
	slot.MoveAsked = &q
	effects = describeMove(plan.Preview(w), id)
	if dryRun {
		return effects, nil
	}
	q.At = time.Now().UTC()
	if err := s.commit(ctx, "member "+name, store.Txn{If: guards, Then: []store.Op{store.Put(store.MoveRequestKey(id), store.Encode(q))}}); err != nil {
		return nil, err
	}
	s.cfg.Logger.Info("move requested", "member", id.String(), "verb", string(q.Verb), "to", string(q.To.Node), "user", user(ctx))
	return effects, nil
}

// moveState is how the move of a member stands.
func (s volumes) moveState(id spec.Identity) (out *proto.MoveResponse, err error) {
	s.cfg.Cache.Look(func(v cache.View) {
		if v.Identity(id) == nil {
			err = notFound(proto.KindMember, id.Namespace, id.MemberName())
			return
		}
		out = &proto.MoveResponse{Asked: cache.MoveRequestOf(v, id) != nil}
		for _, vol := range v.Volumes(id.Ref()) {
			if vol.ID == id && !vol.Shared {
				out.On = string(vol.Node)
			}
		}
		m := cache.MoveOf(v, id)
		if m == nil {
			return
		}
		out.Move, out.Phase, out.From, out.To = string(m.Move), string(m.Phase), string(m.From.Node), string(m.To.Node)
		out.Why, out.Text = m.Why, plan.MoveText(m, v.Nodes(), v.Epoch())
		out.DoneBytes, out.TotalBytes = plan.MoveBytes(m, v.Nodes(), v.Epoch())
	})
	return out, err
}

func countTrue(all ...bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

// describeBack tells what it means that a move goes back.
func describeBack(a *plan.BackMove) []string {
	m, name := &a.Move, a.Move.ID.MemberName()
	return []string{
		fmt.Sprintf("starts %s again on node %s, with its data as of the moment when it was stopped there", name, m.From.Node),
		fmt.Sprintf("gives up what %s wrote on node %s since; should that node return, its copy goes to its trash", name, m.To.Node),
	}
}

// describeMove tells what a move, or its end, means for the member.
func describeMove(f plan.Forecast, id spec.Identity) (out []string) {
	name := id.MemberName()
	var to spec.NodeName
	for _, step := range f.Steps {
		switch a := step.Action.(type) {
		case plan.BeginMove:
			if a.Move.ID != id {
				continue
			}
			to = a.Move.To.Node
			if a.Move.Phase == moves.MoveAborting {
				out = append(out, a.Text)
				continue
			}
			for _, c := range a.Move.Claims {
				out = append(out, fmt.Sprintf("copies volume %s-%s, %s, from node %s to node %s while %s runs", c.Claim, name, sizeText(c.SizeBytes), a.Move.From.Node, to, name))
			}
		case plan.Stop:
			if a.ID != id || a.Move == nil {
				continue
			}
			if len(step.First) > 0 {
				out = append(out, waitsFirst(step)...)
			}
			out = append(out, fmt.Sprintf("stops %s once, for the rest; it starts on node %s", name, a.Move.To.Node))
		case plan.AdvanceMove:
			if a.Move.ID == id && a.Move.Phase == moves.MoveAborting {
				out = append(out, fmt.Sprintf("%s stays on node %s; what was copied to node %s is discarded", name, a.Move.From.Node, a.Move.To.Node))
			}
		case plan.FlipMove:
			if a.Move.ID == id && a.Asked {
				out = append(out, fmt.Sprintf("makes the copies on node %s the volumes of %s, with its data as of the moment when it was stopped for the move", a.Move.To.Node, name))
			}
		case plan.BackMove:
			if a.Move.ID == id {
				out = append(out, describeBack(&a)...)
			}
		case plan.ForwardMove:
			if a.Move.ID == id {
				out = append(out, fmt.Sprintf("makes the copies on node %s the volumes of %s; what node %s still has of the old ones goes to its trash", a.Move.To.Node, name, a.Move.From.Node))
			}
		case plan.EndMove:
			for _, left := range a.Left {
				if a.Move.ID == id {
					out = append(out, fmt.Sprintf("when it is ready there, the old volume %s-%s goes to the trash of node %s for %s", left.Claim, name, left.Node, scalar.Duration{Duration: left.Left.Duration}))
				}
			}
		}
	}
	for _, b := range f.Never {
		if b.ID == id {
			out = append(out, fmt.Sprintf("%s waits: %s", name, b.Text))
		}
	}
	return out
}
