package dispatch

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

var (
	mover = hello{node: "n1", uid: "uid1", boot: "b1", cluster: "c1", moves: true}
	sum   = strings.Repeat("ab", sumBytes)
)

// move is one of member 0 from n1 to n2.
func (r *rig) move(phase moves.MovePhase, change ...func(*moves.Move)) moves.Move {
	m := moves.Move{
		ID: ident(0), Move: "m", Phase: phase, From: moves.MoveEnd{Node: "n1", UID: "uid1"}, To: moves.MoveEnd{Node: "n2", UID: "uid2"}, Epoch: 1,
		Claims: []moves.MoveClaim{{Claim: "data", Old: "v", New: "c", Number: 1, Class: "local"}},
	}
	for _, c := range change {
		c(&m)
	}
	r.Record(store.MoveKey(m.ID), m)
	return m
}

// moves are those that a session tells now, all of the node; sent: it tells them.
func (h *hand) moves() (list []moves.MoveOrder, sent bool) {
	h.r.t.Helper()
	w := h.tells().wanted
	if w == nil || w.GetMoves() == nil {
		return nil, false
	}
	list, err := wire.ToDocuments[moves.MoveOrder](w.GetMoves().GetOrdersJson())
	if err != nil {
		h.r.t.Fatal(err)
	}
	return list, true
}

func movesSaid(t *testing.T, list ...moves.MoveReport) *proto.FromNode {
	t.Helper()
	docs, err := wire.Documents(list)
	if err != nil {
		t.Fatal(err)
	}
	return &proto.FromNode{Kind: &proto.FromNode_Moves{Moves: &proto.MoveReports{ReportsJson: docs}}}
}

func TestANodeIsToldOfEachMoveInWhichItHasAPart(t *testing.T) {
	r := newStill(t)
	r.begin()
	target := r.hand(hello{node: "n2", uid: "uid2", boot: "b2", cluster: "c1", moves: true})
	target.tells()
	h := r.hand(mover)
	if list, sent := h.moves(); !sent || len(list) != 0 {
		t.Errorf("at first %v, sent: %v; want none, so that what was before is over", list, sent)
	}
	m := r.move(moves.MoveCopying)
	list, sent := h.moves()
	want := moves.MoveOrder{ID: m.ID, Move: "m", Role: moves.MoveSource, Phase: moves.MoveCopying, Peer: "n2", Claims: m.Claims}
	if !sent || len(list) != 1 || !reflect.DeepEqual(list[0], want) {
		t.Errorf("the source is told %+v; want %+v", list, want)
	}
	if _, sent := h.moves(); sent {
		t.Error("told again, and nothing of it changed")
	}
	h.Receive(movesSaid(t, moves.MoveReport{ID: m.ID, Move: "m", Role: moves.MoveSource, State: moves.MoveOffered, Key: sum, Port: 7}))
	h.tells()
	if list, _ := target.moves(); len(list) != 1 || list[0].Role != moves.MoveTarget || list[0].PeerKey != sum || list[0].PeerPort != 7 {
		t.Errorf("the target is told %+v; want key and port of the source", list)
	}
	r.move(moves.MoveSealing, func(m *moves.Move) { m.Sums = []moves.MoveSum{{Claim: "data", Sum: sum}} })
	if list, _ := target.moves(); len(list) != 1 || len(list[0].Sums) != 1 {
		t.Errorf("the target is told %+v; want the sums", list)
	}
	r.move(moves.MoveAborting)
	if list, _ := h.moves(); len(list) != 1 || !list[0].Unseal {
		t.Errorf("the source is told %+v; want Unseal: abort and flip exclude each other", list)
	}
	r.move(moves.MoveAborting, func(m *moves.Move) { m.Epoch = 0 })
	if list, _ := h.moves(); len(list) != 1 || list[0].Unseal {
		t.Errorf("after a restore the source is told %+v; want no Unseal before the target has discarded", list)
	}
	target.Receive(movesSaid(t, moves.MoveReport{ID: m.ID, Move: "m", Role: moves.MoveTarget, State: moves.MoveDiscarded}))
	target.tells()
	if list, _ := h.moves(); len(list) != 1 || !list[0].Unseal {
		t.Errorf("when the target has discarded, the source is told %+v; want Unseal", list)
	}
	r.move(moves.MoveCopying, func(m *moves.Move) { m.From.UID = "another" })
	if list, sent := h.moves(); !sent || len(list) != 0 {
		t.Errorf("of a move of the machine that had its name it is told %+v", list)
	}
	r.Commit(store.Del(store.MoveKey(m.ID)))
	if list, _ := target.moves(); len(list) != 0 {
		t.Errorf("of a move that is over it is told %+v", list)
	}
}

