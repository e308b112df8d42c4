package control

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

func (r *rig) drain(req *proto.DrainNodeRequest) *proto.DrainNodeResponse {
	r.t.Helper()
	req.Name = "n1"
	out, err := r.api.DrainNode(r.as("alice"), req)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r *rig) nodeRecord() *records.Node {
	r.t.Helper()
	_, kvs, err := r.Store.Get(r.ctx, store.NodeKey("n1"))
	if err != nil {
		r.t.Fatal(err)
	}
	n, err := before[records.Node](kvs[store.NodeKey("n1")])
	if err != nil || n == nil {
		r.t.Fatal(n, err)
	}
	return n
}

func TestADrainIsForetoldWantedAndEnds(t *testing.T) {
	r := newRig(t)
	_, err := r.api.DrainNode(r.ctx, &proto.DrainNodeRequest{Name: "n1"})
	refused(t, err, codes.NotFound)
	_, err = r.api.DrainNode(r.ctx, &proto.DrainNodeRequest{Name: "n1", DryRun: true})
	refused(t, err, codes.NotFound)
	r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
	r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b1"})
	r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 1})
	r.running()
	r.Record(store.VolumeKey(spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}, "data"),
		records.Volume{ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}, Claim: "data", UID: "v2", Number: 1, Class: "local", Node: "n1", SizeBytes: 1 << 50, Fate: records.FateKeep})

	foretold := r.drain(&proto.DrainNodeRequest{DryRun: true}).GetEffects()
	text := strings.Join(foretold, "\n")
	for _, want := range []string{
		"set default/db: db-2 stops (Drain), and waits: its volumes are on node n1, which is drained: it starts there after 'stead uncordon n1'; stays on the node: data-db-2",
		"set default/db: db-0 does not stop: it stops for the drain of node n1 when db-2 is available, which waits for its node, and at most 1 may be down at a time; to stop all at once: stead drain n1 --disable-eviction",
	} {
		if !slices.Contains(foretold, want) {
			t.Errorf("foretold is\n%s\nwant %s", text, want)
		}
	}
	if n := r.nodeRecord(); n.Drain != nil || n.Cordon {
		t.Fatalf("a dry run wrote %+v", n)
	}
	if all := strings.Join(r.drain(&proto.DrainNodeRequest{DryRun: true, AtOnce: true}).GetEffects(), "\n"); strings.Count(all, "stops (Drain)") != 3 {
		t.Errorf("at once:\n%s\nwant three that stop", all)
	}

	r.plan = plan.Plan{Blocked: []plan.Blocked{{ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: 1}, Reason: causes.BlockedTurn, Text: "it waits"}}}
	out := r.drain(&proto.DrainNodeRequest{})
	if !out.GetWanted() || out.GetUnchanged() || len(out.GetLeft()) != 3 || out.GetLeft()[1].GetWhy() != "it waits" {
		t.Fatalf("got %v", out)
	}
	if n := r.nodeRecord(); !n.Cordon || n.Drain == nil || n.Drain.By != "alice" || n.Drain.AtOnce {
		t.Fatalf("the node is %+v", n)
	}
	if out := r.drain(&proto.DrainNodeRequest{}); !out.GetUnchanged() {
		t.Fatalf("asked again, it is written again: %v", out)
	}
	if out := r.drain(&proto.DrainNodeRequest{AtOnce: true}); out.GetUnchanged() || !r.nodeRecord().Drain.AtOnce {
		t.Fatalf("at once is not stored: %v", out)
	}
	r.drain(&proto.DrainNodeRequest{})
	if !r.nodeRecord().Drain.AtOnce {
		t.Fatal("who waits again makes it slower")
	}
	r.lives(2, func(m *records.Member) { m.Goal, m.StopReason = records.GoalStop, records.ReasonDrain }, &records.Report{Phase: records.PhaseStopped})
	out = r.drain(&proto.DrainNodeRequest{Look: true})
	if len(out.GetLeft()) != 2 || len(out.GetWaiting()) != 1 || out.GetWaiting()[0].GetMember() != "db-2" {
		t.Fatalf("got %v; want two left and db-2 waiting", out)
	}

	off := false
	if _, err := r.api.EditNode(r.ctx, &proto.EditNodeRequest{Name: "n1", Cordon: &off}); err != nil {
		t.Fatal(err)
	}
	if n := r.nodeRecord(); n.Drain != nil || n.Cordon {
		t.Fatalf("after uncordon the node is %+v", n)
	}
}

