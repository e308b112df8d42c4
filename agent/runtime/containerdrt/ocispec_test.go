package containerdrt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

func TestCommandAndArgsReplaceAsInKubernetes(t *testing.T) {
	img := ocispec.ImageConfig{Entrypoint: []string{"entry", "point"}, Cmd: []string{"cmd"}}
	for _, c := range []struct {
		command, args []string
		want          string
	}{
		{nil, nil, "entry point cmd"},
		{nil, []string{"a"}, "entry point a"},
		{[]string{"c"}, nil, "c"},
		{[]string{"c"}, []string{"a"}, "c a"},
	} {
		got := strings.Join(args(runtime.Container{Command: c.command, Args: c.args}, img), " ")
		if got != c.want {
			t.Errorf("command %v, args %v: %q, want %q", c.command, c.args, got, c.want)
		}
	}
	if strings.Join(img.Entrypoint, " ") != "entry point" {
		t.Error("the image's entrypoint was changed")
	}
}

func TestEnvironmentOfTheContainerWins(t *testing.T) {
	got := environment(
		runtime.Container{Hostname: "db-0", Env: []string{"A=mine", "C=3", "C=4"}},
		ocispec.ImageConfig{Env: []string{"PATH=/bin", "A=image", "B=2"}})
	want := []string{"PATH=/bin", "HOSTNAME=db-0", "A=mine", "B=2", "C=4"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMountsKeepWhatTheHostForbids(t *testing.T) {
	for _, c := range []struct {
		name     string
		readOnly bool
		source   int64
		want     string
		trusted  bool
	}{
		{"a volume", false, 0, "rbind rprivate rw nosuid nodev", false},
		{"a volume that is only read", true, 0, "rbind rprivate ro nosuid nodev", false},
		{"a disk without programs", false, unix.ST_NOEXEC | unix.ST_RELATIME, "rbind rprivate rw nosuid nodev noexec", false},
		{"a disk that is mounted read-only", false, unix.ST_RDONLY, "rbind rprivate ro nosuid nodev", false},
		{"a ConfigMap with a script, in Debian's /run", true, unix.ST_NOEXEC | unix.ST_NOSUID, "rbind rprivate ro nosuid nodev", false},
		{"the host's own for a privileged container", false, 0, "rbind rprivate rw", true},
		{"the host's own, as the host mounts it", false, unix.ST_NOSUID | unix.ST_NODEV, "rbind rprivate rw nosuid nodev", true},
	} {
		if got := strings.Join(bindOptions(c.readOnly, c.trusted, c.source), " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestMountsReplaceDefaultsAndNestInOrder(t *testing.T) {
	dir := t.TempDir()
	var fsys unix.Statfs_t
	if err := unix.Statfs(dir, &fsys); err != nil {
		t.Fatal(err)
	}
	if fsys.Flags&(unix.ST_NOEXEC|unix.ST_RDONLY) != 0 {
		t.Skipf("%s is mounted with noexec or read-only, which is kept", dir)
	}
	s := &oci.Spec{Mounts: []specs.Mount{
		{Destination: "/proc"}, {Destination: "/dev"}, {Destination: "/dev/shm", Source: "shm"}, {Destination: "/run"},
	}}
	c := runtime.Container{Mounts: []runtime.Mount{
		{Source: dir, Target: "/data/deep"}, {Source: dir, Target: "/data/", ReadOnly: true}, {Source: dir, Target: "/dev/shm"},
		{Target: "/data/own", MemoryBytes: 4096, MemoryFiles: 3},
	}}
	if err := (&lifecycle{}).mounts(s, c); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range s.Mounts {
		got = append(got, fmt.Sprint(m.Destination, " ", m.Type, " ", m.Options))
	}
	want := []string{
		"/proc  []", "/dev  []", "/data bind [rbind rprivate ro nosuid nodev]", "/data/deep bind [rbind rprivate rw nosuid nodev]",
		"/dev/shm bind [rbind rprivate rw nosuid nodev]", "/data/own tmpfs [nosuid nodev noexec mode=0777 size=4096 nr_inodes=4]", "/sys/fs/cgroup cgroup [ro nosuid noexec nodev relatime]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := (&lifecycle{}).mounts(s, runtime.Container{Mounts: []runtime.Mount{{Source: dir, Target: "data"}}}); !errors.Is(err, runtime.ErrBadSpec) {
		t.Errorf("a relative target: %v, want a bad spec", err)
	}
	if err := (&lifecycle{}).mounts(s, runtime.Container{Mounts: []runtime.Mount{{Source: dir + "/none", Target: "/x"}}}); err == nil {
		t.Error("a source that is not there was taken")
	}
}

func TestCommandIsLookedUpInTheImage(t *testing.T) {
	root := t.TempDir()
	for name, mode := range map[string]os.FileMode{"usr/bin/sh": 0o755, "usr/bin/plain": 0o644} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"bin": "usr/bin", "abs": "/usr/bin", "out": "../../../../../../bin"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	c := runtime.Container{Image: "box:1", Mounts: []runtime.Mount{{Target: "/scripts"}}}
	for _, k := range []struct {
		command, path, cwd, want string
	}{
		{"sh", "PATH=/sbin:/usr/bin", "/", ""},
		{"/bin/sh", "", "/", ""},
		{"/abs/sh", "", "/", ""},
		{"/out/sh", "", "/", ""}, // .. stays below the root, where bin is a link
		{"bin/sh", "", "/", ""},
		{"./sh", "", "/usr/bin", ""},
		{"/scripts/run", "", "/", ""}, // of a volume: runc will see
		{"run", "PATH=/usr/bin:/scripts", "/", ""},
		{"sh", "PATH=/sbin", "/", `command "sh" not found in image box:1`},
		{"/bin/none", "", "/", `command "/bin/none" not found in image box:1`},
		{"plain", "PATH=/bin", "/", `command "plain" in image box:1 is not executable`},
		{"/usr", "", "/", `command "/usr" in image box:1 is a directory`},
		{"/scriptsx", "", "/", `command "/scriptsx" not found in image box:1`},
	} {
		s := &oci.Spec{Process: &specs.Process{Args: []string{k.command}, Env: []string{k.path}, Cwd: k.cwd}}
		err := checkCommand(s, c, root)
		switch {
		case k.want == "" && err != nil:
			t.Errorf("%s with %s in %s: %v", k.command, k.path, k.cwd, err)
		case k.want != "" && (!errors.Is(err, runtime.ErrBadSpec) || !strings.HasPrefix(err.Error(), k.want)):
			t.Errorf("%s with %s in %s: %v, want %s", k.command, k.path, k.cwd, err, k.want)
		}
	}
}

func TestImageNamesAreWrittenInFull(t *testing.T) {
	for ref, want := range map[string]string{
		"box":                     "docker.io/library/box:latest",
		"box:1":                   "docker.io/library/box:1",
		"team/box":                "docker.io/team/box:latest",
		"localhost/box":           "localhost/box:latest",
		"reg.example:5000/box":    "reg.example:5000/box:latest",
		"reg.example/a/b:2":       "reg.example/a/b:2",
		"box@sha256:" + sixtyFour: "docker.io/library/box@sha256:" + sixtyFour,
		"":                        "", "bad name": "",
	} {
		got, err := fullName(ref)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", ref, got, err, want)
		}
	}
}

var sixtyFour = strings.Repeat("0123456789abcdef", 4)

func TestContainerIDsAreValidAndApart(t *testing.T) {
	long := spec.SetName(strings.Repeat("s", 60))
	seen := map[string]runtime.ContainerID{}
	for _, id := range []runtime.ContainerID{
		{ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}, Name: "main"},
		{ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: 10}, Name: "main"},
		{ID: spec.Identity{Namespace: "default", Set: "a--b", Ordinal: 0}, Name: "main"},
		{ID: spec.Identity{Namespace: "default", Set: long, Ordinal: 0}, Name: "main"},
		{ID: spec.Identity{Namespace: "default", Set: long, Ordinal: 1}, Name: "main"},
	} {
		got := containerID(id)
		if len(got) > maxID || !validID.MatchString(got) {
			t.Errorf("%+v: %q is no id", id, got)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%+v and %+v share %q", id, other, got)
		}
		seen[got] = id
	}
	if _, ok := seen["default.db-0.main"]; !ok {
		t.Errorf("a short id is not readable: %v", seen)
	}
}

func TestLabelsTellTheContainerBack(t *testing.T) {
	c := runtime.Container{
		ID: runtime.ContainerID{ID: spec.Identity{Namespace: "ns", Set: "db", Ordinal: 3}, Name: "main"}, Token: spec.Token{Epoch: 2, Number: 9}, Attempt: 4,
		Labels: map[string]string{"mine": "1"}, Log: runtime.Log{Dir: "/logs"},
	}
	labels, err := (&lifecycle{}).labels(c)
	if err != nil {
		t.Fatal(err)
	}
	s, ours, err := parseLabels(labels)
	if err != nil || !ours || s.ID != c.ID || s.Token != c.Token || s.Attempt != 4 || len(s.Labels) != 1 || s.Labels["mine"] != "1" {
		t.Errorf("got %+v, %v, %v", s, ours, err)
	}
	if _, ours, _ := parseLabels(map[string]string{"mine": "1"}); ours {
		t.Error("a foreign container was taken for ours")
	}
	labels[labelToken] = "x"
	if _, _, err := parseLabels(labels); err == nil {
		t.Error("damaged labels were taken")
	}
	c.Log.Dir = "relative"
	if _, err := (&lifecycle{}).labels(c); err == nil {
		t.Error("a log directory that the logger refuses was taken")
	}
}

func TestErrorsAreInTheContractsWords(t *testing.T) {
	r := newRuntime(&daemon{cfg: Config{Namespace: "stead"}})
	for _, c := range []struct {
		in, want error
	}{
		{errdefs.ErrNotFound, runtime.ErrNotFound},
		{fmt.Errorf("x: %w", errdefs.ErrAlreadyExists), runtime.ErrExists},
		{errdefs.ErrUnavailable, runtime.ErrUnavailable},
		{errors.New("ttrpc: closed: unknown"), runtime.ErrUnavailable},
		{context.DeadlineExceeded, runtime.ErrUnavailable}, // our bound, not the caller's
		{runtime.ErrBadSpec, runtime.ErrBadSpec},
	} {
		ctx, done := r.begin(t.Context(), lookTime)
		if err := r.translate(ctx, "act", c.in); !errors.Is(err, c.want) {
			t.Errorf("%v became %v, want kind %v", c.in, err, c.want)
		}
		done()
	}
	parent, cancel := context.WithCancel(t.Context())
	cancel()
	ctx, done := r.begin(parent, lookTime)
	defer done()
	if err := r.translate(ctx, "act", errdefs.ErrUnavailable); !errors.Is(err, context.Canceled) || errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("after the caller's context ended: %v, want its error", err)
	}
	ctx, done = r.begin(unfired{t.Context()}, lookTime)
	defer done()
	if err := r.translate(ctx, "act", errors.New("context deadline exceeded: unknown")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the caller's time: %v, want its error", err)
	}
}