func TestAnEarlierAgentIsToldOfNoMove(t *testing.T) {
	r := newStill(t)
	r.begin()
	r.move(moves.MoveCopying)
	if list, sent := r.hand(n1).moves(); sent {
		t.Errorf("told is %+v", list)
	}
}

// TestANodeSpeaksOfItsOwnMovesOnly: what it says of others' moves, or as what it is not in them, is not kept.
func TestANodeSpeaksOfItsOwnMovesOnly(t *testing.T) {
	own := moves.MoveReport{ID: ident(0), Move: "m", Role: moves.MoveSource, State: moves.MoveSealed, Sums: []moves.MoveSum{{Claim: "data", Sum: sum}}}
	with := func(change func(*moves.MoveReport)) moves.MoveReport {
		r := own
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		said moves.MoveReport
		kept bool
	}{
		"of its own part": {own, true},
		"that it is back": {with(func(r *moves.MoveReport) { r.State = moves.MoveIsBack }), true},
		"as the target":   {with(func(r *moves.MoveReport) { r.Role, r.State = moves.MoveTarget, moves.MoveArrived }), false},
		"of another move": {with(func(r *moves.MoveReport) { r.Move, r.State = "other", moves.MoveUnsealed }), false},
		"of a member without a move, of which it has no volume":   {with(func(r *moves.MoveReport) { r.ID = ident(1) }), false},
		"a seal that the store does not know, of a volume of its": {with(func(r *moves.MoveReport) { r.ID = ident(2) }), true},
		"a seal of claims that are none":                          {with(func(r *moves.MoveReport) { r.ID, r.Claims = ident(2), []moves.MoveClaim{{Claim: "data", Old: "v2"}} }), false},
		"all else of that":                                        {with(func(r *moves.MoveReport) { r.ID, r.State = ident(2), moves.MoveUnsealed }), false},
		"a state of the other role":                               {with(func(r *moves.MoveReport) { r.State = moves.MoveArrived }), false},
		"no sum":                                                  {with(func(r *moves.MoveReport) { r.Sums = []moves.MoveSum{{Claim: "data", Sum: "x"}} }), false},
		"a key that is none":                                      {with(func(r *moves.MoveReport) { r.Key = "x" }), false},
		"a name that cannot be":                                   {with(func(r *moves.MoveReport) { r.ID.Namespace = ".." }), false},
	} {
		r := newStill(t)
		r.begin()
		r.move(moves.MoveSealing)
		r.Record(store.VolumeKey(ident(2), "data"), records.Volume{ID: ident(2), Claim: "data", UID: "v2", Node: "n1", Fate: records.FateKeep})
		h := r.hand(mover)
		h.tells()
		h.Receive(movesSaid(t, c.said))
		h.tells()
		if kept := len(r.facts().MoveReports) == 1; kept != c.kept {
			t.Errorf("%s: kept: %v; want %v", name, kept, c.kept)
		}
		hm := mover.message()
		hm.FactsJson, _ = json.Marshal(records.NodeFacts{Moves: true, MoveReports: []moves.MoveReport{c.said}})
		if _, _, err := r.server.join(t.Context(), hm); err != nil {
			t.Fatal(err)
		}
		if kept := len(r.facts().MoveReports) == 1; kept != c.kept {
			t.Errorf("%s: kept of a hello: %v; want %v", name, kept, c.kept)
		}
	}
}

