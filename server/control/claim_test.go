package control

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

const claimYAML = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: files, labels: {app: db}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

var files = spec.ClaimIdentity("default", "files")

// filesBound stores the volume of the claim, and a member that has it.
func (r *rig) filesBound() {
	r.Record(store.VolumeKey(files, "files"), records.Volume{
		ID: files, Claim: "files", UID: "v1", Number: 1, Class: "local", Node: "n1", SizeBytes: 1 << 30, Fate: records.FateKeep,
	})
	id := spec.Identity{Namespace: "default", Set: "web", Ordinal: 0}
	r.Record(store.MemberKey(id), records.Member{ID: id, Token: spec.Token{Epoch: 1, Number: 7}, Node: "n1",
		Volumes: []records.MemberVolume{{Claim: "files", ID: "v1", Object: true}}})
}

func (r *rig) filesClaim() (c *records.ClaimRecord) {
	r.t.Helper()
	r.Cache.Look(func(v cache.View) { c = cache.ClaimOf(v, "default", "files").Record })
	return c
}

func (r *rig) volumeShown(name string) *proto.Object {
	r.t.Helper()
	out, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: proto.KindVolume, Name: name})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func TestAClaimIsAppliedShownGrownAndDeleted(t *testing.T) {
	r := newRig(t)
	if got := r.mustApply(claimYAML); got[0] != "claim files created" {
		t.Fatalf("got %v", got)
	}
	if got := r.mustApply(claimYAML); got[0] != "claim files unchanged" {
		t.Fatalf("again: %v", got)
	}
	if shown := string(r.volumeShown("files").GetJson()); !strings.Contains(shown, `"fate":"Unbound"`) || !strings.Contains(shown, `"app":"db"`) {
		t.Errorf("before it is used: %s", shown)
	}
	r.filesBound()
	if shown := string(r.volumeShown("files").GetJson()); !strings.Contains(shown, `"fate":"Keep"`) || !strings.Contains(shown, `"user":"web-0 1.7"`) {
		t.Errorf("in use: %s", shown)
	}
	out, err := r.apply(strings.Replace(claimYAML, "1Gi", "2Gi", 1))
	if err != nil || !slices.Contains(out.GetApplied()[0].GetEffects(), "grows the volume from 1Gi to 2Gi") {
		t.Fatalf("got %v, %v", out, err)
	}
	for change, want := range map[string]string{
		"2Gi->1Gi": "cannot shrink", "ReadWriteOnce->ReadWriteOncePod": "spec.accessModes: must not change",
	} {
		from, to, _ := strings.Cut(change, "->")
		_, err := r.apply(strings.Replace(strings.Replace(claimYAML, "1Gi", "2Gi", 1), from, to, 1))
		refused(t, err, codes.FailedPrecondition, "a.yaml:4:", want)
	}
	_, err = r.api.ReclaimVolume(r.ctx, &proto.ReclaimVolumeRequest{Name: "files"})
	refused(t, err, codes.FailedPrecondition, "token 1.7 of web-0 on node n1 may use it")

	gone, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindClaim, Name: "files"})
	if said := strings.Join(gone.GetEffects(), "\n"); err != nil || !strings.Contains(said, "to the trash of node n1; restorable for 24h") ||
		!strings.Contains(said, "waits until nothing uses its volume: token 1.7 of web-0 on node n1 may") {
		t.Fatalf("got %q, %v", said, err)
	}
	if c := r.filesClaim(); c == nil || !c.Deleting {
		t.Fatalf("the claim is %+v; want it there until nothing uses it", c)
	}
	if shown := string(r.volumeShown("files").GetJson()); !strings.Contains(shown, `"asked":"Delete"`) {
		t.Errorf("while it goes: %s", shown)
	}
	_, err = r.apply(claimYAML)
	refused(t, err, codes.FailedPrecondition, "a.yaml:3:", "claim default/files is being deleted")
}

func TestAVolumeOfAMemberIsNotDeletedAsAClaim(t *testing.T) {
	r := newRig(t)
	r.left(spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}, "data", "v1")
	_, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindClaim, Name: "data-db-2"})
	refused(t, err, codes.FailedPrecondition, "is kept for db-2", "stead volume reclaim data-db-2")
	_, err = r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindClaim, Name: "nothing"})
	refused(t, err, codes.NotFound, "there is no claim nothing")
}

