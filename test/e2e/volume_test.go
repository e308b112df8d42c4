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

// Volumes go through the trash of real directories, and only those that are to go.
func TestVolumesThatGoLieInTheTrashAndThenAreErased(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	set := func(trash string) string {
		text := strings.NewReplacer("NAME", "db", "CLASS", "local", "apps/v1", "stead/v1", "replicas: 1",
			"replicas: 2\n  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Retain}").Replace(classSet)
		return text + "    reclaim: {after: " + trash + "}\n"
	}
	volumes := l.path("agent/volumes")
	place := func(n int) string { return fmt.Sprintf("%s/default/db/data-%d/data/mine", volumes, n) }
	there := func(what, file string) {
		t.Helper()
		l.eventually(2*time.Minute, what, func() error { _, err := os.Stat(file); return err })
	}
	inTrash := func() []string {
		t.Helper()
		found, err := filepath.Glob(volumes + "/.trash/*/data/mine")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	l.apply("db", set("1h"), "--wait", "--timeout", patience)
	there("db-1 writes to its volume", place(1))
	if out := l.stead("scale", "db", "--replicas", "1"); !strings.Contains(out, "given up, and erased (data after 1h)") {
		t.Errorf("scale says %q", out)
	}
	l.eventually(2*time.Minute, "the volume lies in the trash", func() error {
		if _, err := os.Stat(place(1)); err == nil || len(inTrash()) != 1 {
			return fmt.Errorf("in the trash: %v", inTrash())
		}
		return l.steadSays("Trashed", "volume", "ls")
	})
	kept := inTrash()[0]

	l.apply("db", set("0s"), "--wait", "--timeout", patience)
	there("db-1 writes to its new volume", place(1))
	l.stead("scale", "db", "--replicas", "1")
	l.eventually(2*time.Minute, "the second volume is erased", func() error {
		if _, err := os.Stat(place(1)); err == nil || len(inTrash()) != 1 {
			return fmt.Errorf("in the trash: %v", inTrash())
		}
		return nil
	})
	l.stead("delete", "set", "db", "--wait", "--timeout", patience)
	for _, file := range []string{place(0), kept} { // whenDeleted keeps it; its hour is not over
		if _, err := os.Stat(file); err != nil {
			judge.Broken(t, "after the deletion: %v", err)
		}
	}
	out := l.apply("db", strings.Replace(set("1h"), "replicas: 2", "replicas: 1", 1), "--wait", "--timeout", patience)
	if !strings.Contains(out, "takes back the kept volumes data of db-0") {
		t.Errorf("apply says %q", out)
	}
}

// By hand, with real directories: a kept volume goes to the trash, comes back with what was in
// it, goes again and is erased; one that somebody removed is replaced when a person says that
// it is lost.
func TestVolumesAreLookedAfterByHand(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	set := strings.NewReplacer("NAME", "db", "CLASS", "local", "replicas: 1", "replicas: 2").Replace(classSet)
	volumes := l.path("agent/volumes")
	place := volumes + "/default/db/data-1"
	wait := []string{"--wait", "--timeout", patience}
	stead := func(want string, args ...string) {
		t.Helper()
		if out := l.stead(append(args, wait...)...); !strings.Contains(out, want) {
			t.Errorf("%v says %q; want %q", args, out, want)
		}
	}
	l.apply("db", set, wait...)
	l.eventually(2*time.Minute, "db-1 writes to its volume", func() error { _, err := os.Stat(place + "/data/mine"); return err })
	if err := os.WriteFile(place+"/data/precious", []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	stead("", "scale", "db", "--replicas", "1")
	stead("moved to the trash", "volume", "reclaim", "data-db-1", "--yes")
	if _, err := os.Stat(place); err == nil {
		t.Error("it stands in its place still")
	}
	stead("is restored on node", "volume", "restore", "data-db-1")
	if got, err := os.ReadFile(place + "/data/precious"); err != nil || string(got) != "data" {
		t.Fatalf("brought back it holds %q, error %v", got, err)
	}
	stead("", "scale", "db", "--replicas", "2")
	if _, err := os.Stat(place + "/data/precious"); err != nil {
		judge.Broken(t, "the member that returned has another volume: %v", err)
	}
	stead("", "scale", "db", "--replicas", "1")
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
	l.stead("scale", "db", "--replicas", "2")
	l.eventually(2*time.Minute, "db-1 misses its volume", func() error {
		return errors.Join(l.steadSays("VolumeMissing", "explain", "db"), l.steadSays("stead volume reclaim data-db-1 -n default --lost", "explain", "db"))
	})
	stead("is gone", "volume", "reclaim", "data-db-1", "--lost", "--yes")
	l.stead("wait", "db", "--timeout", patience)
	l.eventually(2*time.Minute, "db-1 writes to the new one", func() error { _, err := os.Stat(place + "/data/mine"); return err })
	if got, err := os.ReadFile(l.path("run/members/default/db-1/volume-new")); err != nil || string(got) != "data replaced\n" {
		t.Errorf("volume-new says %q, error %v", got, err)
	}
	stead("", "scale", "db", "--replicas", "1")
	stead("", "volume", "reclaim", "data-db-1", "--yes", "--trash-period", "0s")
	l.eventually(2*time.Minute, "it is erased", func() error {
		if found, err := os.ReadDir(volumes + "/.trash"); err != nil || len(found) > 0 {
			return fmt.Errorf("in the trash: %v, error %v", found, err)
		}
		return nil
	})

	t.Log("the host is short of memory")
	if out := l.stead("volume", "ls", "-o", "json"); !strings.Contains(out, `"freeBytes": `) {
		t.Errorf("nothing says what can still be written: %s", out)
	}
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.startAgent("--pressure-memory-bytes", "1000000000000000")
	l.eventually(time.Minute, "it says so", func() error { return l.steadSays("has MemoryPressure: ", "status") })
	l.stead("restart", "db-0")
	l.eventually(time.Minute, "a member returns to its volume", func() error { return l.steadSays("that node has MemoryPressure", "get", "events") })
	l.stead("scale", "db", "--replicas", "2")
	l.eventually(time.Minute, "a member that would be new there waits", func() error { return l.steadSays("has MemoryPressure", "explain", "db-1") })
}
