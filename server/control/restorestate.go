package control

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// restoreState tells how it stands with the store's going back and its restore.
func restoreState(v cache.View) records.RestoreState {
	st := records.RestoreState{State: records.RestoreNever, Epoch: v.Epoch()}
	count, _ := v.Count()
	switch hold := v.Hold(); {
	case hold != nil:
		st.State, st.Cause, st.By, st.At = records.RestoreHeld, hold.Cause, hold.By, hold.At
		st.Next = "members run on. Is this the store that is meant? Start all servers and agents, then run 'stead restore'"
		count = &records.Count{Epoch: v.Epoch(), Nodes: expected(v)}
	case count == nil || count.Epoch != st.Epoch:
		return st
	default:
		st.State = records.RestoreComplete
		if !count.Done {
			st.State = records.RestoreCounting
		}
		st.By, st.At = count.By, count.At
	}
	missing := map[spec.UID]records.CountNode{}
	for _, m := range proof.MissingNodes(count.Epoch, count, v.Nodes()) {
		missing[m.UID] = m
	}
	if st.State == records.RestoreHeld { // what was said before counts no more
		for _, n := range count.Nodes {
			missing[n.UID] = n
		}
	}
	all := *count
	for _, m := range missing {
		all = all.With(m.From, map[spec.NodeName]spec.UID{m.Name: m.UID})
	}
	st.Nodes = restoreNodes(v, all.Nodes, missing)
	if st.State == records.RestoreCounting {
		st.Next = nextInCount(st.Nodes)
	}
	return st
}

func restoreNodes(v cache.View, nodes []records.CountNode, missing map[spec.UID]records.CountNode) []records.RestoreNode {
	connected := map[spec.UID]bool{}
	heard := map[spec.UID]bool{}
	for _, n := range v.Nodes() {
		connected[n.Node.UID] = n.Session != nil
		heard[n.Node.UID] = n.Facts != nil && n.Facts.Epoch >= v.Epoch()
	}
	out := make([]records.RestoreNode, len(nodes))
	for i, n := range nodes {
		out[i] = records.RestoreNode{CountNode: n, State: records.NodeHeard, Connected: connected[n.UID]}
		switch _, waited := missing[n.UID]; {
		case waited:
			out[i].State = records.NodeWaited
		case !heard[n.UID] && n.Off != "":
			out[i].State = records.NodeExcused
		}
	}
	return out
}

// nextInCount says what to do about nodes that are waited for.
func nextInCount(nodes []records.RestoreNode) string {
	for _, n := range nodes {
		if n.State == records.NodeWaited {
			return "start the agents of the missing nodes, and let them reach a server. For a node that is off for good: stead restore --off NODE"
		}
	}
	return "nothing: every node was heard or excused, and the leader records it"
}
