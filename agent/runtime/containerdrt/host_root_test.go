package containerdrt_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/containerdrt"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
)

const imageName = "stead.test/box:1"

// newNode is a new host and its runtime.
func newNode(t testing.TB) (*host, *containerdrt.Runtime) {
	h := newHost(t)
	rt := h.open()
	t.Cleanup(func() { rt.Close() })
	return h, rt
}

// newLoadedNode has the image, too.
func newLoadedNode(t testing.TB) (*host, *containerdrt.Runtime) {
	h, rt := newNode(t)
	h.load(rt, imageName, runtimetest.ImageConfig{})
	return h, rt
}

// newRunning is a node on which a container runs.
func newRunning(t testing.TB) (*host, *containerdrt.Runtime, runtime.Container) {
	h, rt := newLoadedNode(t)
	c := h.container("run")
	h.start(rt, c)
	return h, rt, c
}

// host is a containerd of the test's own, with one node's runtime on it.
type host struct {
	t   testing.TB
	dir string
	cfg containerdrt.Config
	cmd *exec.Cmd
	box []byte
}

// newHost starts a daemon below a temporary directory. At the end everything is
// purged, the daemon ended, and it is an error if anything is left.
func newHost(t testing.TB) *host {
	t.Helper()
	if os.Getenv("STEAD_ROOT_TESTS") != "1" || os.Getuid() != 0 {
		t.Skip("needs root, containerd and runc; set STEAD_ROOT_TESTS=1")
	}
	if _, err := exec.LookPath("containerd"); err != nil {
		t.Skip("needs containerd")
	}
	// Short, because socket paths have a limit, and named so that leftovers show.
	dir, err := os.MkdirTemp("", "stead-rt-")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(dir)
	h := &host{t: t, dir: dir, box: runtimetest.BuildBox(t), cfg: containerdrt.Config{
		Address: filepath.Join(dir, "c.sock"), Namespace: name, CgroupParent: "/" + name,
		RunDir: filepath.Join(dir, "run"), Logger: buildLogger(t, dir),
	}}
	config := fmt.Sprintf("version = 2\nroot = %q\nstate = %q\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = %q\n",
		filepath.Join(dir, "root"), filepath.Join(dir, "state"), h.cfg.Address)
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	h.startDaemon()
	return h
}

func buildLogger(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "stead-node")
	runtimetest.Build(t, path, "cmd/stead-node")
	return path
}

func (h *host) startDaemon() {
	h.t.Helper()
	log, err := os.OpenFile(filepath.Join(h.dir, "containerd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	h.cmd = exec.Command("containerd", "--config", filepath.Join(h.dir, "config.toml"))
	h.cmd.Stdout, h.cmd.Stderr = log, log
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	rt := h.open()
	defer rt.Close()
	h.until("containerd answers", func() bool { return rt.Ping(h.t.Context()) == nil })
}

// killDaemon ends the daemon as a crash does.
func (h *host) killDaemon() {
	h.t.Helper()
	if err := h.cmd.Process.Kill(); err != nil {
		h.t.Fatal(err)
	}
	h.cmd.Wait()
}

func (h *host) open() *containerdrt.Runtime {
	h.t.Helper()
	rt, err := containerdrt.New(h.cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	return rt
}

func (h *host) until(what string, ok func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("not in time: %s", what)
		}
	}
}

// close purges, ends the daemon and proves that nothing is left.
func (h *host) close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.t.Context()), time.Minute)
	defer cancel()
	if h.cmd != nil {
		rt, err := containerdrt.New(h.cfg)
		if err == nil {
			err = rt.Purge(ctx)
			rt.Close()
		}
		if err != nil {
			h.t.Errorf("purge: %v", err)
		}
		h.cmd.Process.Signal(syscall.SIGTERM)
		h.cmd.Wait()
	}
	left := h.leftovers()
	for deadline := time.Now().Add(time.Minute); len(left) > 0 && time.Now().Before(deadline); left = h.leftovers() {
		time.Sleep(20 * time.Millisecond)
	}
	for _, left := range left {
		h.t.Errorf("left behind: %s", left)
	}
	h.sweep()
	if h.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(h.dir, "containerd.log"))
		h.t.Logf("containerd's log ends:\n%s", log[max(0, len(log)-4000):])
	}
	if err := os.RemoveAll(h.dir); err != nil {
		h.t.Errorf("clean up: %v", err)
	}
}