func TestASetSaysWhichClaimsItMisses(t *testing.T) {
	mounting := strings.Replace(setYAML, "      containers:", "      volumes: [{name: v, persistentVolumeClaim: {claimName: files}}]\n      containers:", 1)
	if mounting == setYAML {
		t.Fatal("the manifest has another form")
	}
	r := newRig(t)
	missing := "set default/db: there is no PersistentVolumeClaim files; members wait for it"
	out, err := r.apply(mounting)
	if err != nil || !slices.Contains(out.GetWarnings(), missing) {
		t.Fatalf("got %v, %v", out, err)
	}
	out, err = r.apply(claimYAML + "---\n" + mounting)
	if err != nil || slices.Contains(out.GetWarnings(), missing) {
		t.Fatalf("with the claim: %v, %v", out, err)
	}
	own := "set default/db: a member has a volume of its own named data-db-0, and does not use the PersistentVolumeClaim of that name"
	out, err = r.apply(strings.Replace(claimYAML, "name: files", "name: data-db-0", 1) + "---\n" + mounting)
	if err != nil || !slices.Contains(out.GetWarnings(), own) {
		t.Fatalf("a claim of a member's own name: %v, %v", out, err)
	}
}

func TestBeforeAnyNodeHasJoinedAForeignStorageClassIsSaid(t *testing.T) {
	r := newRig(t)
	r.nodeless = true
	for yaml, of := range map[string]string{
		classYAML("gold"): "set default/db", strings.Replace(claimYAML, "accessModes:", "storageClassName: gold, accessModes:", 1): "claim default/files",
	} {
		out, err := r.apply(yaml)
		if err != nil || !strings.Contains(strings.Join(out.GetWarnings(), "\n"), of+": no node has joined yet that could have the storage class gold") {
			t.Errorf("got %v, %v", out, err)
		}
	}
	r.node("n1", "local", "ssd")
	_, err := r.apply(strings.Replace(strings.Replace(claimYAML, "name: files", "name: other", 1), "accessModes:", "storageClassName: gold, accessModes:", 1))
	refused(t, err, codes.FailedPrecondition, "spec.storageClassName", `no node has a storage class "gold"`, "local, ssd")
	out, err := r.apply(strings.Replace(strings.Replace(claimYAML, "name: files", "name: other", 1), "accessModes:", "storageClassName: gp3, accessModes:", 1))
	if err != nil || !slices.Contains(out.GetWarnings(), "claim default/other: storage class gp3 is ssd here (--map-class)") {
		t.Errorf("got %v, %v", out, err)
	}
}

// TestReadWriteManyNeedsAClassThatNodesShare: else it says which do, and what else to write.
func TestReadWriteManyNeedsAClassThatNodesShare(t *testing.T) {
	many := strings.Replace(claimYAML, "ReadWriteOnce]", "ReadWriteMany]", 1)
	nfs := strings.Replace(many, "accessModes:", "storageClassName: nfs, accessModes:", 1)
	r := newRig(t)
	r.nodeless = true
	out, err := r.apply(nfs)
	if want := "claim default/files: no node has joined yet that could share the storage class nfs; members wait until one does, with --shared-class"; err != nil ||
		!slices.Equal(out.GetWarnings(), []string{want}) {
		t.Errorf("before any node: %v, %v", out.GetWarnings(), err)
	}
	r = newRig(t)
	r.node("n1", "local", "nfs")
	_, err = r.apply(many)
	refused(t, err, codes.FailedPrecondition, "a.yaml:4:", "spec.accessModes: ReadWriteMany needs a storage class that nodes share, and no node shares local",
		"declare it with --storage-class and --shared-class", "or write ReadWriteOnce")
	_, err = r.apply(strings.Replace(many, "accessModes:", "storageClassName: gold, accessModes:", 1))
	refused(t, err, codes.FailedPrecondition, `no node has a storage class "gold"`)
	r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "u-n1", Classes: []string{"local", "nfs"}, SharedClasses: []string{"nfs"}})
	_, err = r.apply(many)
	refused(t, err, codes.FailedPrecondition, "no node shares local; write a class that nodes share (nfs), or")
	if got := r.mustApply(nfs); got[0] != "claim files created" {
		t.Errorf("got %v", got)
	}
	r.node("n1", "local", "nfs") // whatever became of the nodes, a claim that is there can be changed
	if got := r.mustApply(strings.Replace(nfs, "1Gi", "2Gi", 1)); got[0] != "claim files configured" {
		t.Errorf("got %v", got)
	}
}
