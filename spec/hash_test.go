package spec

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/stead-project/stead/spec/scalar"
)

// TestHashesStay pins version 1. A change here restarts the members of every
// running set: raise HashVersion and keep the old form instead.
func TestHashesStay(t *testing.T) {
	if HashVersion != 2 {
		t.Fatalf("version %d: pin its hashes, too", HashVersion)
	}
	whole := wholeSpec(t).Template
	apart := Clone(whole)
	apart.Spec.ShareProcessNamespace = nil
	anywhere := withoutPlaces(apart)
	ended := Clone(anywhere)
	ended.Spec.SetHostnameAsFQDN = nil
	ended.Spec.Containers[0].LivenessProbe.TerminationGracePeriodSeconds = nil
	ended.Spec.Containers[0].Lifecycle.StopSignal = nil
	unclaimed := withoutClaims(ended)
	public := Clone(unclaimed)
	public.Spec.ImagePullSecrets = nil
	empty := Clone(public)
	empty.Spec.ImagePullSecrets = []PullSecret{}
	untuned := Clone(public)
	untuned.Spec.SecurityContext.Sysctls = nil
	unprofiled := Clone(untuned)
	unprofiled.Spec.SecurityContext.SupplementalGroupsPolicy = nil
	unprofiled.Spec.SecurityContext.SeccompProfile, unprofiled.Spec.SecurityContext.AppArmorProfile = nil, nil
	own := unprofiled.Spec.InitContainers[0].SecurityContext
	own.SeccompProfile, own.AppArmorProfile = nil, nil
	escalating := Clone(unprofiled)
	escalating.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil // version 1 did not see it
	unread := withoutFiles(escalating)
	uninitialized := Clone(unread)
	uninitialized.Spec.InitContainers = nil
	unhooked := Clone(uninitialized)
	unhooked.Spec.Containers[0].Lifecycle = nil
	unplaced := Clone(unhooked)
	unplaced.Spec.NodeSelector, unplaced.Spec.Affinity, unplaced.Spec.Tolerations, unplaced.Spec.TopologySpreadConstraints = nil, nil, nil, nil
	tests := []struct {
		name string
		in   Template
		want RevisionHash
	}{
		{"nothing", Template{}, "q9nw8pp6f8"},
		{"one container", Template{Spec: MemberSpec{Containers: []Container{{Name: "a", Image: "a:1"}}}}, "pmgh2p9ssc"},
		{"every field", whole, "pdvqlzpjgh"},
		{"every field there was before shareProcessNamespace", apart, "qpzpf6lpv9"},
		{"every field there was before namespaceSelector and minDomains", anywhere, "9vkkhwn48k"},
		{"every field there was before setHostnameAsFQDN, stopSignal and a probe's grace", ended, "k5v9knsm7m"},
		{"every field there was before claims", unclaimed, "qmgwzclkld"},
		{"every field there was before imagePullSecrets", public, "jxclhmwf58"},
		{"an empty list of them", empty, "jxclhmwf58"},
		{"every field there was before sysctls", untuned, "h2z4rpqs2t"},
		{"every field there was before profiles", unprofiled, "vhvtw7b6gn"},
		{"every field there was in version 1", escalating, "bmtrmmsp98"},
		{"every field there was before projected volumes", unread, "27qm9ddjf6"},
		{"every field there was before init containers", uninitialized, "f2llbbb9vx"},
		{"every field there was before hooks", unhooked, "466g6gp7cc"},
		{"every field there was before placement", unplaced, "f46g9n8tgv"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := HashTemplate(tt.in); got != tt.want {
				t.Errorf("got %s, want %s\n%s", got, tt.want, canonicalTemplate(tt.in))
			}
		})
	}
}

// wholeSpec is a spec in which every field is there, with its defaults: what the manifest
// whole.yaml means, as package manifest reads it.
func wholeSpec(t *testing.T) SetSpec {
	t.Helper()
	doc, err := os.ReadFile("../manifest/testdata/whole.json")
	if err != nil {
		t.Fatal(err)
	}
	var objects struct{ Sets []StatefulSet }
	if err := json.Unmarshal(doc, &objects); err != nil || len(objects.Sets) != 1 {
		t.Fatalf("%d sets, %v", len(objects.Sets), err)
	}
	return objects.Sets[0].Spec
}

