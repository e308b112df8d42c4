package control

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// TestAVolumeThatTheStoreDoesNotKnowIsAskedForWithItsNode: to be its member's, or to be given up; it is listed until then, and counts for quotas.
func TestAVolumeThatTheStoreDoesNotKnowIsAskedForWithItsNode(t *testing.T) {
	r := newRig(t)
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}
	r.Record(store.IdentityKey(id), records.IdentityRecord{ID: id, LastToken: spec.Token{Epoch: 1, Number: 7}, VolumeNumbers: map[spec.ClaimName]int{"data": 1}})
	r.Record(store.NodeKey("n7"), records.Node{Name: "n7", UID: "uid7"})
	r.Record(store.SessionKey("n7"), records.Session{Node: "n7", UID: "uid7", Boot: "b"})
	r.Record(store.FactsKey("n7"), records.NodeFacts{Name: "n7", UID: "uid7", Boot: "b", Epoch: 1, ListsVolumes: true, UnknownVolumes: []records.HostVolume{
		{ID: id, Claim: "data", Volume: "0123456789abcdef", Number: 1, Class: "local"},
	}})
	restore := func(name, node string) error {
		_, err := r.api.RestoreVolume(r.ctx, &proto.RestoreVolumeRequest{Name: name, Node: node})
		return err
	}
	refused(t, restore("data-db-2", ""), codes.NotFound, "is in the trash of a node")
	refused(t, restore("data-db-2", "n1"), codes.NotFound, "is in the trash of a node")
	for _, name := range []string{"data-db-2", "data-db-2.01234567", "0123456789abcdef"} {
		if err := restore(name, "n7"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if q, _ := r.request(id, "data"); q.Volume != "0123456789abcdef" || q.Verb != records.VerbRestore || q.Node != "n7" || q.Token.Number != 7 {
			t.Errorf("%s: asked %+v", name, q)
		}
	}
	list, err := r.api.List(r.ctx, &proto.ListRequest{Kind: proto.KindVolume, Namespace: "default"})
	if err != nil || len(list.GetObjects()) != 1 || !strings.Contains(string(list.GetObjects()[0].GetJson()), `"fate":"Unknown"`) {
		t.Errorf("listed are %v, %v", list, err)
	}

	reclaim := func(q *proto.ReclaimVolumeRequest) error {
		_, err := r.api.ReclaimVolume(r.ctx, q)
		return err
	}
	refused(t, reclaim(&proto.ReclaimVolumeRequest{Name: "data-db-2", Node: "n1"}), codes.NotFound, "node n1 has no volume data-db-2")
	refused(t, reclaim(&proto.ReclaimVolumeRequest{Name: "data-db-2", Node: "n7", Lost: true}), codes.InvalidArgument, "is not lost")
	refused(t, reclaim(&proto.ReclaimVolumeRequest{Name: "data-db-2", Node: "n7", Volume: "another"}), codes.Aborted, "is another volume now")
	if err := reclaim(&proto.ReclaimVolumeRequest{Name: "data-db-2", Node: "n7"}); err != nil {
		t.Fatal(err)
	}
	if q, _ := r.request(id, "data"); q.Volume != "0123456789abcdef" || q.Verb != records.VerbReclaim || q.Node != "n7" {
		t.Errorf("asked %+v", q)
	}
	r.mustApply(quotaYAML("persistentvolumeclaims: 0"))
	refused(t, restore("data-db-2", "n7"), codes.FailedPrecondition, "exceeds ResourceQuota")
}
