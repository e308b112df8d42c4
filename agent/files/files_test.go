package files

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

var host = Node{Name: "n1", HostIP: "192.0.2.1", Gateway: "169.254.1.1"}

func life() *records.Life {
	return &records.Life{
		Member: records.Member{
			ID: spec.Identity{Namespace: "prod", Set: "db", Ordinal: 2}, SetUID: "u1",
			Token: spec.Token{Epoch: 1, Number: 42}, Revision: "r1", Node: "n1",
			Reason: records.ReasonCreate, Address: netip.MustParseAddr("10.88.0.7"),
		},
		Service: "db-svc", Domain: "cluster.local",
		FreshVolumes: map[spec.ClaimName]string{"wal": records.VolumeReplaced, "data": records.VolumeFirst},
		Template: spec.Template{
			Metadata: spec.ObjectMeta{Labels: map[string]string{"app": "db"}, Annotations: map[string]string{"note": "hi"}},
			Spec:     spec.MemberSpec{Containers: []spec.Container{{Name: "db", Image: "img:1"}}},
		},
	}
}

func book(files ...records.Files) Lookup {
	b := &Cache{}
	b.Put(true, files)
	return b.Find
}

func config(name string, rev int64, content map[string]scalar.Bytes) records.Files {
	return records.Files{Kind: KindConfigMap, Namespace: "prod", Name: name, Sequence: spec.Sequence{Epoch: 1, Rev: rev}, Content: content}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %#v\nwant %#v", what, got, want)
	}
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	must(t, err)
	return string(b)
}

func TestMemberFilesSayWhoTheMemberIs(t *testing.T) {
	p := At(t.TempDir(), life().Member.ID)
	must(t, WriteMember(p, life(), host))
	must(t, WriteVolumeNew(p, VolumeNew(life())))
	equal(t, "member.json", read(t, p.Stead, MemberFile), `{"name":"db-2","namespace":"prod","set":"db","ordinal":2,`+
		`"uid":"`+UID(life())+`","token":"1.42","fqdn":"db-2.db-svc.prod.svc.cluster.local","address":"10.88.0.7",`+
		`"node":"n1","service":"db-svc","domain":"cluster.local","revision":"r1","reason":"Create",`+
		`"labels":{"app":"db","apps.kubernetes.io/pod-index":"2","controller-revision-hash":"db-r1","statefulset.kubernetes.io/pod-name":"db-2"}}`+"\n")
	equal(t, "volume-new", read(t, p.Stead, VolumeNewFile), "data first\nwal replaced\n")
	equal(t, "hostname", read(t, p.Etc, "hostname"), "db-2\n")
	equal(t, "resolv.conf", read(t, p.Etc, "resolv.conf"),
		"nameserver 169.254.1.1\nsearch prod.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n")
	equal(t, "hosts", read(t, p.Etc, "hosts"), "# written by Stead\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"+
		"10.88.0.7\tdb-2.db-svc.prod.svc.cluster.local\tdb-2\n")

	l := life()
	l.FreshVolumes = nil
	must(t, WriteVolumeNew(p, VolumeNew(l)))
	if _, err := os.Stat(filepath.Join(p.Stead, VolumeNewFile)); !os.IsNotExist(err) {
		t.Errorf("volume-new without new volumes: got %v, want it absent", err)
	}
	if _, err := os.Stat(filepath.Join(p.Stead, ForgottenFile)); !os.IsNotExist(err) {
		t.Errorf("forgotten of a member that nobody forgot: got %v, want it absent", err)
	}
	l.Forgotten = spec.Token{Epoch: 1, Number: 40}
	must(t, WriteMember(p, l, host))
	equal(t, "forgotten", read(t, p.Stead, ForgottenFile), "1.40\n")
	must(t, WriteMember(p, life(), host))
	if _, err := os.Stat(filepath.Join(p.Stead, ForgottenFile)); !os.IsNotExist(err) {
		t.Errorf("forgotten after a later life was ready: got %v, want it absent", err)
	}
	must(t, WriteTermination(p, records.ReasonScaleDown))
	equal(t, "termination-reason", read(t, p.Stead, TerminationFile), "ScaleDown\n")
}

func TestUIDDiffersFromLifeToLife(t *testing.T) {
	other := life()
	other.Member.Token.Number++
	if UID(life()) == UID(other) {
		t.Errorf("got %s and %s", UID(life()), UID(other))
	}
}

