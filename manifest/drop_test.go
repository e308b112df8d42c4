package manifest

import (
	"slices"
	"testing"

	"github.com/stead-project/stead/spec"
)

const dropHead = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  selector: {matchLabels: {app: db}}\n" +
	"  volumeClaimTemplates:\n    - metadata: {name: data}\n      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n" +
	"  template:\n    metadata: {labels: {app: db}}\n    spec:\n"

// parsed is the template of a manifest and what was said of it; a problem fails the test.
func parsed(t *testing.T, text string) (spec.Template, []string) {
	t.Helper()
	o, problems, warnings := Parse([]Source{{Name: "f", Content: []byte(text)}}, Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var said []string
	for _, w := range warnings {
		said = append(said, w.String())
	}
	return o.Sets[0].Spec.Template, said
}

const mountsData = "      containers: [{name: db, image: db:1, volumeMounts: [{name: data, mountPath: /data}]}]\n"

// TestAClaimTakesThePlaceOfAVolume: Kubernetes' rule (a StatefulSet's updateStorage keeps a
// volume only if no claim has its name). CockroachDB, hazelcast and rabbitmq write both.
func TestAClaimTakesThePlaceOfAVolume(t *testing.T) {
	plain, said := parsed(t, dropHead+mountsData)
	if len(said) > 0 {
		t.Fatal(said)
	}
	for name, volume := range map[string]string{
		"its own claim": "      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n",
		"an emptyDir":   "      volumes: [{name: data, emptyDir: {}}]\n",
		"no source":     "      volumes: [{name: data}]\n",
		"a hostPath":    "      volumes: [{name: data, hostPath: {path: /x}}]\n",
	} {
		got, said := parsed(t, dropHead+mountsData+volume)
		want := []string{`f:13:17: spec.template.spec.volumes[0]: has no effect here; the volumeClaimTemplate "data" takes its place, as in Kubernetes`}
		if !slices.Equal(said, want) {
			t.Errorf("%s: got %q, want %q", name, said, want)
		}
		if spec.HashTemplate(got) != spec.HashTemplate(plain) || len(got.Spec.Volumes) > 0 {
			t.Errorf("%s: the volume is kept: %+v", name, got.Spec.Volumes)
		}
	}
	_, problems, _ := Parse([]Source{{Name: "f", Content: []byte(dropHead + mountsData + "      volumes: [{name: data, emptyDr: {}}, {name: data}]\n")}}, Options{})
	if len(problems) != 2 || problems[0].What != "unknown field" || problems[1].What != `"data" is given twice` {
		t.Errorf("got %v; want an unknown field and a name given twice refused as ever", problems)
	}
}

// TestAVolumeWithoutASourceIsAnEmptyDir: Kubernetes' default of volumes.
func TestAVolumeWithoutASourceIsAnEmptyDir(t *testing.T) {
	containers := "      containers: [{name: db, image: db:1, volumeMounts: [{name: data, mountPath: /data}, {name: tmp, mountPath: /tmp}]}]\n"
	want, _ := parsed(t, dropHead+containers+"      volumes: [{name: tmp, emptyDir: {}}]\n")
	for _, volume := range []string{"{name: tmp}", "{name: tmp, emptyDir: null}"} {
		got, said := parsed(t, dropHead+containers+"      volumes: ["+volume+"]\n")
		if len(said) > 0 || spec.HashTemplate(got) != spec.HashTemplate(want) || got.Spec.Volumes[0].EmptyDir == nil {
			t.Errorf("%s: got %q and %+v; want an emptyDir", volume, said, got.Spec.Volumes)
		}
	}
}

// TestEphemeralStorageIsLeftOut with a warning, and moves no hash.
func TestEphemeralStorageIsLeftOut(t *testing.T) {
	with := func(resources string) string {
		return dropHead + "      containers:\n        - name: db\n          image: db:1\n          volumeMounts: [{name: data, mountPath: /data}]\n" +
			"          resources: {" + resources + "}\n"
	}
	want, _ := parsed(t, with("limits: {memory: 1Gi}"))
	got, said := parsed(t, with("limits: {memory: 1Gi, ephemeral-storage: 2Gi}, requests: {ephemeral-storage: 50Mi}"))
	if spec.HashTemplate(got) != spec.HashTemplate(want) || len(got.Spec.Containers[0].Resources.Limits) != 1 || len(got.Spec.Containers[0].Resources.Requests) != 1 {
		t.Errorf("it is kept: %+v", got.Spec.Containers[0].Resources)
	}
	const why = ": has no effect here; the disk that a container's own files and logs take is neither reserved nor bounded"
	if !slices.Equal(said, []string{"f:16:45: spec.template.spec.containers[0].resources.limits[ephemeral-storage]" + why}) {
		t.Errorf("got %q", said)
	}
	_, problems, _ := Parse([]Source{{Name: "f", Content: []byte(with("limits: {ephemeral-storage: 1Gi}, requests: {ephemeral-storage: 2Gi}"))}}, Options{})
	if len(problems) != 1 || problems[0].What != "2Gi is more than the limit 1Gi" {
		t.Errorf("got %v; want a request above the limit refused, as in Kubernetes", problems)
	}
}

// TestEphemeralStorageThatAMemberReadsIsKept: resourceFieldRef shows it as it is written.
func TestEphemeralStorageThatAMemberReadsIsKept(t *testing.T) {
	const containers = "      containers:\n        - name: db\n          image: db:1\n          volumeMounts: [{name: data, mountPath: /data}]\n" +
		"          resources: {limits: {ephemeral-storage: 2Gi}}\n"
	for _, reads := range []string{
		"          env: [{name: DISK, valueFrom: {resourceFieldRef: {resource: limits.ephemeral-storage}}}]\n",
		"      volumes: [{name: v, downwardAPI: {items: [{path: disk, resourceFieldRef: {containerName: db, resource: requests.ephemeral-storage}}]}}]\n",
	} {
		got, said := parsed(t, dropHead+containers+reads)
		r := got.Spec.Containers[0].Resources
		if len(said) != 1 || r.Limits[ephemeralStorage].String() != "2Gi" || r.Requests[ephemeralStorage].String() != "2Gi" {
			t.Errorf("got %+v, %q", r, said)
		}
	}
}

// TestBudgetsOfOldCharts: policy/v1beta1, and what policy/v1 accepts although it says nothing.
func TestBudgetsOfOldCharts(t *testing.T) {
	budget := func(version, body string) Source {
		return Source{Name: "f", Content: []byte("apiVersion: " + version + "\nkind: PodDisruptionBudget\nmetadata: {name: db}\nspec: {" + body + "}\n")}
	}
	for _, tt := range []struct{ version, body, warning, problem string }{
		{"policy/v1beta1", "minAvailable: 1, selector: {matchLabels: {app: db}}", "f:1:13: apiVersion: is read as policy/v1", ""},
		{"policy/v1beta1", "minAvailable: 1, selector: {}", "",
			"f:4:25: spec.selector: is empty: it selects nothing in policy/v1beta1, and everything in policy/v1; write matchLabels with labels of the members"},
		{"policy/v1", "minAvailable: 1, selector: {}", "", ""},
		{"policy/v1", "selector: {matchLabels: {app: db}}",
			"f:4:1: spec: has no effect here, as in Kubernetes: it has neither minAvailable nor maxUnavailable", ""},
		{"policy/v1", "minAvailable: 1, maxUnavailable: 1, selector: {}", "", "f:4:1: spec: needs one of minAvailable and maxUnavailable"},
		{"policy/v2", "minAvailable: 1, selector: {}", "", `f:1:13: apiVersion: PodDisruptionBudget "db" is not supported in apiVersion "policy/v2"; write apiVersion: policy/v1`},
	} {
		o, problems, warnings := Parse([]Source{budget(tt.version, tt.body)}, Options{})
		if tt.problem != "" {
			if len(problems) != 1 || problems[0].String() != tt.problem {
				t.Errorf("%s %s: got %v, want %s", tt.version, tt.body, problems, tt.problem)
			}
			continue
		}
		if len(problems) > 0 || len(warnings) > 1 || len(warnings) == 1 != (tt.warning != "") || tt.warning != "" && warnings[0].String() != tt.warning {
			t.Errorf("%s %s: got %v and %v, want the warning %q", tt.version, tt.body, problems, warnings, tt.warning)
		} else if o.Budgets[0].APIVersion != "policy/v1" {
			t.Errorf("%s %s: is kept as %s", tt.version, tt.body, o.Budgets[0].APIVersion)
		}
	}
}
