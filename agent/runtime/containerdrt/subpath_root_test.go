package containerdrt_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/containerdrt"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// attacked is a life with a claim that its containers mount whole, at /data, and in
// part, at /sub; and a directory of the host that no member may reach.
type attacked struct {
	*host
	rt      *containerdrt.Runtime
	volumes *volume.Volumes
	life    records.Life
	dir     string // of the volume
	secret  string
}

func newAttacked(t *testing.T) *attacked {
	h := newHost(t)
	a := &attacked{host: h, rt: h.open(), secret: filepath.Join(h.dir, "hostsecret")}
	t.Cleanup(func() { a.rt.Close() })
	h.load(a.rt, imageName, runtimetest.ImageConfig{})
	var err error
	a.volumes, err = volume.New(volume.Config{Root: filepath.Join(h.dir, "agent"), RunDir: h.cfg.RunDir, ClusterID: "c"})
	if err == nil {
		err = os.Mkdir(a.secret, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.dir, err = a.volumes.Ensure(t.Context(), db0, records.MemberVolume{Claim: "data", ID: "v1", Class: spec.LocalClass}, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(a.rt.KillAll(ctx, db0), a.volumes.RemoveScratch(ctx, db0)); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	mounts := []spec.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "data", MountPath: "/sub", SubPath: "sub"}}
	a.life.Member.ID, a.life.Member.Token = db0, token
	a.life.Template.Spec.Containers = []spec.Container{
		{Name: "main", Image: imageName, VolumeMounts: mounts}, {Name: "side", Image: imageName, VolumeMounts: mounts},
	}
	return a
}

// run creates a container and starts it, as an agent does at every restart in place.
func (a *attacked) run(which, attempt int, args ...string) (runtime.Container, error) {
	a.t.Helper()
	c := &a.life.Template.Spec.Containers[which]
	c.Command, c.Args = []string{"/box"}, args
	parts := files.Parts{Attempt: attempt, Volumes: map[string]string{"data": a.dir}, SubPaths: map[int]string{}}
	none := func(string, spec.Namespace, string) (records.Files, bool) { return records.Files{}, false }
	mounted, err := files.SubPaths(&a.life, c, files.Node{}, none, parts.Volumes)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, s := range mounted {
		path, err := a.volumes.SubPath(a.t.Context(), s)
		if err != nil {
			return runtime.Container{}, err
		}
		parts.SubPaths[s.Index] = path
	}
	desc, err := files.Build(&a.life, c, files.Node{}, none, parts)
	if err != nil {
		a.t.Fatal(err)
	}
	own := desc.Mounts[:0]
	for _, m := range desc.Mounts { // those of Stead's own files are not made here
		if m.Target == "/data" || m.Target == "/sub" {
			own = append(own, m)
		}
	}
	desc.Mounts, desc.Log = own, runtime.Log{Dir: filepath.Join(a.host.dir, "logs", c.Name), FileBytes: 1 << 20, Files: 3}
	if _, err := a.rt.EnsureSandbox(a.t.Context(), runtime.Sandbox{ID: db0, Token: token, Hostname: "db-0"}); err != nil {
		a.t.Fatal(err)
	}
	if err := a.rt.Create(a.t.Context(), desc); err != nil {
		a.t.Fatal(err)
	}
	return desc, a.rt.Start(a.t.Context(), desc.ID)
}

func (a *attacked) remove(c runtime.Container) {
	a.t.Helper()
	if err := a.rt.Remove(a.t.Context(), c.ID); err != nil {
		a.t.Fatal(err)
	}
}

// untouched fails the test if a member wrote into the host's directory.
func (a *attacked) untouched() {
	a.t.Helper()
	if found, err := os.ReadDir(a.secret); err != nil || len(found) > 0 {
		a.t.Fatalf("a member reached a directory of the host: it wrote %v, %v", found, err)
	}
}

func TestALinkPlantedBetweenTwoRunsIsNotMounted(t *testing.T) {
	a := newAttacked(t)
	c, err := a.run(0, 0, "plant", "/data/sub", a.secret)
	if err != nil {
		t.Fatal(err)
	}
	if e := a.wait(a.rt, c.ID); e.Code != 0 {
		t.Fatalf("its end: %+v\n%s", e, a.log(c))
	}
	if to, err := os.Readlink(filepath.Join(a.dir, "sub")); err != nil || to != a.secret {
		t.Fatalf("no link was planted: %q, %v", to, err)
	}
	a.remove(c)
	c, err = a.run(0, 1, "write", "/sub/by-the-member", "x")
	if err == nil {
		a.wait(a.rt, c.ID)
	} else if !strings.Contains(err.Error(), "a symbolic link in the volume leads out of it") {
		t.Errorf("its second run: %v", err)
	}
	a.untouched()
	if err == nil {
		t.Error("a sub-path that leads out of its volume was mounted")
	}
}

func TestASecondContainerThatSwapsDirectoryAndLinkReachesNothing(t *testing.T) {
	a := newAttacked(t)
	if err := errors.Join(os.Mkdir(filepath.Join(a.dir, "sub"), 0o755), os.Symlink(a.secret, filepath.Join(a.dir, "link"))); err != nil {
		t.Fatal(err)
	}
	side, err := a.run(1, 0, "swap", "/data/sub", "/data/link")
	if err != nil {
		t.Fatal(err)
	}
	a.until("it swaps", func() bool { return strings.Contains(a.log(side), "swapping") })
	shown, refused := 0, 0
	for attempt, began := 0, time.Now(); time.Since(began) < time.Minute && (shown < 10 || refused < 10); attempt++ {
		c, err := a.run(0, attempt, "write", "/sub/by-the-member", "x")
		switch {
		case err == nil:
			a.wait(a.rt, c.ID)
			a.remove(c)
			shown++
		case strings.Contains(err.Error(), "a symbolic link in the volume leads out of it"):
			refused++
		default:
			t.Fatal(err)
		}
		a.untouched()
	}
	if shown == 0 || refused == 0 {
		t.Fatalf("mounted %d times, refused %d times: nothing was raced", shown, refused)
	}
	a.until("what was written is seen in the volume, under whichever name it has now", func() bool {
		_, err := os.Lstat(filepath.Join(a.dir, "sub/by-the-member"))
		_, err2 := os.Lstat(filepath.Join(a.dir, "link/by-the-member"))
		return err == nil || err2 == nil
	})
	a.untouched()
}

func TestMountsAreWithoutDevicesAndSetUserID(t *testing.T) {
	a := newAttacked(t)
	c, err := a.run(0, 0, "facts")
	if err != nil {
		t.Fatal(err)
	}
	a.wait(a.rt, c.ID)
	a.until("all is logged", func() bool { return strings.Contains(a.log(c), "/sys/fs/cgroup") })
	seen := 0
	for line := range strings.Lines(a.log(c)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[4] != "/data" && f[4] != "/sub" {
			continue
		}
		seen++
		if options := "," + f[5] + ","; !strings.Contains(options, ",nosuid,") || !strings.Contains(options, ",nodev,") {
			t.Errorf("%s is mounted with %s", f[4], f[5])
		}
	}
	if seen != 2 {
		t.Errorf("%d of two mounts were seen:\n%s", seen, a.log(c))
	}
}
