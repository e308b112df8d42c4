package control

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// TestAMoveIsForetoldWantedAndAborted: what is refused writes nothing.
func TestAMoveIsForetoldWantedAndAborted(t *testing.T) {
	r := newRig(t)
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}
	node := func(name spec.NodeName, can bool) {
		uid := spec.UID("uid" + name[1:])
		r.Record(store.NodeKey(name), records.Node{Name: name, UID: uid})
		r.Record(store.FactsKey(name), records.NodeFacts{Name: name, UID: uid, Boot: "b1", Epoch: 1, Moves: can})
		r.Record(store.SessionKey(name), records.Session{Node: name, UID: uid, Boot: "b1", ID: 1})
	}
	node("n1", true)
	node("n2", true)
	node("n3", false)
	r.running()
	r.Record(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: "v2", Number: 1, Class: "local", Node: "n1", SizeBytes: 1 << 50, Fate: records.FateKeep})
	ask := func(req *proto.MoveRequest) (*proto.MoveResponse, error) {
		req.Member = "db-2"
		return r.api.Move(r.as("alice"), req)
	}
	for _, c := range []struct {
		req  *proto.MoveRequest
		code codes.Code
	}{
		{&proto.MoveRequest{}, codes.InvalidArgument},
		{&proto.MoveRequest{Node: "n2", Abort: true}, codes.InvalidArgument},
		{&proto.MoveRequest{Node: "n9"}, codes.NotFound},
		{&proto.MoveRequest{Node: "n1"}, codes.FailedPrecondition},
		{&proto.MoveRequest{Node: "n3"}, codes.FailedPrecondition},
		{&proto.MoveRequest{Abort: true}, codes.FailedPrecondition},
	} {
		_, err := ask(c.req)
		refused(t, err, c.code)
	}
	out, err := ask(&proto.MoveRequest{Node: "n2", DryRun: true})
	if err != nil || out.GetAsked() || !slices.Contains(out.GetEffects(), "copies volume data-db-2, 1Pi, from node n1 to node n2 while db-2 runs") ||
		!slices.Contains(out.GetEffects(), "stops db-2 once, for the rest; it starts on node n2") {
		t.Fatalf("foretold is %v, %v", out, err)
	}
	if _, there := r.Get(store.MoveRequestKey(id)); there {
		t.Error("a dry run wrote a request")
	}
	out, err = ask(&proto.MoveRequest{Node: "n2", BytesPerSecond: 5})
	if err != nil || !out.GetAsked() || out.GetOn() != "n1" {
		t.Fatalf("asked: %v, %v", out, err)
	}
	kv, _ := r.Get(store.MoveRequestKey(id))
	q, err := store.Decode[moves.MoveRequest](kv)
	if err != nil || q.Verb != moves.MoveBegin || q.To != (moves.MoveEnd{Node: "n2", UID: "uid2"}) || q.BytesPerSecond != 5 {
		t.Errorf("the request is %+v, %v", q, err)
	}
	r.Record(store.MoveKey(id), moves.Move{ID: id, Move: "m", Phase: moves.MoveCopying, From: moves.MoveEnd{Node: "n1", UID: "uid1"}, To: q.To, Epoch: 1,
		Claims: []moves.MoveClaim{{Claim: "data", Old: "v2", New: "c", Number: 1, Class: "local", SizeBytes: 9}}})
	out, err = ask(&proto.MoveRequest{Look: true})
	if err != nil || out.GetPhase() != "Copying" || out.GetText() != "its volumes move from node n1 to node n2: Copying" {
		t.Errorf("it stands %v, %v", out, err)
	}
	for _, show := range []struct{ kind, name string }{{proto.KindMember, "db-2"}, {proto.KindSet, "db"}} {
		o, err := r.api.Get(r.as("alice"), &proto.GetRequest{Kind: show.kind, Name: show.name})
		if err != nil || !strings.Contains(string(o.GetJson()), `"phase":"Copying"`) {
			t.Errorf("%s %s shows no move: %s, %v", show.kind, show.name, o.GetJson(), err)
		}
	}
	why, err := r.api.Explain(r.as("alice"), &proto.ExplainRequest{Name: "db-2"})
	if err != nil || !slices.ContainsFunc(why.GetRows(), func(row *proto.ExplainRow) bool {
		return row.GetWhat() == "moves from n1 to n2 (Copying)" && row.GetWhy() == "node n2 copies its volumes while it runs"
	}) {
		t.Errorf("it is explained %v, %v", why.GetRows(), err)
	}
	_, err = ask(&proto.MoveRequest{Node: "n2"})
	refused(t, err, codes.FailedPrecondition)
	out, err = ask(&proto.MoveRequest{Abort: true})
	if err != nil || !slices.Contains(out.GetEffects(), "db-2 stays on node n1; what was copied to node n2 is discarded") {
		t.Errorf("aborted: %v, %v", out, err)
	}
}
