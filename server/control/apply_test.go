package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func TestApplyCreatesConfiguresAndLeavesAlone(t *testing.T) {
	r := newRig(t)
	before := r.rev()
	got := r.mustApply(filesYAML, setYAML)
	want := []string{"configmap conf created", "secret pass created", "service db created", "set db created"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if r.rev() != before+1 {
		t.Fatalf("four objects took %d revisions", r.rev()-before)
	}
	s, _ := r.set("db")
	if s.Generation != 1 || len(s.UID) != 32 || s.InitialReplicas != 3 || s.Replicas() != 3 || s.Spec.ServiceName != "db" ||
		s.Spec.PodManagementPolicy != spec.OrderedReady || s.CreatedAt.IsZero() {
		t.Fatalf("got %+v", s)
	}
	before = r.rev()
	for _, line := range r.mustApply(filesYAML, setYAML) {
		if !strings.HasSuffix(line, " unchanged") {
			t.Fatalf("got %q", line)
		}
	}
	if r.rev() != before {
		t.Fatal("an apply without a difference wrote")
	}
	same := strings.Replace(setYAML, "storage: 1Gi", "storage: 1024Mi", 1)
	if got := r.mustApply(same); !slices.Equal(got, []string{"set db unchanged"}) {
		t.Fatalf("1Gi and 1024Mi differ: %v", got)
	}
	got = r.mustApply(strings.Replace(filesYAML, "x=1", "x=2", 1), strings.Replace(setYAML, "replicas: 3", "replicas: 5", 1))
	want = []string{"configmap conf configured", "secret pass unchanged", "service db unchanged", "set db configured"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	now, _ := r.set("db")
	if now.Generation != 2 || now.UID != s.UID || now.InitialReplicas != 3 || now.Replicas() != 5 || !now.CreatedAt.Equal(s.CreatedAt) {
		t.Fatalf("got %+v", now)
	}
}

func TestLabelsAreWrittenWithoutANewGeneration(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	if got := r.mustApply(strings.Replace(setYAML, "{name: db}", "{name: db, labels: {team: a}}", 1)); !slices.Equal(got, []string{"set db configured"}) {
		t.Fatalf("got %v", got)
	}
	if s, _ := r.set("db"); s.Generation != 1 || s.Labels["team"] != "a" {
		t.Fatalf("got %+v", s)
	}
}

func TestAFileWithoutReplicasKeepsTheNumber(t *testing.T) {
	without := strings.Replace(setYAML, "  replicas: 3\n", "", 1)
	r := newRig(t)
	r.mustApply(without)
	if s, _ := r.set("db"); s.Replicas() != 1 || s.InitialReplicas != 1 {
		t.Fatalf("got %d members, want 1 at creation", s.Replicas())
	}
	if _, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: 4}); err != nil {
		t.Fatal(err)
	}
	if got := r.mustApply(without); !slices.Equal(got, []string{"set db unchanged"}) {
		t.Fatalf("got %v", got)
	}
	if s, _ := r.set("db"); s.Replicas() != 4 {
		t.Fatalf("got %d members, want 4", s.Replicas())
	}
}

func TestApplySaysWhatItWillDo(t *testing.T) {
	r := newRig(t)
	effects := func(yaml string) string {
		t.Helper()
		out, err := r.apply(yaml)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(out.GetApplied()[0].GetEffects(), "\n")
	}
	scaled := func(n int) string { return strings.Replace(setYAML, "replicas: 3", fmt.Sprintf("replicas: %d", n), 1) }
	withOrdinals := func(n int, ordinals string) string {
		return strings.Replace(strings.Replace(scaled(n), "replicas:", "ordinals: "+ordinals+"\n  replicas:", 1), "apps/v1", "stead/v1", 1)
	}
	for _, c := range []struct{ yaml, want string }{
		{setYAML, "creates db-0, db-1, db-2 in this order"},
		{scaled(5), "scales db 3 → 5: creates db-3, db-4 in this order"},
		{scaled(3), "scales db 5 → 3: stops db-4, db-3 in this order; volumes kept"},
		{scaled(2), "scales db 3 → 2: stops db-2; volumes kept"},
		{withOrdinals(2, "{start: 1}"), "moves db: creates db-2, then stops db-0; volumes kept"},
		{withOrdinals(3, "{reserved: [0, 2-3]}"), "scales db 2 → 3: creates db-4, db-5 in this order, then stops db-2; volumes kept"},
		{withOrdinals(3, "{reserved: [1, 2-3]}"), "moves db: creates db-0, then stops db-1; volumes kept"},
		{scaled(2), "scales db 3 → 2: creates db-1, then stops db-5, db-4 in this order; volumes kept"},
		{scaled(100), "scales db 2 → 100: creates db-2, db-3, db-4, db-5, db-6, db-7, db-8, db-9, db-10, db-11 and 88 more in this order"},
		{scaled(100), ""},
	} {
		if got := effects(c.yaml); got != c.want {
			t.Fatalf("got %q, want %q", got, c.want)
		}
		r.happens()
	}
}

