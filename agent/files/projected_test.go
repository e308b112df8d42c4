package files

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// byPath is what a test expects of a volume: content and mode by path.
type byPath = map[string]MediaFile

func text(s string, mode uint32) MediaFile { return MediaFile{scalar.Bytes(s), mode} }

// Kubernetes' rules of the modes: that of the file, else that of the volume, else 0644.
func TestAProjectedVolumeHasTheFilesOfAllItsSources(t *testing.T) {
	l := life()
	l.Template.Spec.Containers[0].Resources.Limits = quantities(t, "memory", "64Mi")
	volume, file := int32(0o440), int32(0o400)
	name := &spec.FieldRef{FieldPath: "metadata.name"}
	sources := []spec.Projection{
		{Secret: &spec.ObjectProjection{Name: "tls", Items: []spec.KeyToPath{{Key: "crt", Path: "tls/crt"}, {Key: "key", Path: "tls/key", Mode: &file}}}},
		{ConfigMap: &spec.ObjectProjection{Name: "etc"}},
		{ConfigMap: &spec.ObjectProjection{Name: "gone", Optional: true}},
		{DownwardAPI: &spec.DownwardAPIProjection{Items: []spec.DownwardAPIFile{
			{Path: "b", FieldRef: name, Mode: &file},
			{Path: "mem", ResourceFieldRef: &spec.ResourceFieldRef{ContainerName: "db", Resource: "limits.memory", Divisor: quantity(t, "1Mi")}},
		}}},
	}
	l.Template.Spec.Volumes = []spec.VolumeMedia{
		{Name: "all", Projected: &spec.ProjectedVolume{Sources: sources, DefaultMode: &volume}},
		{Name: "plain", Projected: &spec.ProjectedVolume{Sources: sources[1:2]}},
		{Name: "empty", Projected: &spec.ProjectedVolume{}},
	}
	find := book(
		config("etc", 1, map[string]scalar.Bytes{"a": scalar.Bytes("1"), "b": scalar.Bytes("2")}),
		records.Files{Kind: KindConfigMap, Namespace: "prod", Name: "gone", Absent: true},
		records.Files{Kind: KindSecret, Namespace: "prod", Name: "tls", Content: map[string]scalar.Bytes{"crt": scalar.Bytes("c"), "key": scalar.Bytes("k"), "no": nil}})
	got, err := MediaOf(l, host, find)
	must(t, err)
	equal(t, "volumes", got, []Media{
		{Name: "all", Files: byPath{"tls/crt": text("c", 0o440), "tls/key": text("k", 0o400), "a": text("1", 0o440), "b": text("db-2", 0o400), "mem": text("64", 0o440)}},
		{Name: "plain", Files: byPath{"a": text("1", 0o644), "b": text("2", 0o644)}},
		{Name: "empty", Files: byPath{}},
	})
}

func TestADownwardVolumeShowsTheMember(t *testing.T) {
	l := life()
	l.Template.Metadata.Annotations["quoted"] = "a \"b\"\nc"
	field := func(path, field string) spec.DownwardAPIFile {
		return spec.DownwardAPIFile{Path: path, FieldRef: &spec.FieldRef{FieldPath: field}}
	}
	l.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "v", DownwardAPI: &spec.DownwardAPIVolume{Items: []spec.DownwardAPIFile{
		field("labels", "metadata.labels"), field("annotations", "metadata.annotations"), field("app", "metadata.labels['app']"),
		field("note", "metadata.annotations['note']"), field("none", "metadata.labels['none']"), field("ns", "metadata.namespace"), field("uid", "metadata.uid"),
	}}}}
	got, err := MediaOf(l, host, book())
	must(t, err)
	equal(t, "volumes", got, []Media{{Name: "v", Files: byPath{
		"labels": text("app=\"db\"\napps.kubernetes.io/pod-index=\"2\"\ncontroller-revision-hash=\"db-r1\"\n"+
			`statefulset.kubernetes.io/pod-name="db-2"`, 0o644),
		"annotations": text("note=\"hi\"\n"+`quoted="a \"b\"\nc"`, 0o644),
		"app":         text("db", 0o644), "note": text("hi", 0o644), "none": text("", 0o644), "ns": text("prod", 0o644), "uid": text(UID(l), 0o644),
	}}})
}

func TestAProjectedVolumeLacksWhatItsSourcesLack(t *testing.T) {
	l := life()
	gone := records.Files{Kind: KindSecret, Namespace: "prod", Name: "gone", Absent: true}
	for _, c := range []struct {
		name   string
		source spec.Projection
		want   string
	}{
		{"a Secret", spec.Projection{Secret: &spec.ObjectProjection{Name: "gone"}}, `volume v: Secret "gone" does not exist in namespace prod; apply it`},
		{"a key", spec.Projection{ConfigMap: &spec.ObjectProjection{Name: "etc", Items: []spec.KeyToPath{{Key: "x", Path: "x"}}}}, `volume v: ConfigMap "etc" has no key "x"`},
		{"an optional key", spec.Projection{ConfigMap: &spec.ObjectProjection{Name: "etc", Items: []spec.KeyToPath{{Key: "x", Path: "x"}}, Optional: true}}, ""},
		{"a directory that is a file", spec.Projection{ConfigMap: &spec.ObjectProjection{Name: "etc", Items: []spec.KeyToPath{{Key: "a", Path: "a/b"}}}},
			`volume v: "a" is a file, and "a/b" is to be below it; give one of them another path`},
	} {
		l.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "v", Projected: &spec.ProjectedVolume{Sources: []spec.Projection{{ConfigMap: &spec.ObjectProjection{Name: "etc"}}, c.source}}}}
		find := book(config("etc", 1, map[string]scalar.Bytes{"a": nil}), gone)
		equal(t, c.name, MissingMedia(l, find), c.want)
	}
}

func TestAProjectedVolumeIsMountedReadOnly(t *testing.T) {
	l := life()
	l.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "all", Projected: &spec.ProjectedVolume{}}, {Name: "facts", DownwardAPI: &spec.DownwardAPIVolume{}}}
	c := &l.Template.Spec.Containers[0]
	c.VolumeMounts = []spec.VolumeMount{{Name: "all", MountPath: "/all"}, {Name: "facts", MountPath: "/f", SubPath: "name"}}
	got, err := Build(l, c, host, book(), Parts{Place: At("/run/a", l.Member.ID)})
	must(t, err)
	for _, m := range got.Mounts {
		want := map[string]string{"/all": "/run/a/files/prod/db-2/all", "/f": "/run/a/files/prod/db-2/facts/..data/name"}[m.Target]
		if want != "" && (m.Source != want || !m.ReadOnly) {
			t.Errorf("%s: got %+v, want %s", m.Target, m, want)
		}
	}
}