// plain is a template with a little of everything.
func plain() Template {
	s := SetSpec{Template: Template{
		Metadata: ObjectMeta{Labels: map[string]string{"app": "db", "x": "y"}, Annotations: map[string]string{"a": "b", "c": "d"}},
		Spec: MemberSpec{
			Containers: []Container{{
				Name: "a", Image: "a:1",
				Resources:      ResourceRequirements{Limits: map[string]scalar.Quantity{"memory": {Milli: 1 << 30 * 1000}}},
				Ports:          []ContainerPort{{ContainerPort: 80}},
				ReadinessProbe: &Probe{HTTPGet: &HTTPGet{Port: scalar.PortRef{Number: 80}}},
			}},
			Volumes: []VolumeMedia{{Name: "v", Secret: &SecretVolume{SecretName: "s"}}},
		},
	}}
	Default(&s)
	return s.Template
}

func TestEveryChangeOfATemplateChangesTheHash(t *testing.T) {
	base := plain()
	seen := map[RevisionHash]string{HashTemplate(base): "base"}
	zero := int64(0)
	changes := map[string]func(*Template){
		"label":        func(x *Template) { x.Metadata.Labels["x"] = "z" },
		"empty label":  func(x *Template) { x.Metadata.Labels["e"] = "" },
		"annotation":   func(x *Template) { delete(x.Metadata.Annotations, "a") },
		"image":        func(x *Template) { x.Spec.Containers[0].Image = "a:2" },
		"args":         func(x *Template) { x.Spec.Containers[0].Args = []string{""} },
		"args order":   func(x *Template) { x.Spec.Containers[0].Args = []string{"a", "b"} },
		"args order 2": func(x *Template) { x.Spec.Containers[0].Args = []string{"b", "a"} },
		"memory": func(x *Template) {
			x.Spec.Containers[0].Resources.Limits["memory"] = scalar.Quantity{Milli: 1}
		},
		"grace of zero": func(x *Template) { x.Spec.TerminationGracePeriodSeconds = &zero },
		"user root":     func(x *Template) { x.Spec.SecurityContext = &MemberSecurityContext{RunAsUser: &zero} },
		"group root":    func(x *Template) { x.Spec.SecurityContext = &MemberSecurityContext{RunAsGroup: &zero} },
		"empty dir":     func(x *Template) { x.Spec.Volumes[0] = VolumeMedia{Name: "v", EmptyDir: &EmptyDir{}} },
		"nothing in it": func(x *Template) { x.Spec.Volumes[0] = VolumeMedia{Name: "v"} },
		"probe":         func(x *Template) { x.Spec.Containers[0].ReadinessProbe.PeriodSeconds = 9 },
		"probe port":    func(x *Template) { x.Spec.Containers[0].ReadinessProbe.HTTPGet.Port = scalar.PortRef{Name: "http"} },
		"no probe":      func(x *Template) { x.Spec.Containers[0].ReadinessProbe = nil },
		"one more":      func(x *Template) { x.Spec.Containers = append(x.Spec.Containers, Container{Name: "b", Image: "a:1"}) },
		"pull policy":   func(x *Template) { x.Spec.Containers[0].ImagePullPolicy = PullAlways },
		"postStart": func(x *Template) {
			x.Spec.Containers[0].Lifecycle = &Lifecycle{PostStart: &Hook{Sleep: &SleepAction{}}}
		},
		"preStop": func(x *Template) {
			x.Spec.Containers[0].Lifecycle = &Lifecycle{PreStop: &Hook{Sleep: &SleepAction{}}}
		},
		"sleep": func(x *Template) {
			x.Spec.Containers[0].Lifecycle = &Lifecycle{PreStop: &Hook{Sleep: &SleepAction{Seconds: 1}}}
		},
		"grpc": func(x *Template) { x.Spec.Containers[0].LivenessProbe = &Probe{GRPC: &GRPCAction{Port: 1}} },
		"grpc service": func(x *Template) {
			x.Spec.Containers[0].LivenessProbe = &Probe{GRPC: &GRPCAction{Port: 1, Service: "a"}}
		},
		"init container": func(x *Template) { x.Spec.InitContainers = []Container{{Name: "b", Image: "a:1"}} },
		"sidecar": func(x *Template) {
			always := RestartAlways
			x.Spec.InitContainers = []Container{{Name: "b", Image: "a:1", RestartPolicy: &always}}
		},
		"no new privileges": func(x *Template) {
			no := false
			x.Spec.Containers[0].SecurityContext = &SecurityContext{AllowPrivilegeEscalation: &no}
		},
		"unconfined": func(x *Template) {
			x.Spec.SecurityContext = &MemberSecurityContext{SeccompProfile: &Profile{Type: ProfileUnconfined}}
		},
		"a container unconfined": func(x *Template) {
			x.Spec.Containers[0].SecurityContext = &SecurityContext{SeccompProfile: &Profile{Type: ProfileUnconfined}}
		},
		"AppArmor": func(x *Template) {
			x.Spec.SecurityContext = &MemberSecurityContext{AppArmorProfile: &Profile{Type: ProfileRuntimeDefault}}
		},
		"one container confined": func(x *Template) {
			x.Spec.SecurityContext = &MemberSecurityContext{SeccompProfile: &Profile{Type: ProfileUnconfined}}
			x.Spec.Containers[0].SecurityContext = &SecurityContext{SeccompProfile: &Profile{Type: ProfileRuntimeDefault}}
		},
		"strict groups": func(x *Template) {
			policy := GroupsStrict
			x.Spec.SecurityContext = &MemberSecurityContext{SupplementalGroupsPolicy: &policy}
		},
		"sysctl": func(x *Template) {
			x.Spec.SecurityContext = &MemberSecurityContext{Sysctls: []Sysctl{{Name: "kernel.sem", Value: "1"}}}
		},
		"privileged": func(x *Template) {
			yes := true
			x.Spec.Containers[0].SecurityContext = &SecurityContext{Privileged: &yes}
		},
		"path of the host": func(x *Template) {
			x.Spec.Volumes[0] = VolumeMedia{Name: "v", HostPath: &HostPathVolume{Path: "/srv"}}
		},
		"type of a path of the host": func(x *Template) {
			kind := "File"
			x.Spec.Volumes[0] = VolumeMedia{Name: "v", HostPath: &HostPathVolume{Path: "/srv", Type: &kind}}
		},
		"pull secret":      func(x *Template) { x.Spec.ImagePullSecrets = []PullSecret{{Name: "a"}} },
		"another":          func(x *Template) { x.Spec.ImagePullSecrets = []PullSecret{{Name: "b"}} },
		"shared processes": func(x *Template) { yes := true; x.Spec.ShareProcessNamespace = &yes },
		"long hostname":    func(x *Template) { yes := true; x.Spec.SetHostnameAsFQDN = &yes },
		"stop signal": func(x *Template) {
			signal := "SIGUSR1"
			x.Spec.Containers[0].Lifecycle = &Lifecycle{StopSignal: &signal}
		},
		"grace of a probe": func(x *Template) { x.Spec.Containers[0].ReadinessProbe.TerminationGracePeriodSeconds = &zero },
		"empty variable":   func(x *Template) { x.Spec.Containers[0].Env = []EnvVar{{Name: "A"}} },
	}
	for name, change := range changes {
		next := Clone(base)
		change(&next)
		h := HashTemplate(next)
		if other, twice := seen[h]; twice {
			t.Errorf("%s hashes like %s", name, other)
		}
		seen[h] = name
		if SameTemplate(base, next) {
			t.Errorf("%s is the same as before", name)
		}
	}
	for _, links := range []bool{false, true} { // charts that say it were applied before it was honoured
		next := Clone(base)
		next.Spec.EnableServiceLinks = &links
		if !SameTemplate(base, next) || HashTemplate(base) != HashTemplate(next) || next.Spec.EnableServiceLinks == nil {
			t.Errorf("enableServiceLinks: %v restarts members", links)
		}
	}
	short, no := Clone(base), false
	short.Spec.SetHostnameAsFQDN, short.Spec.ShareProcessNamespace = &no, &no
	if !SameTemplate(base, short) {
		t.Error("setHostnameAsFQDN: false, or shareProcessNamespace: false, restarts members")
	}
	if !SameTemplate(base, plain()) {
		t.Error("the base was changed by a clone, or does not equal itself")
	}
}