// TestADrainSaysWhoIsLeftAndWhoWaits: a member whose life is over is not left, whatever ended it: it waits for the node.
func TestADrainSaysWhoIsLeftAndWhoWaits(t *testing.T) {
	r := newRig(t)
	r.running()
	r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
	r.lives(0, func(*records.Member) {}, &records.Report{Phase: records.PhaseFailed, Session: 1})
	r.lives(1, func(m *records.Member) { m.Goal, m.StopReason = records.GoalStop, records.ReasonDrain }, &records.Report{Phase: records.PhaseStopping, Session: 1})
	r.lives(2, func(m *records.Member) { m.Goal, m.StopReason = records.GoalStop, records.ReasonDrain }, &records.Report{Phase: records.PhaseStopped, Session: 1})
	names := func(rows []*proto.DrainRow) (list []string) {
		for _, row := range rows {
			list = append(list, row.GetMember())
		}
		return list
	}
	out := r.drain(&proto.DrainNodeRequest{})
	if left, waiting := names(out.GetLeft()), names(out.GetWaiting()); !slices.Equal(left, []string{"db-1"}) || !slices.Equal(waiting, []string{"db-0", "db-2"}) {
		t.Errorf("left are %q, and %q wait", left, waiting)
	}
	// One whose volumes are on their way is left until another node has them.
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}
	for phase, want := range map[moves.MovePhase]bool{moves.MoveSealing: true, moves.MoveFlipped: false, moves.MoveAborting: false} {
		r.Record(store.MoveKey(id), moves.Move{ID: id, Move: "m", Phase: phase, From: moves.MoveEnd{Node: "n1", UID: "uid1"}, To: moves.MoveEnd{Node: "n2", UID: "uid2"}})
		if left := names(r.drain(&proto.DrainNodeRequest{Look: true}).GetLeft()); slices.Contains(left, "db-2") != want {
			t.Errorf("in phase %s left are %q", phase, left)
		}
	}
}

// TestADrainThatMovesWaitsForVolumesThatStay: a member that does not run, and whose move was aborted, is left while its volumes are to leave.
func TestADrainThatMovesWaitsForVolumesThatStay(t *testing.T) {
	r := newRig(t)
	r.running()
	r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
	for n := range 3 {
		r.lives(n, func(m *records.Member) {
			m.Goal, m.StopReason, m.Volumes = records.GoalStop, records.ReasonMove, []records.MemberVolume{{Claim: "data", ID: "v2", Number: 1}}
		}, &records.Report{Phase: records.PhaseStopped, Session: 1})
	}
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}
	volume := records.Volume{ID: id, Claim: "data", UID: "v2", Number: 1, Class: "local", Node: "n1", SizeBytes: 1 << 20, Fate: records.FateKeep}
	keep := func(change func(v *records.Volume)) {
		v := volume
		change(&v)
		r.Record(store.VolumeKey(id, "data"), v)
	}
	left := func(req *proto.DrainNodeRequest) int { return len(r.drain(req).GetLeft()) }
	keep(func(*records.Volume) {})
	if n := left(&proto.DrainNodeRequest{}); n != 0 {
		t.Errorf("a drain that moves nothing has %d left", n)
	}
	if n := left(&proto.DrainNodeRequest{Move: true}); n != 1 {
		t.Errorf("%d are left, want db-2, whose volume is on the node", n)
	}
	keep(func(v *records.Volume) { v.Node = "n2" })
	if n := left(&proto.DrainNodeRequest{Look: true}); n != 0 {
		t.Errorf("its volume has left, and %d are left", n)
	}
	keep(func(v *records.Volume) { v.Fate = records.FateDelete })
	if n := left(&proto.DrainNodeRequest{Look: true}); n != 0 {
		t.Errorf("its volume is to go, and %d are left", n)
	}
	keep(func(*records.Volume) {})
	r.orphan()
	if n := left(&proto.DrainNodeRequest{Look: true}); n != 0 {
		t.Errorf("nothing is done for its set, and %d are left", n)
	}
}
