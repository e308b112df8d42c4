package files

import (
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Kubernetes' rules: $(VAR) is a variable of the container, $$ is $, and a variable without a
// value, or a path that leaves the volume, keeps the container from being started.
func TestASubPathExprIsMadeOfTheContainersVariables(t *testing.T) {
	find := book(config("etc", 1, map[string]scalar.Bytes{"dir": scalar.Bytes("a/b"), "up": scalar.Bytes("x/.."), "abs": scalar.Bytes("/x")}))
	for _, c := range []struct{ expr, path, source, missing string }{
		{"$(POD)", "db-2", "/run/sub", ""},
		{"logs/$(POD)/$(dir)", "logs/db-2/a/b", "/run/sub", ""},
		{"$(STEAD_ORDINAL)$$(POD)", "2$(POD)", "/run/sub", ""},
		{"$(dir)/../c", "", "", `subPathExpr "$(dir)/../c" of the mount at /d becomes "a/b/../c", which is outside the volume`},
		{"$(up)", "", "", `subPathExpr "$(up)" of the mount at /d becomes "x/..", which is outside the volume`},
		{"$(abs)", "", "", `subPathExpr "$(abs)" of the mount at /d becomes "/x", which is outside the volume`},
		{"$(NO)/$(EMPTY)/$(NO)", "", "", `subPathExpr "$(NO)/$(EMPTY)/$(NO)" of the mount at /d: no value for NO, EMPTY`},
	} {
		l := life()
		l.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "conf", ConfigMap: &spec.ConfigMapVolume{Name: "etc"}}}
		x := &l.Template.Spec.Containers[0]
		x.EnvFrom = []spec.EnvFromSource{{ConfigMapRef: &spec.NameRef{Name: "etc"}}}
		x.Env = []spec.EnvVar{{Name: "POD", ValueFrom: &spec.EnvVarSource{FieldRef: &spec.FieldRef{FieldPath: "metadata.name"}}}, {Name: "EMPTY"}}
		x.VolumeMounts = []spec.VolumeMount{{Name: "data", MountPath: "/d", SubPathExpr: c.expr}, {Name: "conf", MountPath: "/c", SubPathExpr: "$(dir)"}}
		equal(t, c.expr+": missing", MissingEnv(l, host, find, func(string) bool { return true }), c.missing)
		mounted, err := SubPaths(l, x, host, find, map[string]string{"data": "/v/data"})
		_, err2 := Build(l, x, host, find, Parts{})
		if c.missing != "" {
			equal(t, c.expr+": errors", []string{missingText(err), missingText(err2)}, []string{c.missing, c.missing})
			continue
		}
		must(t, err)
		equal(t, c.expr, mounted, []runtime.SubPath{{ID: l.Member.ID, Container: "db", Index: 0, Volume: "data", Dir: "/v/data", Path: c.path}})
		got, err := Build(l, x, host, find, Parts{Volumes: map[string]string{"data": "/v/data"}, SubPaths: map[int]string{0: "/run/sub"}})
		must(t, err)
		for _, m := range got.Mounts {
			if want := map[string]string{"/d": c.source, "/c": "conf/..data/a/b"}[m.Target]; want != "" && m.Source != want {
				t.Errorf("%s: got %+v, want %s", c.expr, m, want)
			}
		}
	}
}