func TestDefaultTwiceChangesNothing(t *testing.T) {
	s := wholeSpec(t)
	again := Clone(s)
	Default(&again)
	if !reflect.DeepEqual(s, again) {
		t.Errorf("got %+v, want %+v", again, s)
	}
}

func TestDefaultOfNothing(t *testing.T) {
	var s SetSpec
	Default(&s)
	u := s.UpdateStrategy
	if s.Replicas != nil || s.PodManagementPolicy != OrderedReady || u.Type != RollingUpdateStrategy || *s.RevisionHistoryLimit != 10 ||
		*u.RollingUpdate.Partition != 0 || *u.RollingUpdate.MaxUnavailable != (scalar.IntOrPercent{Number: 1}) ||
		*s.Retention != (RetentionPolicy{Retain, Retain}) || *s.Template.Spec.TerminationGracePeriodSeconds != 30 {
		t.Errorf("got %+v", s)
	}
	var typed SetSpec
	typed.UpdateStrategy.Type = RollingUpdateStrategy
	Default(&typed)
	if typed.UpdateStrategy.RollingUpdate == nil {
		t.Error("a typed strategy got no rollingUpdate block")
	}
}

func TestDefaultPull(t *testing.T) {
	for image, want := range map[string]string{
		"a": PullAlways, "a:latest": PullAlways, "r:5000/a": PullAlways, "a:1": PullIfNotPresent,
		"r:5000/a:1": PullIfNotPresent, "a@sha256:00": PullIfNotPresent, "a:latest@sha256:00": PullAlways,
	} {
		if got := defaultPull(image); got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
}

// withoutPlaces is t without what came to placement with matchLabelKeys.
func withoutPlaces(t Template) Template {
	t = Clone(t)
	for i := range t.Spec.Affinity.PodAntiAffinity.Required {
		term := &t.Spec.Affinity.PodAntiAffinity.Required[i]
		term.NamespaceSelector, term.MatchLabelKeys, term.MismatchLabelKeys = nil, nil, nil
	}
	for i := range t.Spec.TopologySpreadConstraints {
		c := &t.Spec.TopologySpreadConstraints[i]
		c.MinDomains, c.NodeAffinityPolicy, c.NodeTaintsPolicy, c.MatchLabelKeys = nil, "", "", nil
	}
	return t
}

// TestWhatPlacementDoesAnywayHashesAsAbsent: charts wrote these values before they were kept.
func TestWhatPlacementDoesAnywayHashesAsAbsent(t *testing.T) {
	spread := func(change func(*Spread)) Template {
		x := plain()
		x.Spec.TopologySpreadConstraints = []Spread{{MaxSkew: 1, TopologyKey: "zone"}}
		change(&x.Spec.TopologySpreadConstraints[0])
		return x
	}
	one, two := int32(1), int32(2)
	base := HashTemplate(spread(func(*Spread) {}))
	if HashTemplate(spread(func(s *Spread) {
		s.MinDomains, s.NodeAffinityPolicy, s.NodeTaintsPolicy, s.MatchLabelKeys = &one, policyHonor, policyIgnore, []string{}
	})) != base {
		t.Error("a default restarts members")
	}
	seen := map[RevisionHash]bool{base: true}
	for _, change := range []func(*Spread){
		func(s *Spread) { s.MinDomains = &two }, func(s *Spread) { s.NodeAffinityPolicy = policyIgnore }, func(s *Spread) { s.NodeTaintsPolicy = policyHonor },
		func(s *Spread) { s.MatchLabelKeys = []string{"a"} },
	} {
		h := HashTemplate(spread(change))
		if seen[h] {
			t.Errorf("%s twice", h)
		}
		seen[h] = true
	}
	for _, change := range []func(*MemberTerm){
		func(*MemberTerm) {}, func(m *MemberTerm) { m.NamespaceSelector = &LabelSelector{} }, func(m *MemberTerm) { m.MatchLabelKeys = []string{"a"} },
		func(m *MemberTerm) { m.MismatchLabelKeys = []string{"a"} },
	} {
		x := plain()
		x.Spec.Affinity = &Affinity{PodAffinity: &MemberAffinity{Required: []MemberTerm{{TopologyKey: "zone"}}}}
		change(&x.Spec.Affinity.PodAffinity.Required[0])
		h := HashTemplate(x)
		if seen[h] {
			t.Errorf("%s twice", h)
		}
		seen[h] = true
	}
}
