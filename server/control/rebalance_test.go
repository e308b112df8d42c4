package control

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// TestARebalanceIsForetoldAskedForAndThenDone: a dry run writes nothing; for real each move is a request, and asked again there is
// nothing to do.
func TestARebalanceIsForetoldAskedForAndThenDone(t *testing.T) {
	r := newRig(t)
	for i, name := range []spec.NodeName{"n1", "n2", "n3"} {
		uid := spec.UID("uid" + name[1:])
		r.Record(store.NodeKey(name), records.Node{Name: name, UID: uid})
		r.Record(store.FactsKey(name), records.NodeFacts{Name: name, UID: uid, Boot: "b1", Epoch: 1, Moves: true})
		r.Record(store.SessionKey(name), records.Session{Node: name, UID: uid, Boot: "b1", ID: spec.SessionID(i + 1)})
	}
	r.running()
	ids := make([]spec.Identity, 3)
	for i := range ids {
		ids[i] = spec.Identity{Namespace: "default", Set: "db", Ordinal: i}
		r.Record(store.VolumeKey(ids[i], "data"), records.Volume{
			ID: ids[i], Claim: "data", UID: records.VolumeID([]string{"v0", "v1", "v2"}[i]), Number: 1, Class: "local", Node: "n1", SizeBytes: 5, Fate: records.FateKeep,
		})
	}
	ask := func(req *proto.RebalanceRequest) (*proto.RebalanceResponse, error) {
		return r.api.Rebalance(r.as("alice"), req)
	}
	for _, c := range []struct {
		req  *proto.RebalanceRequest
		code codes.Code
	}{
		{&proto.RebalanceRequest{Sets: []string{"nope"}}, codes.NotFound},
		{&proto.RebalanceRequest{Sets: []string{"db"}, AllNamespaces: true}, codes.InvalidArgument},
		{&proto.RebalanceRequest{Max: -1}, codes.InvalidArgument},
	} {
		_, err := ask(c.req)
		refused(t, err, c.code)
	}
	requests := func() (list []moves.MoveRequest) {
		for _, id := range ids {
			if kv, there := r.Get(store.MoveRequestKey(id)); there {
				q, err := store.Decode[moves.MoveRequest](kv)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, q)
			}
		}
		return list
	}
	names := func(out *proto.RebalanceResponse) (said []string) {
		for _, m := range out.GetMoves() {
			said = append(said, m.GetMember()+" "+m.GetFrom()+" "+m.GetTo()+" after "+m.GetAfter())
		}
		return said
	}
	want := []string{"db-2 n1 n2 after ", "db-1 n1 n3 after db-2"}
	out, err := ask(&proto.RebalanceRequest{DryRun: true})
	if err != nil || !slices.Equal(names(out), want) || out.GetMoves()[0].GetBytes() != 5 || len(requests()) > 0 {
		t.Fatalf("foretold is %v, %v; asked %v", out, err, requests())
	}
	if out, err = ask(&proto.RebalanceRequest{Namespace: "other"}); err != nil || len(out.GetMoves())+len(requests()) > 0 {
		t.Errorf("of another namespace: %v, %v", out, err)
	}
	if out, err = ask(&proto.RebalanceRequest{Sets: []string{"db"}, Max: 1}); err != nil || !slices.Equal(names(out), want[:1]) || len(requests()) != 1 {
		t.Fatalf("one at most: %v, %v; asked %v", out, err, requests())
	}
	if out, err = ask(&proto.RebalanceRequest{AllNamespaces: true}); err != nil || len(out.GetMoves()) != 1 || len(requests()) != 2 {
		t.Fatalf("all: %v, %v; asked %v", out, err, requests())
	}
	if q := requests()[0]; q.ID != ids[1] || q.Verb != moves.MoveBegin || q.To != (moves.MoveEnd{Node: "n3", UID: "uid3"}) || q.By == "" || q.At.IsZero() {
		t.Errorf("the request is %+v", q)
	}
	if out, err = ask(&proto.RebalanceRequest{}); err != nil || len(out.GetMoves()) > 0 {
		t.Errorf("asked again: %v, %v", out, err)
	}
}
