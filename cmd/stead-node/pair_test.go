package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/logs"
)

// halves are the processes of the logger that writes to dir, by their roles.
func halves(t *testing.T, dir string) map[string][]int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]int{}
	for _, proc := range found {
		line, err := os.ReadFile(proc + "/cmdline")
		stat, err2 := os.ReadFile(proc + "/stat")
		argv := strings.Split(string(line), "\x00")
		if err != nil || err2 != nil || len(argv) < 3 || !strings.Contains(argv[2], dir) || strings.Contains(string(stat), ") Z ") {
			continue
		}
		role := "keeper"
		if argv[1] == "writer" || argv[1] == "again" {
			role = "writer"
		}
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil {
			t.Fatal(err)
		}
		out[role] = append(out[role], pid)
	}
	return out
}

// pairOf waits until there are one writer and one keeper, neither of them gone.
func pairOf(t *testing.T, dir string, gone int) (keeper, writer int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		h := halves(t, dir)
		if len(h["keeper"]) == 1 && len(h["writer"]) == 1 && h["keeper"][0] != gone && h["writer"][0] != gone {
			return h["keeper"][0], h["writer"][0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("no pair of processes: %v", h)
		}
	}
}

func TestEitherHalfOfALoggerOutlivesTheOther(t *testing.T) {
	dir := t.TempDir()
	cmd, stdout, stderr := shim(t, logs.Config{Dir: dir, Run: "1.7.0", FileBytes: 1 << 20, Files: 2})
	log := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "1.7.0", "0.log"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(text)
	}
	say := func(text string) {
		t.Helper()
		if _, err := io.WriteString(stdout, text+"\n"); err != nil {
			t.Fatalf("the container is let down: %v", err)
		}
		for deadline := time.Now().Add(time.Minute); !strings.Contains(log(), " stdout "+text+"\n"); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%q is not in the log:\n%s", text, log())
			}
		}
	}
	kill := func(pid int) {
		t.Helper()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if pid == cmd.Process.Pid {
			_ = cmd.Wait() // killed
		}
	}
	keeper, _ := pairOf(t, dir, 0)
	if keeper != cmd.Process.Pid {
		t.Errorf("the keeper is %d, and the shim's child %d", keeper, cmd.Process.Pid)
	}
	say("begin")
	for n := range 2 {
		_, writer := pairOf(t, dir, 0)
		kill(writer)
		keeper, _ := pairOf(t, dir, writer)
		say(fmt.Sprint("another writer ", n))
		kill(keeper)
		pairOf(t, dir, keeper)
		say(fmt.Sprint("another keeper ", n))
	}
	if got := strings.Count(log(), "stderr stead-node logger: the logger was killed and started again"); got != 2 {
		t.Errorf("two deaths of the writer are told %d times:\n%s", got, log())
	}
	stdout.Close()
	stderr.Close()
	for deadline := time.Now().Add(time.Minute); len(halves(t, dir)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("left when both streams have ended: %v", halves(t, dir))
		}
	}
}
