package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// DrainNode implements proto.ControlServer.
func (s nodes) DrainNode(ctx context.Context, r *proto.DrainNodeRequest) (*proto.DrainNodeResponse, error) {
	name := spec.NodeName(r.GetName())
	gone := notFound(proto.KindNode, "", r.GetName())
	if r.GetMove() && r.GetAtOnce() {
		return nil, invalid("members are either moved, or stopped at once")
	}
	if r.GetDryRun() || r.GetLook() {
		var record *records.Node
		s.cfg.Cache.Look(func(v cache.View) {
			if n := proof.FindNode(v.Nodes(), name); n != nil {
				record = n.Node
			}
		})
		switch {
		case record == nil:
			return nil, gone
		case r.GetDryRun():
			return &proto.DrainNodeResponse{Effects: s.foretellDrain(name, records.Drain{AtOnce: r.GetAtOnce(), Move: r.GetMove()})}, nil
		}
		return s.drained(name, &proto.DrainNodeResponse{Wanted: record.Drain != nil}), nil
	}
	out := &proto.DrainNodeResponse{Wanted: true}
	err := editRecord(ctx, s.shared, store.NodeKey(name), "node "+r.GetName(), gone, func(n *records.Node) (bool, error) {
		was := store.Encode(n)
		n.Cordon = true
		if n.Drain == nil {
			n.Drain = &records.Drain{By: user(ctx), At: time.Now().UTC()}
		}
		n.Drain.AtOnce = n.Drain.AtOnce || r.GetAtOnce()
		n.Drain.Move = n.Drain.Move || r.GetMove()
		out.Unchanged = string(was) == string(store.Encode(n))
		return !out.Unchanged, nil
	}, nil)
	if err != nil {
		return nil, err
	}
	if !out.GetUnchanged() {
		s.cfg.Logger.Info("node to be drained", "node", r.GetName(), "user", user(ctx), "at_once", r.GetAtOnce())
	}
	return s.drained(name, out), nil
}

// drained fills in the members of the node that are there still, and those that wait for it.
func (s nodes) drained(name spec.NodeName, out *proto.DrainNodeResponse) *proto.DrainNodeResponse {
	var left, waiting []spec.Identity
	moving := map[spec.Identity]string{}
	s.cfg.Cache.Look(func(v cache.View) {
		left, waiting = livesOn(v, name)
		n := proof.FindNode(v.Nodes(), name)
		empties := n != nil && n.Node.Drain.Moves()
		waiting = slices.DeleteFunc(waiting, func(id spec.Identity) bool {
			stays := volumesLeave(v, id, name) || empties && volumesAreToLeave(v, id, name)
			if stays {
				left = append(left, id)
			}
			return stays
		})
		for _, m := range cache.MovesOn(v, name) {
			moving[m.ID] = plan.MoveText(m, v.Nodes(), v.Epoch())
		}
	})
	said := map[spec.SetRef]map[spec.Identity]string{}
	row := func(id spec.Identity) *proto.DrainRow {
		texts, known := said[id.Ref()]
		if !known {
			texts = map[spec.Identity]string{}
			if p, ok := s.cfg.Planner.Explain(id.Ref()); ok {
				for _, b := range p.Blocked {
					texts[b.ID] = b.Text
				}
			}
			said[id.Ref()] = texts
		}
		return &proto.DrainRow{Namespace: string(id.Namespace), Member: id.MemberName(), Why: cmp.Or(texts[id], moving[id])}
	}
	for _, id := range left {
		out.Left = append(out.Left, row(id))
	}
	for _, id := range waiting {
		out.Waiting = append(out.Waiting, row(id))
	}
	return out
}

// livesOn are the members whose last lives are on a node: those that are not proven over, and those that did not start
// again since.
func livesOn(v cache.View, name spec.NodeName) (left, waiting []spec.Identity) {
	for _, id := range v.MembersOn(name) {
		switch m, r := v.Member(id), v.Report(id); {
		case m == nil:
		case !proof.Ended(m, r):
			left = append(left, id)
		default:
			waiting = append(waiting, id)
		}
	}
	return left, waiting
}

// volumesLeave: the member does not run, and its volumes are moved away from a node, which is needed until another has all of them.
func volumesLeave(v cache.View, id spec.Identity, name spec.NodeName) bool {
	m := cache.MoveOf(v, id)
	return m != nil && m.From.Node == name && (m.Phase.Down() || m.Phase == moves.MoveCopying)
}

