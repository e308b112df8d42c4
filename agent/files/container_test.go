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
	uid, gid, own, yes := int64(999), int64(998), int64(5), true
	l.Template.Spec.SecurityContext = &spec.MemberSecurityContext{RunAsUser: &uid, FSGroup: &gid, SupplementalGroups: []int64{7}, RunAsNonRoot: &yes}
	l.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "conf", ConfigMap: &spec.ConfigMapVolume{Name: "etc"}}, {Name: "tmp", EmptyDir: &spec.EmptyDir{}}}
	c := &l.Template.Spec.Containers[0]
	c.Command, c.Args, c.WorkingDir = []string{"/run.sh", "$(STEAD_ORDINAL)"}, []string{"$(X)"}, "/data"
	c.Env = []spec.EnvVar{{Name: "X", Value: "y"}}
	c.VolumeMounts = []spec.VolumeMount{
		{Name: "data", MountPath: "/data/", SubPath: "db"}, {Name: "conf", MountPath: "/conf"},
		{Name: "conf", MountPath: "/etc/hosts", SubPath: "hosts"}, {Name: "tmp", MountPath: "/tmp", ReadOnly: true},
	}
	c.SecurityContext = &spec.SecurityContext{RunAsUser: &own, ReadOnlyRootFilesystem: &yes, Capabilities: &spec.Capabilities{Drop: []string{"ALL"}, Add: []string{"CHOWN"}}}
	c.Resources = spec.ResourceRequirements{Limits: map[string]scalar.Quantity{"cpu": {Milli: 1500}, "memory": {Milli: 1 << 20 * 1000}}}
	p := At("/run/a", l.Member.ID)
	got, err := Build(l, c, host, book(), Parts{Attempt: 2, Place: p, Volumes: map[string]string{"data": "/v/data", "tmp": "/s/tmp"}, SubPaths: map[int]string{0: "/run/sub"}, Log: runtime.Log{Dir: "/l"}})
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
			{Source: "/run/a/members/prod/db-2", Target: "/run/stead", ReadOnly: true},
			{Source: "/s/tmp", Target: "/tmp", ReadOnly: true},
		},
		User: &own, NonRoot: true, SupplementalGroups: []int64{7, 998}, ReadOnlyRoot: true,
		AddCapabilities: []string{"CHOWN"}, DropCapabilities: []string{"ALL"},
		CPUMillis: 1500, CPURequestMillis: 1500, MemoryBytes: 1 << 20, Log: runtime.Log{Dir: "/l"},
	})
}
