package control

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// left puts a kept volume into the store, of a set that is gone.
func (r *rig) left(id spec.Identity, claim spec.ClaimName, volume records.VolumeID) {
	r.Record(store.VolumeKey(id, claim), records.Volume{
		ID: id, Claim: claim, UID: volume, Number: 1, Class: "local", Node: "n1", SizeBytes: 1 << 30, Fate: records.FateKeep,
	})
}

func (r *rig) request(id spec.Identity, claim spec.ClaimName) (records.VolumeRequest, bool) {
	r.t.Helper()
	key := store.VolumeRequestKey(id, claim)
	_, kvs, err := r.Store.Get(r.ctx, key)
	if err != nil {
		r.t.Fatal(err)
	}
	kv, ok := kvs[key]
	if !ok {
		return records.VolumeRequest{}, false
	}
	q, err := store.Decode[records.VolumeRequest](kv)
	if err != nil {
		r.t.Fatal(err)
	}
	return q, true
}

func TestAVolumeIsAskedForByItsNameOrId(t *testing.T) {
	r := newRig(t)
	r.nodeless = true
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}
	r.left(id, "data", "v1")
	r.Record(store.IdentityKey(id), records.IdentityRecord{ID: id, LastToken: spec.Token{Epoch: 1, Number: 7}})
	ask := &proto.ReclaimVolumeRequest{Name: "data-db-2", DryRun: true}
	out, err := r.api.ReclaimVolume(r.ctx, ask)
	if err != nil || out.GetVolume() != "v1" {
		t.Fatalf("got %v, %v", out, err)
	}
	said := strings.Join(out.GetEffects(), "\n")
	for _, want := range []string{"data-db-2 (v1), number 1, 1Gi on node n1", "to the trash of node n1; restorable for 24h", "silent"} {
		if !strings.Contains(said, want) {
			t.Errorf("said %q; want %q", said, want)
		}
	}
	if _, asked := r.request(id, "data"); asked {
		t.Fatal("a dry run wrote")
	}
	millis := int64(60_000)
	ask = &proto.ReclaimVolumeRequest{Name: "v1", Volume: "v1", TrashMillis: &millis}
	if out, err = r.api.ReclaimVolume(r.ctx, ask); err != nil || !strings.Contains(out.String(), "for 1m") {
		t.Fatalf("got %v, %v", out, err)
	}
	q, _ := r.request(id, "data")
	if q.Volume != "v1" || q.Verb != records.VerbReclaim || q.Token.Number != 7 || q.Trash.Minutes() != 1 {
		t.Errorf("asked %+v", q)
	}
	millis = -1
	_, err = r.api.ReclaimVolume(r.ctx, ask)
	refused(t, err, codes.InvalidArgument, "must be 0 or more")
}

func TestAVolumesNameIsTakenAsItIs(t *testing.T) {
	r := newRig(t)
	one, two := spec.Identity{Namespace: "default", Set: "a-b", Ordinal: 0}, spec.Identity{Namespace: "default", Set: "b", Ordinal: 0}
	r.left(one, "x", "v1")
	r.left(two, "x-a", "v2")
	_, err := r.api.ReclaimVolume(r.ctx, &proto.ReclaimVolumeRequest{Name: "x-a-b-0"})
	refused(t, err, codes.InvalidArgument, "the name of 2 volumes", "v1 is the claim x of a-b-0", "v2 is the claim x-a of b-0")
	if _, err := r.api.ReclaimVolume(r.ctx, &proto.ReclaimVolumeRequest{Name: "v2"}); err != nil {
		t.Fatal(err)
	}
	if _, asked := r.request(one, "x"); asked {
		t.Error("the other one was asked for")
	}
	if q, asked := r.request(two, "x-a"); !asked || q.Volume != "v2" {
		t.Errorf("asked %+v", q)
	}
	for _, name := range []string{"", "x-a-b-00", "x-a-b", "X-A-B-0", "v"} {
		_, err = r.api.ReclaimVolume(r.ctx, &proto.ReclaimVolumeRequest{Name: name})
		refused(t, err, codes.NotFound, "there is no volume")
	}
	_, err = r.api.ReclaimVolume(r.ctx, &proto.ReclaimVolumeRequest{Namespace: "other", Name: "v2"})
	refused(t, err, codes.NotFound, "there is no volume")
}