func TestWhatBecomesOfVolumesIsSaidBefore(t *testing.T) {
	const policy = "apiVersion: stead/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  replicas: %d\n" +
		"  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Delete}\n" +
		"  selector: {matchLabels: {app: db}}\n  template:\n    metadata: {labels: {app: db}}\n" +
		"    spec: {containers: [{name: a, image: b, volumeMounts: [{name: data, mountPath: /d}, {name: log, mountPath: /l}]}]}\n" +
		"  volumeClaimTemplates:\n  - metadata: {name: data}\n    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n" +
		"  - metadata: {name: log}\n    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n    reclaim: {after: 0s}\n"
	r := newRig(t)
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	volume := records.Volume{ID: id, Claim: "data", UID: "v1", Number: 1, Class: "local", Node: "n1", SizeBytes: 1 << 10, Fate: records.FateReclaiming}
	r.Record(store.VolumeKey(id, "data"), volume)
	out, err := r.apply(fmt.Sprintf(policy, 3))
	want := "waits until the volumes data of db-0 are given up, then makes new ones"
	if err != nil || !slices.Contains(out.GetApplied()[0].GetEffects(), want) {
		t.Fatalf("got %v, %v; want %q", out, err, want)
	}
	out, err = r.apply(strings.Replace(fmt.Sprintf(policy, 3), "storage: 1Gi", "storage: 2Gi", 1))
	want = "grows the volumes of the claim data from 1Gi to 2Gi"
	if err != nil || !slices.Contains(out.GetApplied()[0].GetEffects(), want) {
		t.Fatalf("got %v, %v; want %q", out, err, want)
	}
	_, err = r.apply(fmt.Sprintf(policy, 3))
	refused(t, err, codes.FailedPrecondition, "a volume cannot shrink")
	r = newRig(t)
	r.mustApply(fmt.Sprintf(policy, 3))
	r.happens()
	out, err = r.apply(fmt.Sprintf(policy, 2))
	want = "scales db 3 → 2: stops db-2; their volumes are given up, and erased (data after 24h, log at once)"
	if err != nil || !slices.Contains(out.GetApplied()[0].GetEffects(), want) {
		t.Fatalf("got %v, %v; want %q", out, err, want)
	}
	volume.Fate = records.FateKeep
	r.Record(store.VolumeKey(id, "data"), volume)
	gone, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "set", Name: "db"})
	want = "gives up the volumes data-db-0, log-db-0, data-db-1, log-db-1, data-db-2, log-db-2, and erases them (data after 24h, log at once)"
	if err != nil || !slices.Contains(gone.GetEffects(), want) {
		t.Fatalf("got %v, %v; want %q", gone, err, want)
	}
}