func TestEnv(t *testing.T) {
	find := book(
		config("etc", 1, map[string]scalar.Bytes{"a": scalar.Bytes("1"), "b": scalar.Bytes("2"), "no=name": scalar.Bytes("x")}),
		records.Files{Kind: KindSecret, Namespace: "prod", Name: "key", Content: map[string]scalar.Bytes{"pw": scalar.Bytes("geheim")}},
		records.Files{Kind: KindConfigMap, Namespace: "prod", Name: "gone", Absent: true})
	field := func(path string) *spec.EnvVarSource {
		return &spec.EnvVarSource{FieldRef: &spec.FieldRef{FieldPath: path}}
	}
	c := &spec.Container{
		EnvFrom: []spec.EnvFromSource{
			{Prefix: "P_", ConfigMapRef: &spec.NameRef{Name: "etc"}},
			{ConfigMapRef: &spec.NameRef{Name: "gone", Optional: true}},
		},
		Env: []spec.EnvVar{
			{Name: "HOST", Value: "$(STEAD_MEMBER).$(P_a).$(LATER).$$(P_b)"},
			{Name: "LATER", Value: "x"},
			{Name: "P_b", Value: "3"},
			{Name: "PW", ValueFrom: &spec.EnvVarSource{SecretKeyRef: &spec.KeyRef{Name: "key", Key: "pw"}}},
			{Name: "NONE", ValueFrom: &spec.EnvVarSource{ConfigMapKeyRef: &spec.KeyRef{Name: "etc", Key: "zz", Optional: true}}},
			{Name: "NAME", ValueFrom: field("metadata.name")},
			{Name: "LABEL", ValueFrom: field("metadata.labels['app']")},
			{Name: "NOTE", ValueFrom: field("metadata.annotations['note']")},
			{Name: "IP", ValueFrom: field("status.podIP")},
			{Name: "HOSTIP", ValueFrom: field("status.hostIP")},
			{Name: "UID", ValueFrom: field("metadata.uid")},
			{Name: "ACCOUNT", ValueFrom: field("spec.serviceAccountName")},
		},
	}
	got, err := Env(life(), c, host, find)
	must(t, err)
	want := []string{
		"STEAD_MEMBER=db-2", "STEAD_SET=db", "STEAD_NAMESPACE=prod", "STEAD_ORDINAL=2",
		"STEAD_FQDN=db-2.db-svc.prod.svc.cluster.local", "STEAD_SERVICE=db-svc",
		"STEAD_SET_DOMAIN=db-svc.prod.svc.cluster.local", "STEAD_CLUSTER_DOMAIN=cluster.local",
		"STEAD_ADDRESS=10.88.0.7", "STEAD_NODE=n1", "STEAD_REVISION=r1",
		"P_a=1", "P_b=3", "HOST=db-2.1.$(LATER).$(P_b)", "LATER=x", "PW=geheim",
		"NAME=db-2", "LABEL=db", "NOTE=hi", "IP=10.88.0.7", "HOSTIP=192.0.2.1", "UID=" + UID(life()), "ACCOUNT=",
	}
	equal(t, "env", got, want)
}

func TestMissingNamesWhatIsMissing(t *testing.T) {
	find := book(config("etc", 1, map[string]scalar.Bytes{"a": nil}), records.Files{Kind: KindSecret, Namespace: "prod", Name: "gone", Absent: true})
	from := func(kind, name, key string, optional bool) []spec.EnvVar {
		ref, src := &spec.KeyRef{Name: name, Key: key, Optional: optional}, &spec.EnvVarSource{}
		src.ConfigMapKeyRef = ref
		if kind == KindSecret {
			src.ConfigMapKeyRef, src.SecretKeyRef = nil, ref
		}
		return []spec.EnvVar{{Name: "X", ValueFrom: src}}
	}
	cases := []struct {
		name string
		env  []spec.EnvVar
		want string
	}{
		{"nothing", from(KindConfigMap, "etc", "a", false), ""},
		{"a key", from(KindConfigMap, "etc", "b", false), `variable X: ConfigMap "etc" has no key "b"`},
		{"an optional key", from(KindConfigMap, "etc", "b", true), ""},
		{"an object", from(KindSecret, "gone", "b", false), `variable X: Secret "gone" does not exist in namespace prod; apply it`},
		{"an optional object", from(KindSecret, "gone", "b", true), ""},
		{"an object never told of, also when optional", from(KindSecret, "new", "b", true), `variable X: Secret "new" has not been received from the server yet`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := life()
			l.Template.Spec.Containers[0].Env = c.env
			if got := MissingEnv(l, host, find, func(string) bool { return true }); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	l := life()
	l.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "v", ConfigMap: &spec.ConfigMapVolume{Name: "etc", Items: []spec.KeyToPath{{Key: "zz", Path: "p"}}}}}
	equal(t, "a volume's key", MissingMedia(l, find), `volume v: ConfigMap "etc" has no key "zz"`)
}

