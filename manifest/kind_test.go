package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// object is one document of a kind.
func object(version, kind, name, annotations string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, annotations: {%s}}\nspec: {x: y}\n", version, kind, name, annotations)
}

// TestWhatComesAlongIsLeftOutInALineForEachReason with the words of the summary.
func TestWhatComesAlongIsLeftOutInALineForEachReason(t *testing.T) {
	account := object("v1", "ServiceAccount", "db", "")
	role := object("rbac.authorization.k8s.io/v1", "Role", "db", "")
	test := object("v1", "Pod", "db-test", `"helm.sh/hook": "test-success, test"`)
	const noAPI = "skipped: Role db; members get no token and there is no Kubernetes API: software that looks there for its peers or its leader does not find them"
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"kinds without effect", account + object("monitoring.coreos.com/v1", "ServiceMonitor", "db", "") + strings.Repeat(object("monitoring.coreos.com/v1", "PrometheusRule", "r", ""), 5),
			[]string{"skipped, as they change nothing here: ServiceAccount db; ServiceMonitor db; PrometheusRule r, r, r and 2 more"}},
		{"a role without a set", role, []string{"skipped, as they change nothing here: Role db"}},
		{"a role with a set", account + role + serviceSet, []string{"skipped, as they change nothing here: ServiceAccount db", noAPI}},
		{"tests of Helm", test, []string{"skipped, as 'helm install' does, tests: Pod db-test"}},
		{"a class", object("storage.k8s.io/v1", "StorageClass", "fast", ""),
			[]string{"skipped: StorageClass fast; declare storage classes on the nodes with --storage-class, or map their names on the server with --map-class"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, problems, warnings := Parse([]Source{{Name: "f", Content: []byte(tt.text)}}, Options{})
			if got := shown(warnings); len(problems) > 0 || !slices.Equal(got, tt.want) {
				t.Errorf("got %v and\n%s\nwant\n%s", problems, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// TestKindsThatWouldBeMissedAreRefused with what to do instead, unless the user asks to leave
// them out; then in one line.
func TestKindsThatWouldBeMissedAreRefused(t *testing.T) {
	text := object("apps/v1", "Deployment", "web", "") + object("batch/v1", "Job", "init", `"helm.sh/hook": "post-install,test"`) +
		object("batch/v1", "Job", "init2", "") + object("example.org/v1", "ServiceAccount", "x", "") + object("example.org/v1", "Backup", "x", "")
	files := []Source{{Name: "f", Content: []byte(text)}}
	_, problems, _ := Parse(files, Options{})
	const leave = ", or leave it out with --skip-unsupported"
	want := []string{
		`f:3:7: kind: Deployment "web" is not supported; write it as a StatefulSet` + leave,
		`f:9:54: metadata.annotations[helm.sh/hook]: Job "init" is a Helm hook, which Stead does not run; do its work by hand, and render the chart with --no-hooks` + leave,
		`f:13:7: kind: Job "init2" is not supported; do its work by hand, as with 'stead exec'` + leave,
		`f:18:7: kind: ServiceAccount "x" is not supported; Stead has StatefulSet, Service, ConfigMap, Secret, PersistentVolumeClaim, PodDisruptionBudget, NetworkPolicy and ResourceQuota` + leave,
		`f:23:7: kind: Backup "x" is not supported; Stead has StatefulSet, Service, ConfigMap, Secret, PersistentVolumeClaim, PodDisruptionBudget, NetworkPolicy and ResourceQuota` + leave,
	}
	if got := shown(problems); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	_, problems, warnings := Parse(files, Options{SkipUnsupported: true})
	if got := shown(warnings); len(problems) > 0 || !slices.Equal(got, []string{"skipped (--skip-unsupported): Deployment web; Job init, init2; ServiceAccount x; Backup x"}) {
		t.Errorf("got %v and %q", problems, got)
	}
}

// TestRepeatedWarningsAreCounted: the first is said, the others are counted; problems are all said.
func TestRepeatedWarningsAreCounted(t *testing.T) {
	var text strings.Builder
	for i := range 4 {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Service\nmetadata: {name: s%d}\nspec: {selector: {app: db}, ports: [{port: 80, name: a, appProtocol: x}, {port: 81, name: b, appProtocol: x}]}\n", i)
	}
	set := strings.Replace(serviceSet, "containers:", "tolerations: [{operator: Exists, key: a, tolerationSeconds: 1}, {operator: Exists, key: b, tolerationSeconds: 2}], containers:", 1)
	_, _, warnings := Parse([]Source{{Name: "f", Content: []byte(text.String())}, {Name: "g", Content: []byte(set)}}, Options{})
	want := []string{
		"f:5:57: spec.ports[0].appProtocol: has no effect here (and 3 more Services); connections are led as they are, whatever they carry",
		"g:9:53: spec.template.spec.tolerations[0].tolerationSeconds: has no effect here (and 1 more place); a taint ends no life",
	}
	if got := shown(warnings); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	_, problems, _ := Parse([]Source{{Name: "f", Content: []byte(strings.ReplaceAll(text.String(), "port: 80", "port: 0"))}}, Options{})
	if len(problems) != 4 {
		t.Errorf("got %v; want each problem", problems)
	}
}