// Whoever gives up one of several volumes of a deleted set learns what the set does with
// the others when it comes back.
func TestGivingUpOneOfSeveralKeptVolumesWarns(t *testing.T) {
	r := newRig(t)
	ask := func(lost bool) string {
		t.Helper()
		out, err := r.api.ReclaimVolume(r.ctx, &proto.ReclaimVolumeRequest{Name: "data-db-2", DryRun: true, Lost: lost})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(out.GetEffects(), "\n")
	}
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}
	r.left(id, "data", "v2")
	r.left(id, "wal", "w2")
	if said := ask(false); strings.Contains(said, "warning") {
		t.Errorf("nothing of another member is kept, but: %s", said)
	}
	for id.Ordinal = range 2 {
		r.left(id, "data", records.VolumeID(rune('a'+id.Ordinal)))
	}
	const want = "warning: data-db-0, data-db-1 of the deleted set db stay; applied again, it continues with these, and db-2 copies the data from the other members"
	for _, lost := range []bool{false, true} {
		if said := ask(lost); !strings.Contains(said, want) {
			t.Errorf("lost %v: said %s\nwant %s", lost, said, want)
		}
	}
	if _, err := r.apply(strings.Replace(setYAML, "replicas: 3", "replicas: 1", 1)); err != nil {
		t.Fatal(err)
	}
	if said := ask(false); strings.Contains(said, "warning") {
		t.Errorf("the set is there, but: %s", said)
	}
}

func TestAVolumeInUseIsRefusedAtOnce(t *testing.T) {
	r := newRig(t)
	if _, err := r.apply(setYAML); err != nil {
		t.Fatal(err)
	}
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	r.left(id, "data", "v1")
	_, err := r.api.ReclaimVolume(r.ctx, &proto.ReclaimVolumeRequest{Name: "data-db-0", DryRun: true})
	refused(t, err, codes.FailedPrecondition, "db-0 is a member of the set", "nothing was changed")
	id.Ordinal = 9
	r.left(id, "data", "v9")
	life := spec.Token{Epoch: 1, Number: 7}
	r.Record(store.MemberKey(id), records.Member{ID: id, Token: life})
	r.Record(store.IdentityKey(id), records.IdentityRecord{ID: id, LastToken: life})
	_, err = r.api.ReclaimVolume(r.ctx, &proto.ReclaimVolumeRequest{Name: "data-db-9"})
	refused(t, err, codes.FailedPrecondition, "may still use it")
	id.Ordinal = 10
	r.left(id, "data", "v10")
	_, err = r.api.ReclaimVolume(r.ctx, &proto.ReclaimVolumeRequest{Name: "data-db-10", Volume: "another"})
	refused(t, err, codes.Aborted, "is another volume now")
	if _, asked := r.request(id, "data"); asked {
		t.Error("what was refused was written")
	}
}

func TestAVolumeIsAskedBackByItsNameOrId(t *testing.T) {
	r := newRig(t)
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}
	r.Record(store.IdentityKey(id), records.IdentityRecord{ID: id, LastToken: spec.Token{Epoch: 1, Number: 7}})
	trashed := func(volume records.VolumeID, state records.VolumeState) {
		r.Record(store.VolumeReportKey(id, "data", volume), records.VolumeReport{ID: id, Claim: "data", Volume: volume, Number: 1, Class: "local", Node: "n1", State: state})
	}
	restore := func(name string) error {
		_, err := r.api.RestoreVolume(r.ctx, &proto.RestoreVolumeRequest{Name: name})
		return err
	}
	refused(t, restore("data-db-2"), codes.NotFound, "is in the trash of a node")
	refused(t, restore(""), codes.NotFound, "is in the trash of a node")
	trashed("0123456789abcdef", records.VolumeTrashed)
	for _, name := range []string{"data-db-2", "data-db-2.01234567", "0123456789abcdef"} {
		if err := restore(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if q, _ := r.request(id, "data"); q.Volume != "0123456789abcdef" || q.Verb != records.VerbRestore || q.Token.Number != 7 {
			t.Errorf("%s: asked %+v", name, q)
		}
	}
	trashed("fedcba9876543210", records.VolumeTrashed)
	trashed("9999999999999999", records.VolumeRefused)
	refused(t, restore("9999999999999999"), codes.NotFound, "is in the trash of a node")
	refused(t, restore("data-db-2"), codes.InvalidArgument, "the name of 2 volumes in the trash", "0123456789abcdef", "fedcba9876543210")
	if err := restore("fedcba9876543210"); err != nil {
		t.Error(err)
	}
	r.left(id, "data", "v1")
	refused(t, restore("fedcba9876543210"), codes.FailedPrecondition, "has another volume", "v1")
}

