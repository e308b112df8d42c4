package manifest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
	"github.com/stead-project/stead/spec/quota"
)

// TestEveryRefusedFieldSaysWhatToWrite walks through all types of manifests.
func TestEveryRefusedFieldSaysWhatToWrite(t *testing.T) {
	used, seen := map[string]bool{}, map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if !describable(typ) || seen[typ] {
			return
		}
		seen[typ] = true
		for _, f := range fieldsOf(typ) {
			key := typ.Name() + "." + f.name
			if f.later || f.ignored {
				used[key] = true
			} else {
				walk(f.typ)
			}
			if f.later && f.instead == "" {
				t.Errorf("%s is refused without a word of what to write instead; add it to instead.go", key)
			}
		}
	}
	for _, kind := range []any{spec.StatefulSet{}, spec.Service{}, spec.ConfigMap{}, spec.Secret{}, spec.PodDisruptionBudget{}, spec.PersistentVolumeClaim{}, records.Endpoints{}, records.EndpointSlice{}, netpol.NetworkPolicy{}, quota.ResourceQuota{}} {
		walk(reflect.TypeOf(kind))
	}
	for key := range instead {
		if !used[key] {
			t.Errorf("instead.go speaks of %s, which is neither refused nor ignored; remove the line", key)
		}
	}
}

// TestWhatSteadDoesAnywayIsAcceptedWithoutAWord: each line says what its absence says.
// The template keeps its hash, so that no member is restarted by it.
func TestWhatSteadDoesAnywayIsAcceptedWithoutAWord(t *testing.T) {
	const at, in = "\n      ", "\n          "
	head := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  selector: {matchLabels: {app: db}}\n" +
		"  template:\n    metadata: {labels: {app: db}}\n    spec:"
	tail := at + "containers:\n        - name: db" + in + "image: db:1"
	mount := in + "volumeMounts: [{name: tmp, mountPath: /tmp"
	tmp := at + "volumes: [{name: tmp, emptyDir: {}}]"
	parse := func(t *testing.T, text string) (spec.RevisionHash, []Problem, []Problem) {
		o, problems, warnings := Parse([]Source{{Name: "f", Content: []byte(text)}}, Options{})
		if len(problems) > 0 {
			return "", problems, warnings
		}
		return spec.HashTemplate(o.Sets[0].Spec.Template), nil, warnings
	}
	for _, tt := range []struct{ name, same, other, plain string }{
		{"seccomp of the member", head + at + "securityContext: {seccompProfile: {type: RuntimeDefault}}" + tail,
			"", head + tail},
		{"seccomp of a container", head + tail + in + "securityContext: {seccompProfile: {type: RuntimeDefault}}",
			"", head + tail},
		{"seccomp of a container as the member's", head + at + "securityContext: {seccompProfile: {type: Unconfined}}" + tail +
			in + "securityContext: {seccompProfile: {type: Unconfined}}", "", head + at + "securityContext: {seccompProfile: {type: Unconfined}}" + tail},
		{"no AppArmor profile", head + tail + in + "securityContext: {appArmorProfile: {type: Unconfined}}",
			"", head + tail},
		{"procMount", head + tail + in + "securityContext: {procMount: Default}",
			head + tail + in + "securityContext: {procMount: Unmasked}", head + tail},
		{"no SELinux labels", head + at + "securityContext: {seLinuxOptions: {}}" + tail + in + "securityContext: {seLinuxOptions: {}}", "", head + tail},
		{"groups of the image", head + at + "securityContext: {supplementalGroupsPolicy: Merge}" + tail,
			"", head + tail},
		{"linux", head + at + "os: {name: linux}" + tail, head + at + "os: {name: windows}" + tail, head + tail},
		{"host users", head + at + "hostUsers: true" + tail, head + at + "hostUsers: false" + tail, head + tail},
		{"mountPropagation", head + tmp + tail + mount + ", mountPropagation: None}]",
			head + tmp + tail + mount + ", mountPropagation: Bidirectional}]", head + tmp + tail + mount + "}]"},
		{"recursiveReadOnly", head + tmp + tail + mount + ", recursiveReadOnly: Disabled}]",
			head + tmp + tail + mount + ", recursiveReadOnly: Enabled}]", head + tmp + tail + mount + "}]"},
		{"no token", head + at + "automountServiceAccountToken: false" +
			at + "serviceAccountName: default" + at + "schedulerName: default-scheduler" + at + "preemptionPolicy: Never" + tail, "", head + tail},
		{"the end's message", head + tail + in + "terminationMessagePath: /dev/termination-log" + in + "terminationMessagePolicy: File", "", head + tail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want, problems, _ := parse(t, tt.plain)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got, problems, warnings := parse(t, tt.same)
			if len(problems)+len(warnings) > 0 || got != want {
				t.Errorf("got hash %s, problems %v, warnings %v; want hash %s and no word", got, problems, warnings, want)
			}
			if tt.other == "" {
				return
			}
			_, problems, _ = parse(t, tt.other)
			if len(problems) != 1 || problems[0].What != notYet || problems[0].Fix == "" || problems[0].Line == 0 {
				t.Errorf("another value: got %v; want one refusal with a line and what to write", problems)
			}
		})
	}
}

// TestIgnoredFieldsSayWhy: a value that Kubernetes would act on.
func TestIgnoredFieldsSayWhy(t *testing.T) {
	_, problems, warnings := Parse([]Source{{Name: "f", Content: []byte("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\n" +
		"spec:\n  selector: {matchLabels: {app: db}}\n  template:\n    metadata: {labels: {app: db}}\n    spec:\n" +
		"      enableServiceLinks: true\n      securityContext: {seLinuxOptions: {level: s0}}\n      containers: [{name: db, image: db:1}]\n")}}, Options{})
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	want := []string{
		"f:10:25: spec.template.spec.securityContext.seLinuxOptions: has no effect here; containers get no SELinux labels",
	}
	if len(problems) > 0 || !slices.Equal(got, want) {
		t.Errorf("got %v\n%q\nwant\n%q", problems, got, want)
	}
}