// leftovers are mounts, cgroups and processes that carry the host's name.
func (h *host) leftovers() []string {
	name := filepath.Base(h.dir)
	var left []string
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, name) {
			left = append(left, "mount "+strings.TrimSpace(line))
		}
	}
	filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && filepath.Base(path) == name {
			left = append(left, "cgroup "+path)
		}
		return nil
	})
	return append(left, h.processes()...)
}

func (h *host) processes() []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		line, _ := os.ReadFile(f)
		if bytes.Contains(line, []byte(filepath.Base(h.dir))) {
			out = append(out, "process "+f+": "+string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return out
}

// sweep ends what a failed test has left: processes and mounts of this host alone.
func (h *host) sweep() {
	for _, p := range h.processes() {
		var pid int
		if _, err := fmt.Sscanf(p, "process /proc/%d/", &pid); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], h.dir+"/") {
			syscall.Unmount(f[4], syscall.MNT_DETACH)
		}
	}
}

// load makes an image of the box present.
func (h *host) load(rt runtime.Runtime, name string, config runtimetest.ImageConfig) {
	h.t.Helper()
	archive := runtimetest.Archive(h.t, name, h.box, config)
	if _, err := rt.LoadImage(h.t.Context(), bytes.NewReader(archive)); err != nil {
		h.t.Fatalf("LoadImage: %v", err)
	}
}

func TestRuntimePromises(t *testing.T) {
	h, rt := newNode(t)
	keepsPromises(t, h, rt)
}

func TestRuntimePromisesWithCRun(t *testing.T) {
	crun := crunHere()
	if crun == "" {
		t.Skip("needs crun, and a host with cgroup v2 alone")
	}
	h := newHost(t)
	h.cfg.OCIRuntime = crun
	rt := h.open()
	t.Cleanup(func() { rt.Close() })
	keepsPromises(t, h, rt)
}

// crunHere is crun, where it can be used; "" elsewhere.
func crunHere() string {
	crun, err := exec.LookPath("crun")
	var st unix.Statfs_t
	if err != nil || unix.Statfs("/sys/fs/cgroup", &st) != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
		return ""
	}
	return crun
}

func keepsPromises(t *testing.T, h *host, rt *containerdrt.Runtime) {
	t.Helper()
	archive := runtimetest.Archive(t, imageName, h.box, runtimetest.ImageConfig{})
	runtimetest.Run(t, func(t *testing.T) runtimetest.Subject {
		return runtimetest.Subject{
			Runtime: rt,
			Again: func(t *testing.T) runtime.Runtime {
				again := h.open()
				t.Cleanup(func() { again.Close() })
				return again
			},
			Archive: func() io.Reader { return bytes.NewReader(archive) },
			Image:   imageName,
			LogDir:  filepath.Join(h.dir, "logs"),
		}
	})
}

// squat puts a process of the test's own into a cgroup below the host's parent.
func (h *host) squat(path string) {
	h.t.Helper()
	base := "/sys/fs/cgroup/pids"
	if _, err := os.Stat(base); err != nil {
		base = "/sys/fs/cgroup"
	}
	dir := filepath.Join(base, h.cfg.CgroupParent, path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() { defer close(reaped); cmd.Wait() }()
	h.t.Cleanup(func() { cmd.Process.Kill(); <-reaped })
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0o600); err != nil {
		h.t.Fatal(err)
	}
}
