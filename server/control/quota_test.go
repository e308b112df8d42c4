package control

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

func quotaYAML(hard string) string {
	return "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: team}\nspec: {hard: {" + hard + "}}\n"
}

// small is a set of so many members, each with a request for a tenth of a processor.
func small(name string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers: [{name: db, image: "db:1", resources: {requests: {cpu: 100m}}}]
`, name, replicas)
}

func (r *rig) scale(name string, replicas int32) error {
	_, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: name, Replicas: replicas})
	return err
}

// used is what 'get quota' shows.
func (r *rig) used() string {
	r.t.Helper()
	o, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: proto.KindQuota, Name: "team"})
	if err != nil {
		r.t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(o.GetJson()), `"used":`)
	return strings.TrimRight(text, "}") + "}"
}

func TestWhatExceedsAQuotaIsRefusedAsAWhole(t *testing.T) {
	r := newRig(t)
	r.mustApply(quotaYAML("pods: 4, count/configmaps: 1, requests.cpu: 350m, persistentvolumeclaims: 0, stead.dev/secrets.bytes: 100k"), small("a", 2))
	before := r.rev()
	for name, c := range map[string]struct {
		yaml  []string
		words []string
	}{
		"more members": {[]string{filesYAML, small("b", 3)}, []string{"a.yaml:5:3: spec.replicas: StatefulSet default/b: exceeds ResourceQuota default/team: pods: used 2, asked for 3 more, hard 4; ask for less",
			"a.yaml:10:7: spec.template.spec.containers: StatefulSet default/b: exceeds ResourceQuota default/team: requests.cpu: used 200m, asked for 300m more, hard 350m"}},
		"the object with which it begins is named": {[]string{small("b", 1), small("c", 2)}, []string{"StatefulSet default/c: exceeds ResourceQuota default/team: pods: used 2, asked for 3 more, hard 4"}},
		"a template that asks for more":            {[]string{strings.Replace(small("a", 2), "100m", "200m", 1)}, []string{"StatefulSet default/a: exceeds", "requests.cpu: used 200m, asked for 200m more, hard 350m"}},
		"a container that does not say": {[]string{strings.Replace(small("b", 1), "requests: {cpu: 100m}", "requests: {memory: 1Mi}", 1)},
			[]string{"a.yaml:10:46: spec.template.spec.containers[0].resources: StatefulSet default/b: ResourceQuota default/team bounds requests.cpu, and there is a container without it; every container of a member must specify requests.cpu"}},
		"a claim": {[]string{"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"},
			[]string{"a.yaml:4:50: spec.resources.requests: PersistentVolumeClaim default/c: exceeds ResourceQuota default/team: persistentvolumeclaims: used 0, asked for 1 more, hard 0"}},
		"configmaps":                     {[]string{manyConfigs(2)}, []string{"a.yaml:6:1: ConfigMap default/c1: exceeds ResourceQuota default/team: configmaps: used 0, asked for 2 more, hard 1"}},
		"a quota that is lowered beside": {[]string{quotaYAML("pods: 2"), small("b", 1)}, []string{"pods: used 2, asked for 1 more, hard 2"}},
	} {
		_, err := r.apply(c.yaml...)
		refused(t, err, codes.FailedPrecondition, append(c.words, "nothing was written")...)
		if r.rev() != before {
			t.Fatalf("%s: something was written", name)
		}
	}
	if _, err := r.api.Apply(r.ctx, &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: []byte(small("b", 9))}}, DryRun: true}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a dry run says %v", err)
	}
	refused(t, r.scale("a", 5), codes.FailedPrecondition, "set default/a: exceeds ResourceQuota default/team: pods: used 2, asked for 3 more, hard 4", "nothing was changed")
	r.mustApply(small("b", 9), quotaYAML("pods: 11")) // raised beside what needs it
	if got, want := r.used(), `{"pods":"11"}`; got != want {
		t.Errorf("used is %s, want %s", got, want)
	}
}

// What is there is never stopped, and what asks for no more than before goes.
func TestAboveAQuotaOnlyMoreIsRefused(t *testing.T) {
	r := newRig(t)
	r.mustApply(small("a", 5), small("b", 3))
	r.mustApply(quotaYAML("pods: 2, requests.cpu: 100m"))
	if got, want := r.used(), `{"pods":"8","requests.cpu":"800m"}`; got != want {
		t.Errorf("used is %s, want %s", got, want)
	}
	refused(t, r.scale("a", 6), codes.FailedPrecondition, "used 8, asked for 1 more, hard 2")
	if err := r.scale("a", 4); err != nil {
		t.Errorf("fewer: %v", err)
	}
	refused(t, r.scale("a", 5), codes.FailedPrecondition, "used 7, asked for 1 more, hard 2")
	r.mustApply(strings.Replace(small("a", 4), "db:1", "db:2", 1)) // another image
	r.mustApply(strings.Replace(small("b", 1), "100m", "200m", 1)) // fewer members that ask for more, and less in all
	r.mustApply(small("c", 1), small("b", 0))                      // one for another
	if _, err := r.api.Restart(r.ctx, &proto.RestartRequest{Set: "a"}); err != nil {
		t.Errorf("a restart: %v", err)
	}
	if _, err := r.api.Pause(r.ctx, &proto.PauseRequest{Name: "a", Paused: true}); err != nil {
		t.Errorf("a pause: %v", err)
	}
	if _, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindSet, Name: "a", Cascade: proto.CascadeOrphan}); err != nil {
		t.Errorf("orphan: %v", err)
	}
	if got := r.mustApply(strings.Replace(small("a", 4), "db:1", "db:2", 1)); got[0] != "set a adopted" {
		t.Errorf("adoption says %v", got)
	}
	if _, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindSet, Name: "a"}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if got, want := r.used(), `{"pods":"1","requests.cpu":"100m"}`; got != want {
		t.Errorf("used is %s, want %s: what is being deleted asks for nothing", got, want)
	}
	refused(t, r.scale("c", 3), codes.FailedPrecondition, "used 1, asked for 2 more, hard 2")
	if _, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindQuota, Name: "team"}); err != nil {
		t.Errorf("delete the quota: %v", err)
	}
	if err := r.scale("c", 3); err != nil {
		t.Errorf("without a quota: %v", err)
	}
}

func TestAnUndoCountsAsAnApply(t *testing.T) {
	r := newRig(t)
	large := strings.Replace(setYAML, "image: example.local/db:1", "image: example.local/db:1\n        resources: {requests: {cpu: 1}}", 1)
	r.mustApply(large)
	r.happens()
	r.mustApply(strings.Replace(large, "cpu: 1", "cpu: 100m", 1))
	r.happens()
	r.mustApply(quotaYAML("requests.cpu: 1"))
	_, err := r.api.Undo(r.ctx, &proto.UndoRequest{Name: "db"})
	refused(t, err, codes.FailedPrecondition, "set default/db: exceeds ResourceQuota default/team: requests.cpu: used 300m, asked for 2700m more, hard 1")
}

// Volumes that stay after a scale-down count, and so does one that is wanted back from the trash, as soon as it is asked for.
func TestVolumesThatStayCount(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	r.happens()
	r.mustApply(quotaYAML("persistentvolumeclaims: 3, requests.storage: 3Gi"))
	if err := r.scale("db", 1); err != nil {
		t.Fatal(err)
	}
	if got, want := r.used(), `{"persistentvolumeclaims":"3","requests.storage":"3Gi"}`; got != want {
		t.Errorf("used is %s, want %s", got, want)
	}
	if err := r.scale("db", 3); err != nil { // the volumes are there
		t.Errorf("back to the volumes that stayed: %v", err)
	}
	refused(t, r.scale("db", 4), codes.FailedPrecondition, "persistentvolumeclaims: used 3, asked for 1 more, hard 3")
	other := spec.Identity{Namespace: "default", Set: "old", Ordinal: 0}
	r.Record(store.VolumeReportKey(other, "data", "v9"), records.VolumeReport{ID: other, Claim: "data", Volume: "v9", Class: "local", Node: "n1", State: records.VolumeTrashed, SizeBytes: 1 << 30})
	_, err := r.api.RestoreVolume(r.ctx, &proto.RestoreVolumeRequest{Name: "v9"})
	refused(t, err, codes.FailedPrecondition, "volume data-old-0: exceeds ResourceQuota default/team: persistentvolumeclaims: used 3, asked for 1 more, hard 3")
	r.mustApply(quotaYAML("persistentvolumeclaims: 4"))
	if _, err := r.api.RestoreVolume(r.ctx, &proto.RestoreVolumeRequest{Name: "v9"}); err != nil {
		t.Fatal(err)
	}
	refused(t, r.scale("db", 4), codes.FailedPrecondition, "persistentvolumeclaims: used 4, asked for 1 more, hard 4")
}

func TestPruningMakesRoomAndLeavesQuotas(t *testing.T) {
	r := newRig(t)
	r.mustApply(quotaYAML("pods: 2"), small("a", 2))
	out, err := r.api.Apply(r.ctx, &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: []byte(small("b", 2))}}, Prune: &proto.Prune{All: true}})
	if err != nil || len(out.GetPruned()) != 1 || out.GetPruned()[0].GetName() != "a" {
		t.Errorf("pruned %v, %v", out.GetPruned(), err)
	}
	if got, want := r.used(), `{"pods":"2"}`; got != want {
		t.Errorf("used is %s, want %s", got, want)
	}
}

func TestOperatorsWriteNoQuotas(t *testing.T) {
	r := newRig(t)
	r.mustApply(quotaYAML("pods: 1"))
	as := func(role string) context.Context { return metadata.AppendToOutgoingContext(r.ctx, proto.RoleKey, role) }
	apply := func(role, yaml string) error {
		_, err := r.api.Apply(as(role), &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: []byte(yaml)}}})
		return err
	}
	refused(t, apply("operator", quotaYAML("pods: 100")), codes.PermissionDenied, "ResourceQuota default/team is for admins to write")
	refused(t, apply("operator", small("a", 1)+"---\n"+quotaYAML("pods: 100")), codes.PermissionDenied, "nothing was written")
	if err := apply("operator", quotaYAML("pods: 1")); err != nil { // as it is
		t.Error(err)
	}
	_, err := r.api.Delete(as("operator"), &proto.DeleteRequest{Kind: proto.KindQuota, Name: "team"})
	refused(t, err, codes.PermissionDenied, "for admins")
	if err := apply("admin", quotaYAML("pods: 2")); err != nil {
		t.Error(err)
	}
}

// A quota that nobody can read bounds nothing that anybody knows: nothing more is given out.
func TestAQuotaThatCannotBeReadAllowsNoMore(t *testing.T) {
	r := newRig(t)
	r.mustApply(quotaYAML("pods: 9"), small("a", 2))
	r.Put(store.QuotaKey("default", "team"), []byte("junk"))
	refused(t, r.scale("a", 3), codes.FailedPrecondition, "asks for more pods, and ResourceQuota default/team cannot be read", "have an admin apply or delete that quota")
	_, err := r.apply(small("b", 1))
	refused(t, err, codes.FailedPrecondition, "a.yaml:5:3:", "cannot be read")
	if err := r.scale("a", 1); err != nil {
		t.Error(err)
	}
	if _, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindQuota, Name: "team"}); err != nil {
		t.Fatal(err)
	}
	if err := r.scale("a", 3); err != nil {
		t.Error(err)
	}
}