func TestAnEditOfTheRetentionPolicySaysWhatItWillCost(t *testing.T) {
	with := func(scaled, deleted spec.Retention) *records.Set {
		return &records.Set{Spec: spec.SetSpec{
			Retention:            &spec.RetentionPolicy{WhenScaled: scaled, WhenDeleted: deleted},
			VolumeClaimTemplates: []spec.ClaimTemplate{{Metadata: spec.ObjectMeta{Name: "data"}}},
		}}
	}
	const cost = " will cost data: the volumes are given up then, and erased (data after 24h); until now they were kept"
	kept, none := with(spec.Retain, spec.Retain), with(spec.Retain, spec.Retain)
	none.Spec.Retention = nil
	spec.Default(&none.Spec)
	for name, c := range map[string]struct {
		old, now *records.Set
		want     []string
	}{
		"nothing changed":         {kept, none, nil},
		"both become Delete":      {kept, with(spec.Delete, spec.Delete), []string{"scaling down" + cost, "deleting the set" + cost}},
		"one does, from defaults": {none, with(spec.Retain, spec.Delete), []string{"deleting the set" + cost}},
		"one is kept again":       {with(spec.Delete, spec.Retain), kept, []string{"scaling down keeps the volumes from now on"}},
	} {
		if got := changeEffects(c.old, c.now); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	memberless := with(spec.Delete, spec.Delete)
	memberless.Spec.VolumeClaimTemplates = nil
	if got := changeEffects(&records.Set{}, memberless); got != nil {
		t.Errorf("of a set without volumes: %q", got)
	}
}

func TestVolumesAreChosenByTheLabelsOfTheirClaim(t *testing.T) {
	r := newRig(t)
	r.mustApply(strings.Replace(setYAML, "metadata: {name: data}", "metadata: {name: data, labels: {tier: disk, app: other}}", 1))
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	r.Record(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: "v0", Node: "n1", Fate: records.FateKeep})
	id.Ordinal = 1 // its labels are its own, also when the set is gone
	r.Record(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: "v1", Node: "n1", Fate: records.FateKeep, Labels: map[string]string{"app": "db", "old": "yes"}})
	id.Set = "gone"
	r.Record(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: "v2", Node: "n1", Fate: records.FateKeep, Labels: map[string]string{"old": "yes"}})
	for selector, want := range map[string]string{
		"app=db": "data-db-0 data-db-1", "tier=disk,app=db": "data-db-0", "old=yes": "data-db-1 data-gone-1", "app=other": "",
	} {
		out, err := r.api.List(r.ctx, &proto.ListRequest{Kind: "volume", Selector: selector})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range out.GetObjects() {
			names = append(names, o.GetName())
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("get volumes -l %s: %q, want %q", selector, got, want)
		}
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	r := newRig(t)
	before := r.rev()
	out, err := r.api.Apply(r.ctx, &proto.ApplyRequest{DryRun: true, Files: []*proto.File{{Name: "a.yaml", Content: []byte(setYAML)}}})
	if err != nil || len(out.GetApplied()) != 1 || out.GetApplied()[0].GetOutcome() != created || len(out.GetApplied()[0].GetEffects()) == 0 {
		t.Fatalf("got %v, %v", out, err)
	}
	if _, ok := r.set("db"); ok || r.rev() != before {
		t.Fatal("a dry run wrote")
	}
}

func TestOneWrongObjectStopsAll(t *testing.T) {
	for name, c := range map[string]struct {
		manifests []string
		code      codes.Code
		words     []string
	}{
		"a misspelt field": {[]string{filesYAML, strings.Replace(setYAML, "image:", "imagee:", 1)}, codes.InvalidArgument,
			[]string{"a.yaml:", "imagee", `did you mean "image"`}},
		"a strategy without sense": {[]string{filesYAML, strings.Replace(setYAML, "replicas: 3", "replicas: 3\n  updateStrategy: {rollingUpdate: {maxUnavailable: 0, partition: -1}}", 1)},
			codes.InvalidArgument, []string{"a.yaml:", "maxUnavailable: 0 is out of range", "partition: -1 is out of range"}},
		"a changed claim and service name": {[]string{filesYAML, strings.Replace(strings.Replace(setYAML, "1Gi", "1Mi", 1), "replicas: 3", "replicas: 3\n  serviceName: other", 1)},
			codes.FailedPrecondition, []string{"shrink", "serviceName"}},
		"an address that is not one of services": {[]string{filesYAML, web("api", "clusterIP: 10.96.0.1")},
			codes.FailedPrecondition, []string{"a.yaml:4:68: spec.clusterIP: 10.96.0.1 is not an address for services"}},
		"a file over the size": {[]string{filesYAML, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\n" +
			text(maxObjectBytes)}, codes.InvalidArgument, []string{"big"}},
		"more than one transaction holds":       {[]string{filesYAML, manyConfigs(store.MaxOps)}, codes.InvalidArgument, []string{"in parts"}},
		"more bytes than one transaction holds": {[]string{filesYAML, bigConfigs(3)}, codes.InvalidArgument, []string{"in parts"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.mustApply(setYAML)
			before := r.rev()
			_, err := r.apply(c.manifests...)
			refused(t, err, c.code, c.words...)
			if r.rev() != before {
				t.Fatal("something was written")
			}
		})
	}
}

// text is the data of a ConfigMap, in lines.
func text(bytes int) string {
	return "data:\n  a: |\n" + strings.Repeat("    "+strings.Repeat("x", 63)+"\n", bytes/64)
}

func manyConfigs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
	}
	return b.String()
}

func bigConfigs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n%s", i, text(maxObjectBytes/2))
	}
	return b.String()
}

