package engine

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// moveOps are the records of a move, after the others.
func (st *stage) moveOps(facts *records.NodeFacts, hash spec.RevisionHash) (ops []store.Op) {
	if st.move == nil && st.moveAsk == nil {
		return nil
	}
	id := member(0)
	facts2 := records.NodeFacts{Name: "n2", UID: "y", Epoch: 1, Moves: true}
	facts.Moves = true
	say := func(f *records.NodeFacts, role moves.MoveRole, state moves.MoveState) {
		r := moves.MoveReport{ID: id, Move: "m", Role: role, State: state}
		if state == moves.MoveSealed || state == moves.MoveCopied {
			r.Sums = []moves.MoveSum{{Claim: "data", Sum: "s"}}
		}
		if st.lacks && role == moves.MoveSource {
			r.Absent = []spec.ClaimName{"data"}
		}
		if st.move == nil {
			r.Peer, r.Claims = "n2", []moves.MoveClaim{{Claim: "data", Old: "v", New: "c", Number: 1, Class: "local", SizeBytes: 1 << 50}}
		}
		if state != "" {
			f.MoveReports = append(f.MoveReports, r)
		}
	}
	say(facts, moves.MoveSource, st.source)
	say(&facts2, moves.MoveTarget, st.target)
	ops = append(ops, store.Put(store.FactsKey("n1"), store.Encode(facts)), store.Put(store.NodeKey("n2"), store.Encode(records.Node{Name: "n2", UID: "y"})),
		store.Put(store.FactsKey("n2"), store.Encode(facts2)), store.Put(store.SessionKey("n2"), store.Encode(records.Session{Node: "n2", UID: "y", ID: 7})))
	facts.MovesBack = true
	ops[0] = store.Put(store.FactsKey("n1"), store.Encode(facts))
	if st.lacks {
		ops = append(ops, store.Put(store.VolumeReportKey(id, "data", "c"), store.Encode(records.VolumeReport{ID: id, Claim: "data", Volume: "c", Node: "n2", State: records.VolumeLeft})))
	}
	if st.fenced {
		ops = append(ops, store.Put(store.FenceKey("n2"), store.Encode(records.Fence{Node: "n2", UID: "y"})))
		st.without = append(st.without, store.SessionKey("n2"))
	}
	if st.copies {
		ops = append(ops, store.Put(store.VolumeKey(id, "data"), store.Encode(records.Volume{ID: id, Claim: "data", UID: "c", Number: 1, Class: "local", Node: "n2", SizeBytes: 1 << 50, Fate: records.FateKeep})))
	}
	if st.copies && st.report == records.PhaseRunning { // it runs there
		token := spec.Token{Epoch: 1, Number: 2}
		ops = append(ops,
			store.Put(store.MemberKey(id), store.Encode(records.Member{ID: id, SetUID: "u1", Token: token, Goal: records.GoalRun, Node: "n2", NodeUID: "y", Address: ip, Revision: hash})),
			store.Put(store.ReportKey(id), store.Encode(records.Report{ID: id, Token: token, Session: 7, Phase: st.report, Ready: true})),
			store.Put(store.IdentityKey(id), store.Encode(records.IdentityRecord{ID: id, LastToken: token, ReadyOnce: "u1", ReadyToken: token, AvailableOn: hash, Address: ip, Due: hash, VolumeNumbers: map[spec.ClaimName]int{"data": 1}})))
	}
	if m := st.move; m != nil {
		m.ID, m.Move, m.Epoch, m.From, m.To = id, "m", 1, moves.MoveEnd{Node: "n1", UID: "x"}, moves.MoveEnd{Node: "n2", UID: "y"}
		m.Claims = []moves.MoveClaim{{Claim: "data", Old: "v", New: "c", Number: 1, Class: "local", SizeBytes: 1 << 50}}
		if m.Phase != moves.MoveCopying {
			m.Stopped = spec.Token{Epoch: 1, Number: 1}
		}
		ops = append(ops, store.Put(store.MoveKey(id), store.Encode(m)))
	}
	if q := st.moveAsk; q != nil {
		q.ID, q.Move, q.To = id, "m", moves.MoveEnd{Node: "n2", UID: "y"}
		ops = append(ops, store.Put(store.MoveRequestKey(id), store.Encode(q)))
	}
	return ops
}
