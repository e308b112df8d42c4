package containerdrt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/containerdrt"
)

// chicks counts what the box's broods have left in a container, from outside.
func (h *host) chicks() (n int) {
	dirs, err := filepath.Glob("/sys/fs/cgroup/*/" + filepath.Base(h.dir))
	if err != nil || len(dirs) == 0 {
		dirs = []string{"/sys/fs/cgroup/" + filepath.Base(h.dir)}
	}
	pids := map[string]bool{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Name() == "cgroup.procs" {
				text, _ := os.ReadFile(path)
				for _, pid := range strings.Fields(string(text)) {
					pids[pid] = true
				}
			}
			return nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	for pid := range pids {
		line, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if argv := strings.Split(string(line), "\x00"); err == nil && len(argv) > 1 && argv[0] == "/box" && argv[1] == "chick" {
			n++
		}
	}
	return n
}

// ways are a runtime that enters containers, and one that has nothing to do that with and
// uses the daemon.
func (h *host) ways() map[string]*containerdrt.Runtime {
	h.t.Helper()
	cfg := h.cfg
	cfg.Logger = filepath.Join(h.dir, "absent")
	daemon, err := containerdrt.New(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	direct := h.open()
	h.t.Cleanup(func() { daemon.Close(); direct.Close() })
	return map[string]*containerdrt.Runtime{"entered": direct, "by the runtime": daemon}
}

func TestNothingOfABoundedCommandIsLeft(t *testing.T) {
	h, rt, c := newRunning(t)
	for name, rt := range h.ways() {
		t.Run(name, func(t *testing.T) {
			for round := range 4 {
				// Until it has left all its children, however slow the machine is.
				seen := false
				for limit := 2 * time.Second; !seen; limit *= 2 {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					_, err := rt.Exec(ctx, c.ID, runtime.Exec{Command: []string{"/box", "brood"}, Bounded: true})
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) || limit > time.Minute {
						t.Fatalf("round %d: %v, want the deadline", round, err)
					}
					if n := h.chicks(); n != 0 {
						t.Fatalf("round %d, its time was over: %d processes are left", round, n)
					}
					code, err := rt.Exec(t.Context(), c.ID, runtime.Exec{Command: []string{"/box", "remove", "/tmp/brood"}, Bounded: true})
					if err != nil {
						t.Fatal(err)
					}
					seen = code == 0
				}
				code, err := rt.Exec(t.Context(), c.ID, runtime.Exec{Command: []string{"/box", "litter"}, Bounded: true})
				if err != nil || code != 0 {
					t.Fatalf("round %d: code %d, %v", round, code, err)
				}
				if n := h.chicks(); n != 0 {
					t.Fatalf("round %d, it has ended: %d processes are left", round, n)
				}
			}
		})
	}
	if s, err := rt.Status(t.Context(), c.ID); err != nil || s.State != runtime.Running {
		t.Errorf("the container itself: %+v, %v", s, err)
	}
}

// slowRuntime puts a runc before the real one that begins a command only when the file
// slow is gone, and writes a letter to the file done when one runs.
func slowRuntime(t *testing.T) (slow, done string) {
	t.Helper()
	real, err := exec.LookPath("runc")
	if err != nil {
		t.Skip("needs runc")
	}
	dir := t.TempDir()
	slow, done = filepath.Join(dir, "slow"), filepath.Join(dir, "done")
	text := fmt.Sprintf(`#!/bin/sh
case " $* " in *" exec "*) ;; *) exec %[3]s "$@";; esac
while [ -e %[1]s ]; do sleep 0.02; done
%[3]s "$@"; code=$?
printf x >> %[2]s; exit $code
`, slow, done, real)
	if err := os.WriteFile(filepath.Join(dir, "runc"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return slow, done
}

// TestACommandThatStartsTooLateIsEnded: the deadline ends the wait for a slow start, and
// what is started after it all the same.
func TestACommandThatStartsTooLateIsEnded(t *testing.T) {
	slow, done := slowRuntime(t)
	h, rt, c := newRunning(t)
	rt = h.ways()["by the runtime"]
	if err := os.WriteFile(slow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for _, bounded := range []bool{true, false} {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := rt.Exec(ctx, c.ID, runtime.Exec{Command: []string{"/box", "chick"}, Bounded: bounded})
			if !errors.Is(err, runtime.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("bounded %v: a command that did not begin in time: %v, want unavailable and the deadline", bounded, err)
			}
		})
	}
	group.Wait()
	time.Sleep(16 * time.Second) // longer than any answer of the daemon is waited for (15 s)
	if err := os.Remove(slow); err != nil {
		t.Fatal(err)
	}
	h.until("both have begun, too late", func() bool {
		text, err := os.ReadFile(done)
		return err == nil && len(text) == 2
	})
	h.until("they are ended", func() bool { return h.chicks() == 0 })
}

// TestMain lets the test binary be an agent that is killed.
func TestMain(m *testing.M) {
	if kind := os.Getenv("STEAD_TEST_AGENT"); kind != "" {
		runForever(kind == "alone")
	}
	os.Exit(m.Run())
}

// runForever runs one command as an agent does that knows no end.
func runForever(alone bool) {
	rt, err := containerdrt.New(containerdrt.Config{
		Address: os.Args[1], Namespace: os.Args[2], CgroupParent: os.Args[3], RunDir: os.Args[4], Logger: os.Args[5],
	})
	if err != nil {
		panic(err)
	}
	_, err = rt.Exec(context.Background(), main0, runtime.Exec{Command: []string{"/box", "brood"}, Bounded: !alone, Alone: alone})
	panic(err)
}

// agent starts a process that runs a command of that kind, "bounded" or "alone", which does not end.
func (h *host) agent(kind, logger string) *exec.Cmd {
	h.t.Helper()
	cmd := exec.Command(os.Args[0], h.cfg.Address, h.cfg.Namespace, h.cfg.CgroupParent, h.cfg.RunDir, logger)
	cmd.Env = append(os.Environ(), "STEAD_TEST_AGENT="+kind)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	h.until("its command runs", func() bool { return h.chicks() == 4 })
	return cmd
}

func TestACommandEndsWithItsAgent(t *testing.T) {
	h, _, c := newRunning(t)

	// Its helper notices.
	agent := h.agent("bounded", h.cfg.Logger)
	agent.Process.Kill()
	agent.Wait()
	h.until("what it began is gone", func() bool { return h.chicks() == 0 })

	// The helper is killed with it, or there was none: the next agent's command ends what
	// it finds before it begins.
	for name, logger := range map[string]string{"entered": h.cfg.Logger, "by the runtime": filepath.Join(h.dir, "absent")} {
		killWithChildren(t, h.agent("bounded", logger))
		next := h.open()
		var out strings.Builder
		code, err := next.Exec(t.Context(), c.ID, runtime.Exec{Command: []string{"/box", "chicks"}, Bounded: true, Stdout: &out})
		if err != nil || code != 0 || out.String() != "0\n" {
			t.Errorf("%s: the next command sees %q processes of the one before; code %d, %v", name, out.String(), code, err)
		}
		next.Close()
	}
}

// TestACommandThatIsAloneEndsWhatWasLeftInAnotherContainer of the member, by an agent that was killed.
func TestACommandThatIsAloneEndsWhatWasLeftInAnotherContainer(t *testing.T) {
	h, rt, c := newRunning(t)
	side := c
	side.ID.Name = "side"
	if err := errors.Join(rt.Create(t.Context(), side), rt.Start(t.Context(), side.ID)); err != nil {
		t.Fatal(err)
	}
	killWithChildren(t, h.agent("alone", h.cfg.Logger))
	if got := h.chicks(); got != 4 {
		t.Fatalf("%d processes of the command are left, want 4: nothing is to be ended", got)
	}
	next := h.open()
	defer next.Close()
	if code, err := next.Exec(t.Context(), side.ID, runtime.Exec{Command: []string{"/box", "exit", "0"}, Alone: true}); err != nil || code != 0 {
		t.Errorf("code %d, %v", code, err)
	}
	if got := h.chicks(); got != 0 {
		t.Errorf("%d processes of the command before ran on beside the next", got)
	}
}

func killWithChildren(t *testing.T, agent *exec.Cmd) {
	t.Helper()
	for _, pid := range childrenOf(t, agent.Process.Pid) {
		if p, err := os.FindProcess(pid); err == nil {
			p.Kill()
		}
	}
	agent.Process.Kill()
	agent.Wait()
}

func childrenOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestAContainerThatCannotBeEnteredIsToldOnce(t *testing.T) {
	h, _, c := newRunning(t)
	for program, want := range map[string]int{h.cfg.Logger: 0, filepath.Join(h.dir, "absent"): 1} {
		var told bytes.Buffer
		cfg := h.cfg
		cfg.Logger, cfg.Log = program, slog.New(slog.NewTextHandler(&told, nil))
		rt, err := containerdrt.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		for range 3 {
			if code, err := rt.Exec(t.Context(), c.ID, runtime.Exec{Command: []string{"/box", "exit", "0"}, Bounded: true}); err != nil || code != 0 {
				t.Fatalf("code %d, %v", code, err)
			}
		}
		if got := strings.Count(told.String(), "run through containerd"); got != want {
			t.Errorf("with %s it was told %d times, want %d:\n%s", program, got, want, told.String())
		}
	}
}
