package control

import (
	"context"
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

// under is a manifest of the set db with this serviceName.
func under(manifest, service string) string {
	return strings.Replace(manifest, "replicas: 3", "replicas: 3\n  serviceName: "+service, 1)
}

// rename applies with --rename-service.
func (r *rig) rename(manifests ...string) (*proto.ApplyResponse, error) {
	req := &proto.ApplyRequest{RenameService: true}
	for _, m := range manifests {
		req.Files = append(req.Files, &proto.File{Name: "a.yaml", Content: []byte(m)})
	}
	return r.api.Apply(r.ctx, req)
}

// named stores the status of the set db: it is complete under a service.
func (r *rig) named(service string) {
	r.t.Helper()
	s, _ := r.set("db")
	h := spec.HashTemplate(s.Template())
	r.Record(store.StatusKey(s.Ref), records.SetStatus{CurrentRevision: h, CurrentCompleted: true, UpdateRevision: h, ServiceName: service})
}

func TestARenameRestartsTheMembersInTheSameWrite(t *testing.T) {
	r := newRig(t)
	r.running()
	_, err := r.apply(under(setYAML, "dbs"))
	refused(t, err, codes.FailedPrecondition, `a.yaml:7:`, `spec.serviceName: must not change from "db" to "dbs"`, "use --rename-service to change it")
	_, err = r.rename(under(setYAML, "dbs"))
	refused(t, err, codes.FailedPrecondition, `a.yaml:7:`, "no server has looked at the set", "try again")
	r.named("db")
	before := r.rev()
	out, err := r.rename(under(setYAML, "dbs"))
	want := []string{"renames the service db → dbs; both names resolve until every member has restarted", "restarts db-2, db-1, db-0 in this order, at most 1 down"}
	if err != nil || !slices.Equal(out.GetApplied()[0].GetEffects(), want) || strings.Contains(strings.Join(out.GetWarnings(), " "), "Service") {
		t.Fatalf("got %q, %q, %v; want %q", out.GetApplied()[0].GetEffects(), out.GetWarnings(), err, want)
	}
	s, _ := r.set("db")
	if s.Spec.ServiceName != "dbs" || s.RestartedAt == "" || s.Generation != 2 || r.rev() != before+1 {
		t.Fatalf("got %+v after %d writes; want it renamed and restarted by one", s, r.rev()-before)
	}

	for _, service := range []string{"third", "db"} {
		_, err = r.rename(under(setYAML, service))
		refused(t, err, codes.FailedPrecondition, `spec.serviceName: is being renamed already, from "db" to "dbs"`, "rollout status db")
	}
	if out, err := r.rename(under(setYAML, "dbs")); err != nil || out.GetApplied()[0].GetOutcome() != unchanged {
		t.Fatalf("got %v, %v; want that what is asked for already is no second rename", out, err)
	}
	if now, _ := r.set("db"); now.RestartedAt != s.RestartedAt {
		t.Fatal("the members are restarted twice")
	}
	r.named("dbs")
	if _, err = r.rename(under(setYAML, "third")); err != nil {
		t.Fatal(err)
	}
}

func TestTheFlagAloneRenamesNothing(t *testing.T) {
	r := newRig(t)
	r.running()
	r.named("db")
	if out, err := r.rename(setYAML); err != nil || out.GetApplied()[0].GetOutcome() != unchanged {
		t.Fatalf("got %v, %v", out, err)
	}
	if _, err := r.rename(newImage); err != nil {
		t.Fatal(err)
	}
	if s, _ := r.set("db"); s.RestartedAt != "" {
		t.Fatal("the members are restarted for nothing")
	}
	if _, err := r.rename(strings.Replace(setYAML, "{name: db}", "{name: fresh}", 1)); err != nil {
		t.Fatal(err)
	}
}

// What must not change must not change with a rename either.
func TestARenameAllowsNothingElse(t *testing.T) {
	r := newRig(t)
	r.running()
	r.named("db")
	_, err := r.rename(strings.Replace(under(setYAML, "dbs"), "1Gi", "1Mi", 1))
	refused(t, err, codes.FailedPrecondition, "a volume cannot shrink")
}

func TestARenameWarnsOfWhatTheFormerServiceSaid(t *testing.T) {
	r := newRig(t)
	r.running()
	r.mustApply(filesYAML)
	r.named("db")
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: dbs}\nspec: {clusterIP: None, selector: {app: db}}\n"
	dry := func(manifests ...string) string {
		t.Helper()
		req := &proto.ApplyRequest{RenameService: true, DryRun: true}
		for _, m := range manifests {
			req.Files = append(req.Files, &proto.File{Name: "a.yaml", Content: []byte(m)})
		}
		out, err := r.api.Apply(r.ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(out.GetWarnings(), "\n")
	}
	if got := dry(under(setYAML, "dbs")); !strings.Contains(got, "there is no Service dbs") || !strings.Contains(got, "follow the defaults instead of Service db") {
		t.Errorf("got %q", got)
	}
	if got := dry(under(setYAML, "dbs"), service); strings.Contains(got, "Service") {
		t.Errorf("got %q, though it comes in the same apply", got)
	}
	r.mustApply(service)
	if got := dry(under(setYAML, "dbs")); strings.Contains(got, "Service") {
		t.Errorf("got %q, though it is there", got)
	}
	if _, err := r.rename(under(setYAML, "dbs")); err != nil {
		t.Fatal(err)
	}
	out, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "service", Name: "db"})
	if err != nil || len(out.GetEffects()) != 1 || !strings.Contains(out.GetEffects()[0], "is still found under this name") {
		t.Errorf("got %q, %v; want that the former name still counts", out.GetEffects(), err)
	}
}