func TestTheCacheNeverGoesBack(t *testing.T) {
	b := &Cache{}
	b.Put(true, []records.Files{config("a", 5, map[string]scalar.Bytes{"k": scalar.Bytes("new")}), config("b", 5, nil)})
	b.Put(false, []records.Files{config("a", 4, map[string]scalar.Bytes{"k": scalar.Bytes("old")})})
	b.Put(true, []records.Files{config("a", 4, nil)})
	if f, _ := b.Find(KindConfigMap, "prod", "a"); string(f.Content["k"]) != "new" {
		t.Errorf("got %q, want the newer content", f.Content["k"])
	}
	if _, ok := b.Find(KindConfigMap, "prod", "b"); ok {
		t.Error("an object that a full list does not name is still known")
	}
}

func TestMediaIsSwappedAsAWhole(t *testing.T) {
	dir, gid := filepath.Join(t.TempDir(), "v"), int64(os.Getgid())
	one := Media{Name: "v", Files: map[string]MediaFile{"run.sh": {scalar.Bytes("#!/bin/sh"), 0o750}, "conf/a": {scalar.Bytes("a"), 0o600}}}
	must(t, WriteMedia(dir, one, &gid))
	equal(t, "run.sh", read(t, dir, "run.sh"), "#!/bin/sh")
	equal(t, "conf/a", read(t, dir, "conf/a"), "a")
	link, err := os.Readlink(filepath.Join(dir, "run.sh"))
	must(t, err)
	equal(t, "link", link, "..data/run.sh")
	for name, want := range map[string]os.FileMode{"run.sh": 0o750, "conf/a": 0o640} {
		at, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		equal(t, name+" mode", at.Mode().Perm(), want)
	}
	before, err := os.Readlink(filepath.Join(dir, "..data"))
	must(t, err)
	must(t, WriteMedia(dir, one, &gid))
	// A crash in the middle of the next version leaves pieces behind.
	must(t, os.MkdirAll(filepath.Join(dir, "..new", "junk"), 0o755))
	same := Media{Name: "v", Files: map[string]MediaFile{"run.sh": one.Files["run.sh"], "conf/a": {scalar.Bytes("b"), 0o600}}}
	must(t, WriteMedia(dir, same, &gid))
	equal(t, "conf/a, of which only the content changed", read(t, dir, "conf/a"), "b")
	two := Media{Name: "v", Files: map[string]MediaFile{"run.sh": {scalar.Bytes("two"), 0o644}}}
	must(t, WriteMedia(dir, two, &gid))
	equal(t, "run.sh", read(t, dir, "run.sh"), "two")
	after, err := os.Readlink(filepath.Join(dir, "..data"))
	must(t, err)
	var names []string
	found, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range found {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	want := []string{after, "..data", "run.sh"}
	slices.Sort(want)
	equal(t, "what is left", names, want)
	if before == after {
		t.Errorf("both versions are %s", before)
	}
}

func TestWhatMembersWriteInIsMountedWhereTheHostResolvedIt(t *testing.T) {
	l, group := life(), int64(7)
	l.Template.Spec.SecurityContext = &spec.MemberSecurityContext{FSGroup: &group}
	l.Template.Spec.Volumes = []spec.VolumeMedia{{Name: "conf", ConfigMap: &spec.ConfigMapVolume{Name: "etc"}}, {Name: "tmp", EmptyDir: &spec.EmptyDir{}}}
	c := &l.Template.Spec.Containers[0]
	c.VolumeMounts = []spec.VolumeMount{
		{Name: "data", MountPath: "/all"}, {Name: "data", MountPath: "/a", SubPath: "a//b/"},
		{Name: "conf", MountPath: "/c", SubPath: "c"}, {Name: "tmp", MountPath: "/t", SubPath: "t"},
	}
	volumes := map[string]string{"data": "/v/data", "tmp": "/s/tmp"}
	mounted, err := SubPaths(l, c, host, book(), volumes)
	must(t, err)
	equal(t, "sub-paths", mounted, []runtime.SubPath{
		{ID: l.Member.ID, Container: "db", Index: 1, Volume: "data", Dir: "/v/data", Path: "a/b", FSGroup: &group},
		{ID: l.Member.ID, Container: "db", Index: 3, Volume: "tmp", Dir: "/s/tmp", Path: "t", FSGroup: &group},
	})
	got, err := Build(l, c, host, book(), Parts{Volumes: volumes, SubPaths: map[int]string{1: "/run/1", 3: "/run/3"}})
	must(t, err)
	var sources []string
	for _, m := range got.Mounts {
		if strings.HasPrefix(m.Source, "/v") || strings.HasPrefix(m.Source, "/s") || strings.HasPrefix(m.Source, "/run/") {
			sources = append(sources, m.Target+" "+m.Source)
		}
	}
	equal(t, "sources", sources, []string{"/a /run/1", "/all /v/data", "/t /run/3"})
}