// What only a node's word puts into its trash comes back when a person names the node, and
// is never taken for what the store knew to lie elsewhere.
func TestAVolumeThatOnlyItsNodeKnowsComesBackWhenTheNodeIsNamed(t *testing.T) {
	r := newRig(t)
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}
	r.Record(store.IdentityKey(id), records.IdentityRecord{ID: id, LastToken: spec.Token{Epoch: 1, Number: 7}})
	trashed := func(volume records.VolumeID, node spec.NodeName, unproven bool) {
		r.Record(store.VolumeReportKey(id, "data", volume), records.VolumeReport{
			ID: id, Claim: "data", Volume: volume, Number: 1, Class: "local", Node: node, State: records.VolumeTrashed, Unproven: unproven,
		})
	}
	restore := func(node string) error {
		_, err := r.api.RestoreVolume(r.ctx, &proto.RestoreVolumeRequest{Name: "data-db-2", Node: node})
		return err
	}
	trashed("0123456789abcdef", "evil", true)
	refused(t, restore(""), codes.FailedPrecondition, "only node evil reports", "--node evil")
	refused(t, restore("n1"), codes.NotFound, "is in the trash")
	if _, asked := r.request(id, "data"); asked {
		t.Fatal("what was refused was written")
	}
	if err := restore("evil"); err != nil {
		t.Fatal(err)
	}
	if q, _ := r.request(id, "data"); q.Volume != "0123456789abcdef" || q.Node != "evil" {
		t.Errorf("asked %+v", q)
	}
	trashed("fedcba9876543210", "n1", false)
	if err := restore(""); err != nil {
		t.Fatal(err)
	}
	if q, _ := r.request(id, "data"); q.Volume != "fedcba9876543210" || q.Node != "n1" {
		t.Errorf("asked %+v; want what the store knew", q)
	}
}

func TestOnlyWhatIsMissingIsLost(t *testing.T) {
	r := newRig(t)
	if _, err := r.apply(setYAML); err != nil {
		t.Fatal(err)
	}
	id, life := spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}, spec.Token{Epoch: 1, Number: 7}
	r.left(id, "data", "v1")
	r.Record(store.MemberKey(id), records.Member{ID: id, Token: life, Goal: records.GoalRun})
	r.Record(store.IdentityKey(id), records.IdentityRecord{ID: id, LastToken: life})
	ask := &proto.ReclaimVolumeRequest{Name: "data-db-0", Lost: true}
	_, err := r.api.ReclaimVolume(r.ctx, ask)
	refused(t, err, codes.FailedPrecondition, "which is unreachable", "stead node fence n1", "nothing was changed")
	r.Record(store.ReportKey(id), records.Report{ID: id, Token: life, Phase: records.PhasePreparing, Cause: causes.VolumeMissing})
	out, err := r.api.ReclaimVolume(r.ctx, ask)
	if err != nil || !strings.Contains(out.String(), "db-0 starts with a new, empty one") {
		t.Fatalf("got %v, %v", out, err)
	}
	if q, _ := r.request(id, "data"); q.Verb != records.VerbLost || q.Volume != "v1" || q.Token != life {
		t.Errorf("asked %+v", q)
	}
}

