package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/watchdog"
)

// A watchdog does not end for a signal while it guards; one of another release takes its place, one of its own release does not.
func TestAWatchdogGivesWayToOneOfAnotherRelease(t *testing.T) {
	dir := watchdog.Dir(t.TempDir())
	if err := errors.Join(dir.Make(), dir.Confirm(watchdog.BootTime()),
		dir.Put("default.db-0", watchdog.Record{Namespace: "default", Set: "db", Token: "1.7", Bound: time.Hour, Cgroup: "/stead-test-nowhere/default.db-0"})); err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "stead-node")
	if err := os.WriteFile(other, append(own, "other"...), 0o700); err != nil {
		t.Fatal(err)
	}
	start := func(program string) (*exec.Cmd, chan error) {
		t.Helper()
		cmd := exec.Command(program, "watchdog", string(dir))
		cmd.Env = append(os.Environ(), "STEAD_NODE_TEST=1")
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait(); close(ended) }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
		return cmd, ended
	}
	guards := func(what string, cmd *exec.Cmd) {
		t.Helper()
		want := fmt.Sprint(cmd.Process.Pid)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			holder, err := os.ReadFile(filepath.Join(string(dir), "lock"))
			if err == nil && string(holder) == want && dir.Acks()["default.db-0"] == "1.7" {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s guards (%v), want %s", what, holder, err, want)
			}
		}
	}
	ends := func(what string, ended chan error) {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal(what, "goes on")
		}
	}

	first, firstEnded := start(other)
	guards("the first", first)
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	next, nextEnded := start(os.Args[0])
	ends("the first", firstEnded)
	guards("the next", next)
	_, sameEnded := start(os.Args[0])
	ends("another one of its release", sameEnded)
	guards("the next", next)
	select {
	case err := <-nextEnded:
		t.Errorf("it ended for one of its own release: %v", err)
	default:
	}
}
