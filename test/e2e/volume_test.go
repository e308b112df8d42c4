package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Volumes go through the trash of real directories, and only those that are to go.
func TestVolumesThatGoLieInTheTrashAndThenAreErased(t *testing.T) {
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
	l.apply("db", set("1h"), "--wait", "--timeout", "2m")
	there("db-1 writes to its volume", place(1))
	if out := l.stead("scale", "db", "--replicas", "1"); !strings.Contains(out, "given up, and erased (data after 1h)") {
		t.Errorf("scale says %q", out)
	}
	l.eventually(2*time.Minute, "the volume lies in the trash", func() error {
		if _, err := os.Stat(place(1)); err == nil || len(inTrash()) != 1 {
			return fmt.Errorf("in the trash: %v", inTrash())
		}
		if out := l.stead("volume", "ls"); !strings.Contains(out, "Trashed") {
			return fmt.Errorf("volume ls: %s", out)
		}
		return nil
	})
	kept := inTrash()[0]

	l.apply("db", set("0s"), "--wait", "--timeout", "2m")
	there("db-1 writes to its new volume", place(1))
	l.stead("scale", "db", "--replicas", "1")
	l.eventually(2*time.Minute, "the second volume is erased", func() error {
		if _, err := os.Stat(place(1)); err == nil || len(inTrash()) != 1 {
			return fmt.Errorf("in the trash: %v", inTrash())
		}
		return nil
	})
	l.stead("delete", "set", "db", "--wait", "--timeout", "2m")
	for _, file := range []string{place(0), kept} { // whenDeleted keeps it; its hour is not over
		if _, err := os.Stat(file); err != nil {
			t.Errorf("after the deletion: %v", err)
		}
	}
	out := l.apply("db", strings.Replace(set("1h"), "replicas: 2", "replicas: 1", 1), "--wait", "--timeout", "2m")
	if !strings.Contains(out, "takes back the kept volumes data of db-0") {
		t.Errorf("apply says %q", out)
	}
}
