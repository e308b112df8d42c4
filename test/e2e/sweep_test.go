package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var sweepOnce sync.Once

// sweep takes away the labs of test programs that were killed before they could:
// a time-out of go test runs no cleanup.
func sweep(t testing.TB) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "stead-e2e-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		l := &Lab{t: t, Dir: dir, Name: filepath.Base(dir), Socket: filepath.Join(dir, "api.sock")}
		if owner, err := os.ReadFile(l.path("owner")); err != nil || running(string(owner)) {
			continue
		}
		t.Logf("an abandoned lab is taken away: %s", dir)
		l.endPrograms()
		if _, err := os.Stat("/run/netns/" + l.Name); err != nil {
			l.run("ip", "netns", "add", l.Name)
		}
		l.startContainerd()
		l.purge()
		l.remove()
		for _, more := range []string{"-sw", "-out"} { // of the hosts' switch
			if _, err := os.Stat("/run/netns/" + l.Name + more); err == nil {
				l.run("ip", "netns", "del", l.Name+more)
			}
		}
	}
}

// running reports whether a process of that pid is there.
func running(pid string) bool {
	_, err := os.Stat("/proc/" + strings.TrimSpace(pid))
	return err == nil
}

// endPrograms kills what still runs with the lab's directory among its arguments, and the
// test's own programs on its network; shims and loggers belong to containerd and end with
// their containers.
func (l *Lab) endPrograms() {
	onIts, _ := l.try(time.Minute, "ip", "netns", "pids", l.Name) // it may have none any more
	inside := strings.Fields(onIts)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%s/cmdline", e.Name()))
		text := string(cmdline)
		tool := strings.Contains(text, "/stead-tool-") && slices.Contains(inside, e.Name())
		if err != nil || !tool && !strings.Contains(text, l.Dir+"/") || strings.Contains(text, "-shim-") || strings.Contains(text, "stead-node") {
			continue
		}
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
	}
}
