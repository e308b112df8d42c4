package files

import (
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func TestBuild(t *testing.T) {
	l := life()
	uid, gid, own, yes, no := int64(999), int64(998), int64(5), true, false
	l.Template.Spec.SecurityContext = &spec.MemberSecurityContext{RunAsUser: &uid, FSGroup: &gid, SupplementalGroups: []int64{7}, RunAsNonRoot: &yes,
		Sysctls: []spec.Sysctl{{Name: "net/ipv4/conf/eth0.1/rp_filter", Value: "0"}, {Name: "kernel.sem", Value: "1 2 3 4"}}}
	l.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "conf", ConfigMap: &spec.ConfigMapVolume{Name: "etc"}}, {Name: "tmp", EmptyDir: &spec.EmptyDir{}},
		{Name: "host", HostPath: &spec.HostPathVolume{Path: "/srv"}}}
	c := &l.Template.Spec.Containers[0]
	c.Command, c.Args, c.WorkingDir = []string{"/run.sh", "$(STEAD_ORDINAL)"}, []string{"$(X)"}, "/data"
	c.Env = []spec.EnvVar{{Name: "X", Value: "y"}}
	c.VolumeMounts = []spec.VolumeMount{
		{Name: "data", MountPath: "/data/", SubPath: "db"}, {Name: "conf", MountPath: "/conf"},
		{Name: "conf", MountPath: "/etc/hosts", SubPath: "hosts"}, {Name: "tmp", MountPath: "/tmp", ReadOnly: true},
		{Name: "host", MountPath: "/host", ReadOnly: true},
	}
	c.SecurityContext = &spec.SecurityContext{RunAsUser: &own, ReadOnlyRootFilesystem: &yes, AllowPrivilegeEscalation: &no, Capabilities: &spec.Capabilities{Drop: []string{"ALL"}, Add: []string{"CHOWN"}}}
	c.Resources = spec.ResourceRequirements{Limits: map[string]scalar.Quantity{"cpu": {Milli: 1500}, "memory": {Milli: 1 << 20 * 1000}}}
	p := At("/run/a", l.Member.ID)
	got, err := Build(l, c, host, book(), Parts{Attempt: 2, Place: p, Volumes: map[string]string{"data": "/v/data", "tmp": "/s/tmp", "host": "/run/host"}, SubPaths: map[int]string{0: "/run/sub"}, Log: runtime.Log{Dir: "/l"}})
	must(t, err)
	if !slices.Contains(got.Env, "X=y") || !slices.Contains(got.Env, "STEAD_ORDINAL=2") {
		t.Errorf("env: got %s", strings.Join(got.Env, " "))
	}
	got.Env = nil
	equal(t, "container", got, runtime.Container{
		ID: runtime.ContainerID{ID: l.Member.ID, Name: "db"}, Token: l.Member.Token, Attempt: 2, Image: "img:1",
		Command: []string{"/run.sh", "2"}, Args: []string{"y"}, Dir: "/data", Hostname: "db-2",
		Mounts: []runtime.Mount{
			{Source: "/run/a/files/prod/db-2/conf", Target: "/conf", ReadOnly: true},
			{Source: "/run/sub", Target: "/data"},
			{Source: "/run/a/etc/prod/db-2/hostname", Target: "/etc/hostname", ReadOnly: true},
			{Source: "/run/a/files/prod/db-2/conf/..data/hosts", Target: "/etc/hosts", ReadOnly: true},
			{Source: "/run/a/etc/prod/db-2/resolv.conf", Target: "/etc/resolv.conf", ReadOnly: true},
			{Source: "/run/host", Target: "/host", ReadOnly: true, Host: true},
			{Source: "/run/a/members/prod/db-2", Target: "/run/stead", ReadOnly: true},
			{Target: "/run/stead/self", MemoryBytes: 64 << 10, MemoryFiles: 32},
			{Source: "/s/tmp", Target: "/tmp", ReadOnly: true},
		},
		User: &own, NonRoot: true, SupplementalGroups: []int64{7, 998}, ReadOnlyRoot: true, NoNewPrivileges: true,
		Sysctls: map[string]string{"net.ipv4.conf.eth0/1.rp_filter": "0", "kernel.sem": "1 2 3 4"},
		Seccomp: spec.Profile{Type: "RuntimeDefault"}, AppArmor: spec.Profile{Type: "Unconfined"},
		AddCapabilities: []string{"CHOWN"}, DropCapabilities: []string{"ALL"},
		Resources: runtime.Resources{CPUMillis: 1500, CPURequestMillis: 1500, MemoryBytes: 1 << 20}, OOMScore: -997, Log: runtime.Log{Dir: "/l"},
	})
}

// As Kubernetes' AddNoNewPrivileges: only false sets no_new_privs.
func TestOnlyFalseForbidsPrivilegeEscalation(t *testing.T) {
	no, yes := false, true
	for name, c := range map[string]struct {
		context *spec.SecurityContext
		want    bool
	}{
		"no context": {nil, false}, "absent": {&spec.SecurityContext{}, false},
		"true":  {&spec.SecurityContext{AllowPrivilegeEscalation: &yes}, false},
		"false": {&spec.SecurityContext{AllowPrivilegeEscalation: &no}, true},
	} {
		var got runtime.Container
		secure(&got, nil, c.context)
		if got.NoNewPrivileges != c.want {
			t.Errorf("%s: got %v, want %v", name, got.NoNewPrivileges, c.want)
		}
	}
}

// As in Kubernetes, the container's own profile takes the place of the member's.
func TestProfilesOfTheContainerTakeThePlaceOfTheMembers(t *testing.T) {
	file := "a.json"
	runtimeDefault, unconfined, local := &spec.Profile{Type: "RuntimeDefault"}, &spec.Profile{Type: "Unconfined"}, &spec.Profile{Type: "Localhost", LocalhostProfile: &file}
	for _, c := range []struct {
		name              string
		member            *spec.MemberSecurityContext
		own               *spec.SecurityContext
		seccomp, appArmor *spec.Profile
	}{
		{"nothing", nil, nil, runtimeDefault, unconfined},
		{"the member's", &spec.MemberSecurityContext{SeccompProfile: local, AppArmorProfile: runtimeDefault}, nil, local, runtimeDefault},
		{"the member's, beside other words", &spec.MemberSecurityContext{SeccompProfile: unconfined}, &spec.SecurityContext{}, unconfined, unconfined},
		{"its own", nil, &spec.SecurityContext{SeccompProfile: unconfined, AppArmorProfile: local}, unconfined, local},
		{"its own in place of the member's", &spec.MemberSecurityContext{SeccompProfile: unconfined, AppArmorProfile: local},
			&spec.SecurityContext{SeccompProfile: runtimeDefault, AppArmorProfile: unconfined}, runtimeDefault, unconfined},
	} {
		var got runtime.Container
		secure(&got, c.member, c.own)
		if got.Seccomp != *c.seccomp || got.AppArmor != *c.appArmor {
			t.Errorf("%s: got %v and %v", c.name, got.Seccomp, got.AppArmor)
		}
	}
	strict, merge := "Strict", "Merge"
	for policy, want := range map[*string]bool{nil: false, &merge: false, &strict: true} {
		var got runtime.Container
		secure(&got, &spec.MemberSecurityContext{SupplementalGroupsPolicy: policy}, nil)
		if got.StrictGroups != want {
			t.Errorf("%v: got %v", policy, got.StrictGroups)
		}
	}
}
