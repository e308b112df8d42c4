package spec

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/spec/scalar"
)

//go:embed testdata/level1.txt
var levelOne string // the fields of templates that agents carry out which do not say their level

//go:embed testdata/level2.txt
var levelTwo string // those of level 2: what the agents of v0.1.0 carry out

// TestEveryFieldOfATemplateHasALevel: a field without since= is one that agents knew before there were
// levels, one of level 2 is one that v0.1.0 knows; a new one would be passed over by older agents.
func TestEveryFieldOfATemplateHasALevel(t *testing.T) {
	first, released := strings.Fields(levelOne), strings.Fields(levelTwo)
	seen := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			json, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			words := strings.Split(f.Tag.Get("stead"), ",")
			if json == "" || slices.Contains(words, "later") || slices.Contains(words, "ignored") {
				continue
			}
			since := 0
			for _, l := range leveledOf(typ) {
				if l.index == i {
					since = l.since
				}
			}
			name := typ.Name() + "." + json
			switch tagged := strings.Contains(f.Tag.Get("stead"), "since="); {
			case tagged && (since < 2 || since > Level):
				t.Errorf("%s: since= must be a number from 2 to %d", name, Level)
			case since == 2 && !slices.Contains(released, name):
				t.Errorf("%s is newer than v0.1.0, whose agents have level 2: write since=3", name)
			case !tagged && !slices.Contains(first, name):
				t.Errorf("%s is new: write stead:\"since=N\", N the Level that agents have which carry it out", name)
			}
			if since == 0 && !seen[name] {
				seen[name] = true
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[MemberSpec]())
	for _, name := range first {
		if !seen[name] {
			t.Errorf("testdata/level1.txt: %s is no field of templates without a level", name)
		}
	}
}

func TestNeedsIsTheNewestFieldOfATemplate(t *testing.T) {
	always := RestartAlways
	for _, tc := range []struct {
		name  string
		spec  MemberSpec
		level int
		field string
	}{
		{"what was always there", MemberSpec{Containers: []Container{{Name: "a", ReadinessProbe: &Probe{Exec: &ExecAction{}}}}}, 1, ""},
		{"a list that is empty", MemberSpec{InitContainers: []Container{}}, 1, ""},
		{"the policy that every agent has", MemberSpec{DNSPolicy: DNSClusterFirst}, 1, ""},
		{"another policy", MemberSpec{DNSPolicy: DNSNone}, 2, "dnsPolicy"},
		{"the profile that every agent has", MemberSpec{SecurityContext: &MemberSecurityContext{SeccompProfile: &Profile{Type: ProfileRuntimeDefault}}}, 1, ""},
		{"another profile", MemberSpec{SecurityContext: &MemberSecurityContext{SeccompProfile: &Profile{Type: ProfileUnconfined}}}, 2, "securityContext.seccompProfile.type"},
		{"what is not wanted", MemberSpec{Containers: []Container{{SecurityContext: &SecurityContext{Privileged: new(bool)}}}}, 1, ""},
		{"init containers", MemberSpec{InitContainers: []Container{{Name: "i", RestartPolicy: &always}}}, 2, "initContainers"},
		{"a hook of the second", MemberSpec{Containers: []Container{{Name: "a"}, {Name: "b", Lifecycle: &Lifecycle{}}}}, 2, "containers[1].lifecycle"},
		{"a probe", MemberSpec{Containers: []Container{{Name: "a", LivenessProbe: &Probe{GRPC: &GRPCAction{}}}}}, 2, "containers[0].livenessProbe.grpc"},
		{"the hostname that every agent gives", MemberSpec{SetHostnameAsFQDN: new(bool)}, 1, ""},
		{"the grace of a probe", MemberSpec{Containers: []Container{{LivenessProbe: &Probe{TerminationGracePeriodSeconds: new(int64)}}}},
			2, "containers[0].livenessProbe.terminationGracePeriodSeconds"},
		{"huge pages", MemberSpec{Containers: []Container{{}, {Resources: pagesOf(2<<20, 0)}}}, 2, "containers[1].resources"},
		{"huge pages of an init container", MemberSpec{InitContainers: []Container{{Resources: pagesOf(0, 1<<30)}}}, 2, "initContainers"},
		{"a volume in huge pages", MemberSpec{Volumes: []VolumeMedia{{EmptyDir: &EmptyDir{Medium: scalar.MediumHugePages}}}}, 2, "volumes[0].emptyDir.medium"},
		{"a volume in memory", MemberSpec{Volumes: []VolumeMedia{{EmptyDir: &EmptyDir{Medium: MediumMemory}}}}, 1, ""},
		{"its own network", MemberSpec{HostNetwork: false}, 1, ""},
		{"the network of the host", MemberSpec{HostNetwork: true}, 2, "hostNetwork"},
		{"a variable", MemberSpec{Containers: []Container{{Env: []EnvVar{{Name: "x", ValueFrom: &EnvVarSource{ResourceFieldRef: &ResourceFieldRef{}}}}}}},
			2, "containers[0].env[0].valueFrom.resourceFieldRef"},
		{"a volume", MemberSpec{Volumes: []VolumeMedia{{}, {Projected: &ProjectedVolume{}}}}, 2, "volumes[1].projected"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if level, field := tc.spec.Needs(); level != tc.level || field != tc.field {
				t.Errorf("got %d %q, want %d %q", level, field, tc.level, tc.field)
			}
		})
	}
}
