package control

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// live puts a life of db-<ordinal> on n1.
func (r *rig) live(ordinal int, ready bool) {
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}
	m := records.Member{ID: id, Token: spec.Token{Epoch: 1, Number: 9}, Goal: records.GoalRun, Revision: "r1", Node: "n1", NodeUID: "uid1", Boot: "b1"}
	r.Record(store.MemberKey(id), m)
	r.Record(store.ReportKey(id), records.Report{ID: id, Token: m.Token, Node: "n1", Session: 1, Seq: 1, Phase: records.PhaseRunning, Ready: ready,
		Containers: []records.ContainerReport{{Name: "main", State: "Running", Restarts: 2}}})
	s, _ := r.set("db")
	r.Record(store.RevisionKey(s.Ref, "r1"), records.Revision{Ref: s.Ref, Hash: "r1", Number: 1, Template: s.Spec.Template})
}

func (r *rig) list(req *proto.ListRequest) []string {
	r.t.Helper()
	out, err := r.api.List(r.ctx, req)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, o := range out.GetObjects() {
		names = append(names, o.GetNamespace()+"/"+o.GetName())
	}
	return names
}

func TestListsAreChosenAndSorted(t *testing.T) {
	r := newRig(t)
	r.mustApply(filesYAML, setYAML)
	for _, n := range []int{10, 2, 0} {
		r.live(n, true)
	}
	other := strings.ReplaceAll(setYAML, "{name: db}", "{name: kv, namespace: prod}")
	r.mustApply(other)
	for name, c := range map[string]struct {
		req  *proto.ListRequest
		want []string
	}{
		"a namespace":           {&proto.ListRequest{Kind: "set"}, []string{"default/db"}},
		"all namespaces":        {&proto.ListRequest{Kind: "set", AllNamespaces: true}, []string{"default/db", "prod/kv"}},
		"members by ordinal":    {&proto.ListRequest{Kind: "member"}, []string{"default/db-0", "default/db-2", "default/db-10"}},
		"members of a set":      {&proto.ListRequest{Kind: "member", Set: "nope"}, nil},
		"by label":              {&proto.ListRequest{Kind: "member", Selector: "app=db,apps.kubernetes.io/pod-index=2"}, []string{"default/db-2"}},
		"by label that differs": {&proto.ListRequest{Kind: "configmap", Selector: "app!=db"}, nil},
		"revisions of a set":    {&proto.ListRequest{Kind: "revision", Set: "db"}, []string{"default/db-r1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			if got := r.list(c.req); !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
		})
	}
	_, err := r.api.List(r.ctx, &proto.ListRequest{Kind: "pod"})
	refused(t, err, codes.InvalidArgument, `no kind "pod"`)
	_, err = r.api.List(r.ctx, &proto.ListRequest{Kind: "set", Selector: "=="})
	refused(t, err, codes.InvalidArgument, "selector")
	_, err = r.api.Get(r.ctx, &proto.GetRequest{Kind: "set", Name: "nope"})
	refused(t, err, codes.NotFound, "no set nope")
}

func TestAMemberIsReadyOnlyWithALiveSession(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	r.live(0, true)
	show := func() (m struct {
		Spec   records.Member
		Status records.ShownMember
	}) {
		t.Helper()
		o, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: "member", Name: "db-0"})
		if err == nil {
			err = json.Unmarshal(o.GetJson(), &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := show(); m.Status.Ready || m.Status.Restarts != 2 || m.Status.Phase != records.PhaseRunning || m.Status.Report == nil || m.Spec.Node != "n1" {
		t.Fatalf("got %+v, want it unready without a session", m)
	}
	r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
	r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 2})
	if m := show(); m.Status.Ready {
		t.Fatalf("got %+v, want it unready until this session has told of it", m)
	}
	r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 1})
	m := show()
	if !m.Status.Ready {
		t.Fatalf("got %+v, want ready", m)
	}
	m.Spec.Goal = records.GoalStop
	r.Record(store.MemberKey(m.Spec.ID), m.Spec)
	if m := show(); m.Status.Ready {
		t.Fatalf("got %+v, want one that was told to stop unready, as status and DNS have it", m)
	}
}

func TestAMemberThatWaitsIsShown(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	s, _ := r.set("db")
	r.Record(store.StatusKey(s.Ref), records.SetStatus{Members: []records.MemberStatus{{Name: "db-1", Ordinal: 1, Blocked: "waits for db-0"}}})
	o, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: "member", Name: "db-1"})
	if err != nil || !strings.Contains(string(o.GetJson()), "waits for db-0") {
		t.Fatalf("got %s, %v", o.GetJson(), err)
	}
}