func TestAnObjectThatChangedMeanwhileIsNotOverwritten(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	raced := false
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && !raced {
			raced = true
			s, _ := r.set("db")
			s.Generation = 77
			if _, err := r.Store.Commit(r.ctx, store.Txn{Then: []store.Op{store.Put(store.SetKey(s.Ref), store.Encode(s))}}); err != nil {
				t.Error(err)
			}
		}
		return memstore.Fault{}
	})
	_, err := r.apply(filesYAML, strings.Replace(setYAML, "replicas: 3", "replicas: 5", 1))
	refused(t, err, codes.Aborted, "changed meanwhile")
	if s, _ := r.set("db"); s.Generation != 77 || s.Replicas() != 3 || !raced {
		t.Fatalf("got %+v", s)
	}
	if _, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: "configmap", Name: "conf"}); err == nil {
		t.Fatal("half of the apply was written")
	}
}

func TestASetBeingDeletedIsNotApplied(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	if _, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "set", Name: "db"}); err != nil {
		t.Fatal(err)
	}
	_, err := r.apply(setYAML)
	refused(t, err, codes.FailedPrecondition, "being deleted")
}

func TestMissingReferencesAreWarnings(t *testing.T) {
	r := newRig(t)
	with := strings.Replace(setYAML, "        ports:", "        envFrom: [{secretRef: {name: pass}}, {configMapRef: {name: nowhere}}]\n        ports:", 1)
	out, err := r.apply(with, filesYAML)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(out.GetWarnings(), "\n"); !strings.Contains(got, "no ConfigMap nowhere") || strings.Contains(got, "Secret pass") {
		t.Fatalf("got %q", got)
	}
}

func TestKeptVolumesAreTakenBackOrTheSetIsRefused(t *testing.T) {
	r := newRig(t)
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	volume := records.Volume{ID: id, Claim: "data", UID: "v1", Number: 1, Class: "local", SizeBytes: 1 << 30, Fate: records.FateKeep}
	r.Record(store.VolumeKey(id, "data"), volume)
	surplus := volume
	surplus.ID.Ordinal, surplus.UID = 4, "v5"
	r.Record(store.VolumeKey(surplus.ID, "data"), surplus)
	out, err := r.apply(setYAML)
	effects := strings.Join(out.GetApplied()[0].GetEffects(), "\n")
	if err != nil || !strings.Contains(effects, "takes back the kept volumes data of db-0\n"+
		"keeps the volumes data of db-4, whose members are not wanted now\ncontinues with the data of the earlier set") {
		t.Fatalf("got %v, %v", out, err)
	}
	r = newRig(t)
	volume.SizeBytes = 1 << 20
	r.Record(store.VolumeKey(id, "data"), volume)
	_, err = r.apply(setYAML)
	refused(t, err, codes.FailedPrecondition, "data of db-0", "does not fit")
}

// Whatever is asked of the server, no Secret's content comes out of it.
func TestSecretsNeverLeak(t *testing.T) {
	r := newRig(t)
	out, err := r.apply(filesYAML, setYAML)
	if err != nil {
		t.Fatal(err)
	}
	said := []string{out.String()}
	for _, kind := range []string{"set", "member", "volume", "node", "service", "configmap", "secret", "event", "revision"} {
		list, err := r.api.List(r.ctx, &proto.ListRequest{Kind: kind, AllNamespaces: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.GetObjects() {
			said = append(said, string(o.GetJson()))
		}
	}
	secret, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: "secret", Name: "pass"})
	if err != nil || !strings.Contains(string(secret.GetJson()), `{"name":"password","sizeBytes":16}`) {
		t.Fatalf("got %s, %v", secret.GetJson(), err)
	}
	said = append(said, string(secret.GetJson()))
	_, err = r.apply(strings.Replace(filesYAML, "token: c3d", "token: !c3d", 1))
	said = append(said, fmt.Sprint(err))
	_, err = r.apply(strings.Replace(filesYAML, "kind: Secret", "kind: Secret\nunknown: hunter2-in-clear", 1))
	if err == nil {
		t.Fatal("an unknown field of a Secret was taken")
	}
	_, kvs, err := r.Store.Snapshot(r.ctx, "")
	if err != nil || len(kvs) < 5 {
		t.Fatalf("got %d keys, %v", len(kvs), err)
	}
	for _, kv := range kvs {
		said = append(said, string(kv.Value))
	}
	said = append(said, r.logs.String())
	for _, text := range said {
		for _, clear := range []string{"hunter2-in-clear", "aHVudGVyMi1pbi1jbGVhcg", "swordfish-in-clear", "c3dvcmRmaXNoLWluLWNsZWFy"} {
			if strings.Contains(text, clear) {
				t.Fatalf("a secret leaks: %s", text)
			}
		}
	}
}