// between does something just before the nth snapshot.
type between struct {
	store.Store
	n  int
	do func()
}

func (b *between) Snapshot(ctx context.Context, prefix string) (store.Rev, []store.KV, error) {
	b.n--
	if b.n == 0 {
		b.do()
	}
	return b.Store.Snapshot(ctx, prefix)
}

// Whoever waits for what was asked looks again and again: whenever it is done, he never
// sees a volume of which nothing is asked and nothing came.
func TestAVolumeIsShownAskedForOrAsItWasAsked(t *testing.T) {
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}
	ask := func(r *rig, verb records.VolumeVerb) {
		r.Record(store.VolumeRequestKey(id, "data"), records.VolumeRequest{ID: id, Claim: "data", Volume: "v1", Verb: verb})
	}
	said := func(r *rig, state records.VolumeState) {
		r.Record(store.VolumeReportKey(id, "data", "v1"), records.VolumeReport{ID: id, Claim: "data", Volume: "v1", Node: "n1", State: state})
	}
	put := func(r *rig, fate records.VolumeFate) {
		r.Record(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: "v1", Node: "n1", Fate: fate})
	}
	for n := 1; n <= 3; n++ {
		for _, c := range []struct {
			name       string
			begin, end func(*rig)
		}{
			{"given up", func(r *rig) { put(r, records.FateKeep); ask(r, records.VerbReclaim) },
				func(r *rig) { put(r, records.FateReclaiming) }},
			{"brought back", func(r *rig) { said(r, records.VolumeTrashed); ask(r, records.VerbRestore) },
				func(r *rig) { put(r, records.FateRestoring); said(r, records.VolumeFound) }},
		} {
			r := newRig(t)
			c.begin(r)
			s := newServer(Config{Cache: r.Cache, Planner: r, Store: &between{Store: r.Store, n: n, do: func() {
				c.end(r)
				if _, err := r.Store.Commit(r.ctx, store.Txn{Then: []store.Op{store.Del(store.VolumeRequestKey(id, "data"))}}); err != nil {
					t.Fatal(err)
				}
			}}})
			items, err := s.fromVolumes(r.ctx, query{ns: "default"})
			if err != nil || len(items) != 1 {
				t.Fatalf("%s before snapshot %d: shown %v, error %v", c.name, n, items, err)
			}
			vol, st := items[0].body.Spec.(records.Volume), items[0].body.Status.(records.ShownVolume)
			if !vol.Fate.Ordered() && st.Asked == "" {
				t.Errorf("%s before snapshot %d: shown as %s, asked %q", c.name, n, vol.Fate, st.Asked)
			}
		}
	}
}

// overtaken does something just before a commit.
type overtaken struct {
	store.Store
	do func()
}

func (o *overtaken) Commit(ctx context.Context, txn store.Txn) (store.Rev, error) {
	o.do()
	return o.Store.Commit(ctx, txn)
}

// What is asked stands only if all that was judged is as it was.
func TestWhatIsAskedOfAVolumeComparesAllItWasJudgedBy(t *testing.T) {
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 2}
	for _, key := range []string{"", store.SetKey(id.Ref()), store.MemberKey(id), store.IdentityKey(id),
		store.VolumeKey(id, "data"), store.VolumeRequestKey(id, "data")} {
		r := newRig(t)
		r.left(id, "data", "v1")
		s := newServer(Config{Cache: r.Cache, Planner: r, Store: &overtaken{r.Store, func() {
			if key == "" {
				return
			}
			if _, err := r.Store.Commit(r.ctx, store.Txn{Then: []store.Op{store.Put(key, []byte("{}"))}}); err != nil {
				t.Fatal(err)
			}
		}}})
		_, err := s.ReclaimVolume(r.ctx, &proto.ReclaimVolumeRequest{Name: "data-db-2"})
		if key == "" && err != nil {
			t.Fatalf("nothing changed meanwhile: %v", err)
		}
		if key != "" {
			refused(t, err, codes.Aborted, "changed meanwhile")
		}
	}
}