// TestWaitingMembersOfALargeSetAreShown: their status stores no rows.
func TestWaitingMembersOfALargeSetAreShown(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	r.mustApply(strings.ReplaceAll(setYAML, "{name: db}", "{name: other}"))
	s, _ := r.set("db")
	r.Record(store.StatusKey(s.Ref), records.SetStatus{Replicas: 150})
	r.plan.Status.Members = []records.MemberStatus{{Name: "db-149", Ordinal: 149, Blocked: "waits for db-148"}}
	has := func(o *proto.Object, err error) {
		t.Helper()
		if err != nil || !strings.Contains(string(o.GetJson()), "waits for db-148") {
			t.Errorf("got %s, %v", o.GetJson(), err)
		}
	}
	has(r.api.Get(r.ctx, &proto.GetRequest{Kind: "member", Name: "db-149"}))
	o, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: "set", Name: "db"})
	has(o, err)
	if !strings.Contains(string(o.GetJson()), `"replicas":150`) {
		t.Errorf("the stored status is lost: %s", o.GetJson())
	}
	if got := r.list(&proto.ListRequest{Kind: "member", Set: "db"}); !slices.Equal(got, []string{"default/db-149"}) {
		t.Errorf("got %v", got)
	}
	w, err := r.api.Watch(r.ctx, &proto.ListRequest{Kind: "set", Set: "db"})
	if err != nil {
		t.Fatal(err)
	}
	ev, err := w.Recv()
	has(ev.GetObject(), err)
	all, err := r.api.List(r.ctx, &proto.ListRequest{Kind: "set"})
	if err != nil || len(all.GetObjects()) != 2 || strings.Contains(string(all.GetObjects()[0].GetJson()), "waits for") {
		t.Errorf("a list of sets holds rows: %v, %v", all, err)
	}
}

func TestAWatchTellsWhatIsThereThenWhatDiffers(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	w, err := r.api.Watch(ctx, &proto.ListRequest{Kind: "set"})
	if err != nil {
		t.Fatal(err)
	}
	next := func() *proto.WatchEvent {
		t.Helper()
		ev, err := w.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return ev
	}
	if ev := next(); ev.GetObject().GetName() != "db" {
		t.Fatalf("got %v", ev)
	}
	if ev := next(); !ev.GetSynced() {
		t.Fatalf("got %v, want synced", ev)
	}
	r.mustApply(filesYAML) // no set: nothing is told
	if _, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: 7}); err != nil {
		t.Fatal(err)
	}
	if ev := next(); ev.GetGone() || !strings.Contains(string(ev.GetObject().GetJson()), `"replicas":7`) {
		t.Fatalf("got %v", ev)
	}
	if _, err := r.Store.Commit(r.ctx, store.Txn{Then: []store.Op{store.Del("sets/default/db")}}); err != nil {
		t.Fatal(err)
	}
	if ev := next(); !ev.GetGone() || ev.GetObject().GetName() != "db" || ev.GetObject().GetNamespace() != "default" {
		t.Fatalf("got %v, want gone", ev)
	}
}

func TestScale(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	r.happens()
	three := int32(3)
	out, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: 5, CurrentReplicas: &three})
	if err != nil || out.GetBefore() != 3 || out.GetAfter() != 5 || len(out.GetEffects()) != 1 {
		t.Fatalf("got %v, %v", out, err)
	}
	if s, _ := r.set("db"); s.Generation != 2 || s.Replicas() != 5 {
		t.Fatalf("got %+v", s)
	}
	before := r.rev()
	if out, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: 5}); err != nil || len(out.GetEffects()) != 0 || r.rev() != before {
		t.Fatalf("scaling to the same wrote: %v, %v", out, err)
	}
	_, err = r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: 9, CurrentReplicas: &three})
	refused(t, err, codes.FailedPrecondition, "has 5 members, not 3")
	_, err = r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: -1})
	refused(t, err, codes.InvalidArgument)
	_, err = r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "nope", Replicas: 1})
	refused(t, err, codes.NotFound)
}

// A slip of the finger is refused before anything is planned for it.
func TestTooManyMembersAreRefusedAtOnce(t *testing.T) {
	r := newRig(t)
	for _, n := range []string{"10001", "1000000", "999999999", "0x7fffffff"} {
		for _, dry := range []bool{true, false} {
			files := []*proto.File{{Name: "db.yaml", Content: []byte(strings.Replace(setYAML, "replicas: 3", "replicas: "+n, 1))}}
			if string(files[0].Content) == setYAML {
				t.Fatal("the manifest has no replicas")
			}
			_, err := r.api.Apply(r.ctx, &proto.ApplyRequest{Files: files, DryRun: dry})
			refused(t, err, codes.InvalidArgument, "spec.replicas")
		}
	}
	if _, err := r.apply(setYAML); err != nil {
		t.Fatal(err)
	}
	_, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: spec.MaxReplicas + 1})
	refused(t, err, codes.InvalidArgument, "replicas must be 0 to 10000 (got 10001)")
}