// Going back to an earlier template in the middle of a rename does not take back that the
// members must run anew.
func TestUndoDoesNotStopARename(t *testing.T) {
	r := newRig(t)
	r.running()
	r.named("db")
	if _, err := r.rename(under(newImage, "dbs")); err != nil {
		t.Fatal(err)
	}
	out, err := r.api.Undo(r.ctx, &proto.UndoRequest{Name: "db", ToRevision: 1})
	want := []string{"restarts db-2, db-1, db-0 in this order, at most 1 down"}
	if err != nil || !slices.Equal(out.GetEffects(), want) {
		t.Fatalf("got %q, %v; want %q", out.GetEffects(), err, want)
	}
	if s, _ := r.set("db"); s.Spec.Template.Spec.Containers[0].Image != "example.local/db:1" || s.Spec.ServiceName != "dbs" || s.RestartedAt == "" {
		t.Fatalf("got %+v", s)
	}
}

func TestAnOrphanedSetIsAdoptedUnderAnotherName(t *testing.T) {
	r := newRig(t)
	r.running()
	r.named("db")
	r.orphan()
	out, err := r.rename(under(setYAML, "dbs"))
	want := []string{"adopts db-0, db-1, db-2", "renames the service db → dbs; both names resolve until every member has restarted", "restarts db-2, db-1, db-0 in this order, at most 1 down"}
	if err != nil || !slices.Equal(out.GetApplied()[0].GetEffects(), want) {
		t.Fatalf("got %q, %v; want %q", out.GetApplied(), err, want)
	}
}

// late is a world that shows what was written up to rev only to who waits for it.
type late struct {
	cache.Reader
	t      *testing.T
	rev    store.Rev
	waited store.Rev
}

func (l *late) Wait(ctx context.Context, rev store.Rev) error {
	l.waited = max(l.waited, rev)
	return l.Reader.Wait(ctx, rev)
}

func (l *late) Look(f func(cache.View)) {
	if l.waited < l.rev {
		l.t.Errorf("it is judged by a picture that may be older than revision %d", l.rev)
	}
	l.Reader.Look(f)
}

func TestAnAdoptionAndARenameAreJudgedByAPictureNotOlderThanTheSet(t *testing.T) {
	r := newRig(t)
	r.running()
	r.named("db")
	s, _ := r.set("db")
	for _, e := range []edit{
		{applied: &proto.Applied{Outcome: adopted}}, {applied: &proto.Applied{Outcome: configured}, renames: true},
	} {
		e.was, e.now, e.seen = &s, &s, r.rev()
		d := &draft{shared: &shared{cfg: Config{Cache: &late{Reader: r.Cache, t: t, rev: e.seen}, Planner: r}}}
		if _, _, err := d.change(r.ctx, &e); err != nil {
			t.Fatal(err)
		}
	}
}
