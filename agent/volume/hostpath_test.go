package volume

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// hostDir is an empty directory whose path has no link.
func hostDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// As in Kubernetes with containerd: what each type wants, and makes.
func TestTypesOfPathsOfTheHost(t *testing.T) {
	dir := hostDir(t)
	write(t, filepath.Join(dir, "file"))
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, c := range []struct {
		path, kind string
		want       string // a word of the refusal; "": it is there afterwards
		dir        bool
	}{
		{"file", "", "", false},
		{"dir", "", "", true},
		{"new/deep", "", "", true},
		{"dir", hostDirectory, "", true},
		{"file", hostDirectory, "not of type Directory", false},
		{"none", hostDirectory, "no such file", false},
		{"created/deep", hostDirectoryOrCreate, "", true},
		{"file", hostDirectoryOrCreate, "not of type", false},
		{"file", hostFile, "", false},
		{"dir", hostFile, "not of type File", false},
		{"none", hostFile, "no such file", false},
		{"made", hostFileOrCreate, "", false},
		{"none/made", hostFileOrCreate, "no such file", false},
		{"socket", hostSocket, "", false},
		{"file", hostSocket, "not of type Socket", false},
		{"file", hostCharDevice, "not of type CharDevice", false},
		{"file", hostBlockDevice, "not of type BlockDevice", false},
	} {
		path := filepath.Join(dir, c.path)
		f, err := openHostPath(runtime.HostPath{Path: path, Type: c.kind})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s as %q: got %v, want %q", c.path, c.kind, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s as %q: %v", c.path, c.kind, err)
			continue
		}
		f.Close()
		if st, err := os.Stat(path); err != nil || st.IsDir() != c.dir {
			t.Errorf("%s as %q: %v, %v", c.path, c.kind, st, err)
		}
	}
	if f, err := openHostPath(runtime.HostPath{Path: "/dev/null", Type: hostCharDevice}); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	if _, err := os.Lstat(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was refused was made: %v", err)
	}
}

// TestAPathOfTheHostIsOpenedWithoutLinks: a member that may write in one directory must not choose
// what another mounts.
func TestAPathOfTheHostIsOpenedWithoutLinks(t *testing.T) {
	dir, outside := hostDir(t), hostDir(t)
	for link, to := range map[string]string{"out": outside, "up": "..", "proc": "/proc/self/cwd"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"out", "out/new", "up", "proc"} {
		for _, kind := range []string{"", hostDirectoryOrCreate, hostDirectory} {
			f, err := openHostPath(runtime.HostPath{Path: filepath.Join(dir, path), Type: kind})
			if err == nil {
				f.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "symbolic link") {
				t.Errorf("%s as %q: %v", path, kind, err)
			}
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("made behind a link: %v, %v", left, err)
	}
}

// The rule alone is asked: as root, a test that is let through would mount the host.
func TestWhatSteadKeepsIsNotMounted(t *testing.T) {
	v := begin(t)
	for _, path := range []string{
		"/", "/var", "/var/lib/stead", "/var/lib/stead/agent/ledger", "/run/stead", "/run/containerd/containerd.sock",
		filepath.Dir(v.scratch), filepath.Join(v.scratch, "x"), v.memory, v.classes[spec.LocalClass], "relative", "/srv/../run/stead",
	} {
		if err := v.mayShow(path); err == nil || path != "relative" && !strings.Contains(err.Error(), "which Stead keeps") {
			t.Errorf("%s: %v", path, err)
		}
	}
	gone := filepath.Join(v.scratch, "not-there")
	if at, err := v.HostPath(t.Context(), runtime.HostPath{ID: db0, Name: "v", Path: gone, Type: hostDirectory}); err == nil || !strings.Contains(err.Error(), "which Stead keeps") {
		t.Errorf("got %q, %v", at, err)
	}
	for _, path := range []string{"/srv", "/var/log", "/run/x", "/var/lib/steady"} {
		if err := v.mayShow(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