// unfired is a context whose time is over and whose timer has not fired.
type unfired struct{ context.Context }

func (unfired) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

func TestBadSpecIsOnlyWhatTheOCIRuntimeSays(t *testing.T) {
	for _, bad := range []string{
		`OCI runtime create failed: exec: "x": executable file not found in $PATH: unknown`,
		"OCI runtime exec failed: executable file `/no/such` not found in $PATH: No such file or directory: unknown", // crun
		"OCI runtime exec failed: open executable: Operation not permitted: unknown",                                 // crun, of a directory
	} {
		if !errors.Is(badSpec(errors.New(bad)), runtime.ErrBadSpec) {
			t.Errorf("no bad spec: %s", bad)
		}
	}
	mount := errors.New(`OCI runtime create failed: error mounting "/x" to rootfs: no such file or directory: unknown`)
	for _, other := range []error{nil, mount, errors.New("open /x: no such file or directory"), errdefs.ErrUnavailable} {
		if errors.Is(badSpec(other), runtime.ErrBadSpec) {
			t.Errorf("%v became a bad spec", other)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Namespace: "stead-1234abcd-n0", CgroupParent: "/stead-1234abcd-n0", RunDir: "/run/stead", Logger: "/opt/stead-node"}
	for name, change := range map[string]func(*Config){
		"no namespace":      func(c *Config) { c.Namespace = "" },
		"a bad namespace":   func(c *Config) { c.Namespace = "a/b" },
		"the root cgroup":   func(c *Config) { c.CgroupParent = "/" },
		"a relative cgroup": func(c *Config) { c.CgroupParent = "stead" },
		"no run directory":  func(c *Config) { c.RunDir = "" },
		"no logger":         func(c *Config) { c.Logger = "stead-node" },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if err := good.Check(); err != nil || good.Address == "" || good.HostsDir == "" || good.CgroupRoot == "" {
		t.Errorf("%+v, %v; want defaults", good, err)
	}
}

// Each program has a state of its own, and those that take old specs alone are given such.
func TestAnotherProgramThanRuncMakesContainers(t *testing.T) {
	for _, c := range []struct{ program, binary, root, version string }{
		{"", "", "/run/x/runc", "1.2.1"},
		{"/usr/bin/crun", "/usr/bin/crun", "/run/x/crun", specVersion},
	} {
		d := &daemon{cfg: Config{RunDir: "/run/x", OCIRuntime: c.program}}
		s := &oci.Spec{Version: "1.2.1"}
		d.setVersion(s)
		if o := d.runtimeOptions(); o.BinaryName != c.binary || o.Root != c.root || s.Version != c.version {
			t.Errorf("%q: %q, %q, spec %s; want %+v", c.program, o.BinaryName, o.Root, s.Version, c)
		}
	}
}
