package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

// mountOfVolume is the directory of the data of the volume that a member of a sized class has.
func (l *Lab) mountOfVolume(member string) string {
	l.t.Helper()
	found, err := filepath.Glob(l.path("run/images/default", member, "*/data"))
	if err != nil || len(found) != 1 {
		l.t.Fatalf("the volumes of %s are mounted at %q, error %v; want one", member, found, err)
	}
	return found[0]
}

// takeAll leaves as good as nothing free in a file system.
func takeAll(t *testing.T, dir string) {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "all"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for left := int64(st.Bavail) * st.Bsize; left >= 4096; left /= 2 {
		at, err := f.Seek(0, 2)
		if err == nil {
			err = syscall.Fallocate(int(f.Fd()), 0, at, left)
		}
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}

// loopsOn lists the files below dir that are behind loop devices.
func loopsOn(dir string) (files []string) {
	paths, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, p := range paths {
		if name, err := os.ReadFile(p); err == nil && strings.HasPrefix(string(name), dir+"/") {
			files = append(files, strings.TrimSpace(string(name)))
		}
	}
	return files
}

// TestAMemberThatFillsItsVolumeHarmsNobodyAndGoesOnWhenItGrows: with a real container, a killed agent, and no
// restart of the member.
func TestAMemberThatFillsItsVolumeHarmsNobodyAndGoesOnWhenItGrows(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ssd := l.path("ssd")
	if err := os.Mkdir(ssd, 0o755); err != nil {
		t.Fatal(err)
	}
	l.startServer()
	class := []string{"--storage-class", "ssd=" + ssd, "--sized-class", "ssd"}
	l.startAgent(class...)
	l.stead("image", "load", l.toolArchive())
	of := func(size string) string {
		return strings.Replace(harmWith("disk, /data/mine", "ssd"), "storage: 1Mi", "storage: "+size, 1)
	}
	l.apply("harm", of("300Mi"), "--wait", "--timeout", patience)
	l.apply("plain", strings.NewReplacer("NAME", "plain", "CLASS", "ssd").Replace(classSet), "--wait", "--timeout", patience)
	was, beside := l.mustMember("harm-0"), l.mustMember("plain-0")
	takeAll(t, l.mountOfVolume("harm-0"))
	l.waitLog("harm-0", "no space left on device")
	if err := os.WriteFile(filepath.Join(l.mountOfVolume("plain-0"), "more"), make([]byte, 1<<20), 0o600); err != nil {
		judge.Broken(t, "its neighbour cannot write: %v", err)
	}

	t.Log("the agent is killed; then the claim grows")
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.startAgent(class...)
	if out := l.apply("harm", of("400Mi")); !strings.Contains(out, "grows the volumes of the claim data from 300Mi to 400Mi") {
		t.Errorf("apply says %s", out)
	}
	l.eventually(time.Minute, "it writes again", func() error {
		out, err := l.trySteadFor(time.Minute, "logs", "harm-0")
		if err != nil || strings.LastIndex(out, "wrote") < strings.LastIndex(out, "no space") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	for name, m := range map[string]member{"harm-0": was, "plain-0": beside} {
		if now := l.waitReady(name, nil); now.Status.Token != m.Status.Token || now.Status.Restarts != 0 {
			judge.Broken(t, "%s was touched: %+v", name, now.Status)
		}
	}
	if line := lineWith(l.stead("volume", "ls"), "data-harm-0"); !strings.Contains(line, "400Mi") {
		t.Errorf("volume ls says %q", line)
	}

	t.Log("the sets are deleted: their volumes stay, and nothing of them is mounted")
	l.stead("delete", "set", "harm", "--wait", "--timeout", patience)
	l.stead("delete", "set", "plain", "--wait", "--timeout", patience)
	if left := loopsOn(ssd); len(left) > 0 {
		judge.Broken(t, "left on the host: loop devices of %q", left)
	}
	for _, place := range []string{"harm/data-0", "plain/data-0"} {
		if _, err := os.Stat(filepath.Join(ssd, "default", place, "data.img")); err != nil {
			judge.Broken(t, "a volume is gone: %v", err)
		}
	}
}