func TestTheFirstMembersOfASetAreItsInitialOnes(t *testing.T) {
	r := newRig(t)
	r.mustApply(strings.Replace(setYAML, "replicas: 3", "replicas: 0", 1))
	for _, step := range []struct{ replicas, initial int }{{0, 0}, {4, 4}, {6, 4}, {0, 4}} {
		if _, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: int32(step.replicas)}); err != nil {
			t.Fatal(err)
		}
		if s, _ := r.set("db"); s.InitialReplicas != step.initial {
			t.Errorf("scaled to %d: %d initial members, want %d", step.replicas, s.InitialReplicas, step.initial)
		}
	}
}

func TestAScaleThatCollidesLooksAgain(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	raced := 0
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && raced == 0 {
			raced++
			s, _ := r.set("db")
			s.Labels = map[string]string{"team": "a"}
			if _, err := r.Store.Commit(r.ctx, store.Txn{Then: []store.Op{store.Put(store.SetKey(s.Ref), store.Encode(s))}}); err != nil {
				t.Error(err)
			}
		}
		return memstore.Fault{}
	})
	if _, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: 5}); err != nil {
		t.Fatal(err)
	}
	if s, _ := r.set("db"); s.Replicas() != 5 || s.Labels["team"] != "a" || raced != 1 {
		t.Fatalf("got %+v", s)
	}
}

func TestDelete(t *testing.T) {
	r := newRig(t)
	r.mustApply(filesYAML, strings.Replace(setYAML, "        ports:", "        envFrom: [{configMapRef: {name: conf}}]\n        ports:", 1))
	r.live(0, true)
	r.live(1, true)
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	r.Record(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: "v1", Class: "local"})
	out, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "configmap", Name: "conf"})
	if err != nil || !strings.Contains(strings.Join(out.GetEffects(), "\n"), "set default/db names it") {
		t.Fatalf("got %v, %v", out, err)
	}
	out, err = r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "set", Name: "db"})
	want := []string{"stops db-1, db-0 in this order", "keeps the volumes data-db-0; a set of the same name takes them back"}
	if err != nil || !slices.Equal(out.GetEffects(), want) {
		t.Fatalf("got %q, %v; want %q", out.GetEffects(), err, want)
	}
	if s, ok := r.set("db"); !ok || !s.Deleting {
		t.Fatalf("got %+v, want it marked, and removed by the engine only", s)
	}
	_, err = r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: 1})
	refused(t, err, codes.FailedPrecondition, "being deleted")
	_, err = r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "configmap", Name: "conf"})
	refused(t, err, codes.NotFound)
	_, err = r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "volume", Name: "data-db-0"})
	refused(t, err, codes.InvalidArgument, "cannot be deleted")
}

func TestExplain(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	id := func(n int) spec.Identity { return spec.Identity{Namespace: "default", Set: "db", Ordinal: n} }
	r.plan = plan.Plan{
		Actions: []plan.Action{plan.Start{Member: records.Member{ID: id(0), Node: "n1"}, Text: "it has no life yet"}},
		Blocked: []plan.Blocked{
			{ID: id(1), Reason: "WaitingForPredecessor", Text: "waits for db-0"},
			{ID: id(2), Reason: "NodeSilent", Text: "its node is silent", Left: 61 * time.Second},
		},
	}
	rows := func(name string) string {
		t.Helper()
		out, err := r.api.Explain(r.ctx, &proto.ExplainRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, row := range out.GetRows() {
			lines = append(lines, row.GetMember()+": "+row.GetWhat()+": "+row.GetWhy())
		}
		return strings.Join(lines, "\n")
	}
	if got, want := rows("db"), "db-0: starts on n1: it has no life yet\ndb-1: waits: waits for db-0\ndb-2: waits: its node is silent (in 1m1s)"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if got, want := rows("db-1"), "db-1: waits: waits for db-0"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	_, err := r.api.Explain(r.ctx, &proto.ExplainRequest{Name: "nope-0"})
	refused(t, err, codes.NotFound)
}

func TestInfo(t *testing.T) {
	r := newRig(t)
	r.Put(store.LeaderKey, []byte("s1"))
	got, err := r.api.Info(r.ctx, &proto.InfoRequest{})
	if err != nil || got.GetCluster() != "c1" || got.GetEpoch() != 1 || got.GetLeader() != "s1" || got.GetVersion() != "v1" {
		t.Fatalf("got %v, %v", got, err)
	}
}