// TestHowMuchIsCopiedIsNotWrittenAtEachTick: but a state is, at once.
func TestHowMuchIsCopiedIsNotWrittenAtEachTick(t *testing.T) {
	r := newStill(t)
	r.begin()
	r.move(moves.MoveCopying, func(m *moves.Move) { m.From, m.To = m.To, m.From; m.To.Node, m.To.UID = "n1", "uid1" })
	h := r.hand(mover)
	h.tells()
	say := func(state moves.MoveState, done int64) moves.MoveReport {
		t.Helper()
		h.Receive(movesSaid(t, moves.MoveReport{ID: ident(0), Move: "m", Role: moves.MoveTarget, State: state, DoneBytes: done, TotalBytes: 9}))
		h.tells()
		all := r.facts().MoveReports
		if len(all) != 1 {
			t.Fatalf("stored is %+v", all)
		}
		return all[0]
	}
	if got := say(moves.MoveCopyingNow, 1); got.DoneBytes != 1 {
		t.Errorf("at first %+v", got)
	}
	if got := say(moves.MoveCopyingNow, 2); got.DoneBytes != 1 {
		t.Errorf("a tick later %+v; want it as before", got)
	}
	if got := say(moves.MoveWarm, 3); got.State != moves.MoveWarm || got.DoneBytes != 3 {
		t.Errorf("another state: %+v; want it at once", got)
	}
	h.se.movesAt = time.Now().Add(-progressTime)
	if got := say(moves.MoveWarm, 4); got.DoneBytes != 4 {
		t.Errorf("after %s %+v", progressTime, got)
	}
}

func TestWhatANodeSaysOfMovesIsBounded(t *testing.T) {
	var many []moves.MoveReport
	for i := range 4 * moves.MaxMoves {
		many = append(many, moves.MoveReport{ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: i}, Move: "m", Role: moves.MoveSource, State: moves.MoveFailed, Error: strings.Repeat("x", 9999) + "\x1b[2J"})
	}
	got := saneMoves(many)
	if len(got) != 2*moves.MaxMoves || len(got[0].Error) > moveBytes || strings.Contains(got[0].Error, "\x1b") {
		t.Errorf("%d are kept, the first %+v", len(got), got[0])
	}
	r := newStill(t)
	h := r.hand(mover)
	h.Receive(&proto.FromNode{Kind: &proto.FromNode_Moves{Moves: &proto.MoveReports{ReportsJson: [][]byte{[]byte(strings.Repeat(" ", factsBytes+1))}}}})
	if err := h.Send(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("what is too long: %v", err)
	}
}

// SAFETY S12: the copy of a move that goes back is given up when that is over, not before.
func TestWhatWasLeftIsKeptWhileItsMoveGoesBack(t *testing.T) {
	r := newRig(t)
	r.begin()
	m := r.move(moves.MoveBack, func(m *moves.Move) {
		m.From, m.To = moves.MoveEnd{Node: "n2", UID: "uid2"}, moves.MoveEnd{Node: "n1", UID: "uid1"}
	})
	left := records.VolumeReport{ID: m.ID, Claim: "data", Volume: "c", Number: 1, Class: "local", Node: "n1", State: records.VolumeLeft}
	r.Record(store.VolumeReportKey(m.ID, "data", "c"), left)
	n := r.connect(mover)
	n.welcome()
	if orders := n.wanted().GetVolumesJson(); len(orders) != 0 {
		t.Fatalf("told %s while the move goes back", orders)
	}
	r.Commit(store.Del(store.MoveKey(m.ID)))
	n.order("c", records.FateReclaiming)
}
