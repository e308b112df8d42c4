package control

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// markedKinds are the kinds that users apply, each with what its manifest has below metadata.
var markedKinds = map[string]struct{ version, kind, rest string }{
	proto.KindService:   {"v1", "Service", "spec: {clusterIP: None, selector: {app: db}}\n"},
	proto.KindConfigMap: {"v1", "ConfigMap", "data: {k: v}\n"},
	proto.KindSecret:    {"v1", "Secret", "stringData: {k: v}\n"},
	proto.KindBudget:    {"policy/v1", "PodDisruptionBudget", "spec: {maxUnavailable: 1, selector: {matchLabels: {app: db}}}\n"},
	proto.KindSet: {"apps/v1", "StatefulSet",
		"spec: {selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: x}]}}}\n"},
	proto.KindClaim: {"v1", "PersistentVolumeClaim", "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"},
}

// markedMeta is what get shows.
func (r *rig) markedMeta(kind string) (meta records.ShownMeta) {
	r.t.Helper()
	if kind == proto.KindClaim { // get pvc shows its volume
		kind = proto.KindVolume
	}
	o, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: kind, Name: "files"})
	if err != nil {
		r.t.Fatal(err)
	}
	var shown records.Shown[any, any]
	if err := json.Unmarshal(o.GetJson(), &shown); err != nil {
		r.t.Fatal(err)
	}
	return shown.Metadata
}

// TestAnnotationsAndLabelsOfEveryKindAreKeptAsApplied: get shows those of the last apply. A change of
// them alone is a change, and no new generation, as in Kubernetes. The volume of a claim has those
// that the claim has now.
func TestAnnotationsAndLabelsOfEveryKindAreKeptAsApplied(t *testing.T) {
	for kind, m := range markedKinds {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t)
			yaml := func(marks string) string {
				return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: files, %s}\n%s", m.version, m.kind, marks, m.rest)
			}
			look := func(outcome, labels, annotations string) {
				t.Helper()
				if got := r.mustApply(yaml(fmt.Sprintf("labels: {%s}, annotations: {%s}", labels, annotations))); !slices.Equal(got, []string{kind + " files " + outcome}) {
					t.Fatalf("got %q, want %s", got, outcome)
				}
				meta := r.markedMeta(kind)
				if got := pairsOf(meta.Labels) + " | " + pairsOf(meta.Annotations); got != labels+" | "+annotations {
					t.Errorf("shown are %s", got)
				}
				if kind != proto.KindClaim && meta.Generation != 1 {
					t.Errorf("generation %d", meta.Generation)
				}
			}
			look(created, "a: b", "Example.com/owner: x, note: w")
			look(unchanged, "a: b", "Example.com/owner: x, note: w")
			if kind == proto.KindClaim {
				r.filesBound()
			}
			look(configured, "a: b", "note: z")
			look(configured, "a: c", "note: z")
			look(configured, "a: c", "")
			look(unchanged, "a: c", "")
		})
	}
}

func pairsOf(m map[string]string) string {
	pairs := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, key+": "+m[key])
	}
	return strings.Join(pairs, ", ")
}

// TestKubectlsCopyOfAManifestIsNotKept: of a Secret it has the values in clear.
func TestKubectlsCopyOfAManifestIsNotKept(t *testing.T) {
	r := newRig(t)
	out, err := r.apply("apiVersion: v1\nkind: Secret\nmetadata:\n  name: files\n  annotations:\n" +
		"    kubectl.kubernetes.io/last-applied-configuration: '{\"stringData\":{\"k\":\"hunter2\"}}'\n    note: w\nstringData: {k: v}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "a.yaml:6:5: metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]: has no effect here; it is kubectl's own, and is not kept"
	if got := out.GetWarnings(); !slices.Equal(got, []string{want}) {
		t.Errorf("warned: %q", got)
	}
	if got := pairsOf(r.markedMeta(proto.KindSecret).Annotations); got != "note: w" {
		t.Errorf("shown are %s", got)
	}
	_, kvs, err := r.Store.Get(r.ctx, store.SecretKey("default", "files"))
	if err != nil || strings.Contains(string(kvs[store.SecretKey("default", "files")].Value), "hunter2") {
		t.Errorf("stored in clear, or %v", err)
	}
}