// volumesAreToLeave: some volumes of the member are on a node whose drain moves them. One that does not run waits there for another move if the
// last was aborted, or for a node that takes it.
func volumesAreToLeave(v cache.View, id spec.Identity, name spec.NodeName) bool {
	set := v.Set(id.Ref())
	return set != nil && !set.Orphaned && set.Range().Has(id.Ordinal) && slices.ContainsFunc(v.Member(id).Volumes, func(m records.MemberVolume) bool {
		vol := v.Volume(id, m.Claim)
		return vol != nil && vol.Node == name && !vol.Shared && vol.Fate == records.FateKeep
	})
}

// foretellDrain says in which order the members of a node stop, who waits for whom, and what becomes of them.
func (s nodes) foretellDrain(name spec.NodeName, drain records.Drain) (out []string) {
	var left []spec.Identity
	s.cfg.Cache.Look(func(v cache.View) { left, _ = livesOn(v, name) })
	for len(left) > 0 {
		ref := left[0].Ref()
		other := func(id spec.Identity) bool { return id.Ref() != ref }
		w := s.world(ref, nil)
		w.Nodes = withDrain(w.Nodes, name, drain)
		members := slices.DeleteFunc(slices.Clone(left), other)
		for _, text := range describeDrain(plan.Preview(w), name, members) {
			out = append(out, fmt.Sprintf("set %s: %s", ref, text))
		}
		left = slices.DeleteFunc(left, func(id spec.Identity) bool { return !other(id) })
	}
	return out
}

// withDrain is nodes with the drain of one of them.
func withDrain(nodes []plan.Node, name spec.NodeName, drain records.Drain) []plan.Node {
	nodes = slices.Clone(nodes)
	if n := proof.FindNode(nodes, name); n != nil {
		drained := *n.Node
		if before := drained.Drain; before != nil {
			drain.AtOnce, drain.Move = drain.AtOnce || before.AtOnce, drain.Move || before.Move
		}
		drained.Cordon, drained.Drain = true, &drain
		n.Node = &drained
	}
	return nodes
}

// describeDrain tells what becomes of the members of one set on a node that is drained.
func describeDrain(f plan.Forecast, name spec.NodeName, members []spec.Identity) (out []string) {
	never := map[spec.Identity]string{}
	for _, b := range f.Never {
		never[b.ID] = b.Text
	}
	stopped := map[spec.Identity]bool{}
	for i, step := range f.Steps {
		stop, is := step.Action.(plan.Stop)
		if !is || !slices.Contains(members, stop.ID) || stopped[stop.ID] {
			continue
		}
		stopped[stop.ID] = true
		if len(step.First) > 0 {
			out = append(out, waitsFirst(step)...)
		}
		text := fmt.Sprintf("%s stops (%s)", stop.ID.MemberName(), stop.Reason)
		if stop.Move != nil {
			out = append(out, fmt.Sprintf("%s moves to node %s with its volumes", stop.ID.MemberName(), stop.Move.To.Node))
			continue
		}
		switch to := startsOn(f.Steps[i+1:], stop.ID); {
		case to != "":
			text += ", and starts on " + string(to)
		case never[stop.ID] != "":
			text += ", and waits: " + never[stop.ID]
		}
		out = append(out, text+staysBehind(f.Before.Slots, stop.ID, name))
	}
	for _, id := range members {
		if stopped[id] {
			continue
		}
		text := "does not stop"
		switch {
		case f.Before.Set == nil || f.Before.Set.Orphaned:
			text += ": its set is not managed"
		case never[id] != "":
			text += ": " + never[id]
		case f.Cut:
			text = "stops later: the set is large, and its forecast ends before"
		default:
			text = "is stopping already"
		}
		out = append(out, id.MemberName()+" "+text)
	}
	return out
}

// startsOn is where the next life of a member starts; "": none does.
func startsOn(steps []plan.ForecastStep, id spec.Identity) spec.NodeName {
	for _, step := range steps {
		if start, is := step.Action.(plan.Start); is && start.Member.ID == id {
			return start.Member.Node
		}
	}
	return ""
}

// staysBehind names the volumes of a member that stay on the node.
func staysBehind(slots []plan.Slot, id spec.Identity, name spec.NodeName) string {
	slot := slotOf(slots, id)
	if slot == nil {
		return ""
	}
	var names []string
	for claim, v := range slot.Volumes {
		if v.Node == name && !v.Shared {
			names = append(names, fmt.Sprintf("%s-%s", claim, id.MemberName()))
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	return "; stays on the node: " + listed(names, func(name string) string { return name })
}
