package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	script   = "../../scripts/lab"
	steadBin = "../../bin/stead"

	hanging = 10 * time.Minute // what takes longer counts as hanging; it is no measure
	looking = time.Minute      // for a command that only looks or sets something
)

// hosts is a lab in which Stead runs: host 1 has the server, every host an agent.
type hosts struct {
	*testing.T
	n        int
	dir      string
	tool     string // the program of test/e2e/tool
	deb      string // the package of Stead
	people   string // client file of who works on this machine's end of the hosts' network
	heard    string // what the witness heard of lives
	stalls   []stall
	programs []*program
}

// program runs on this machine's end of the hosts' network.
type program struct {
	cmd    *exec.Cmd
	out    bytes.Buffer // to be read after done
	errors bytes.Buffer
	done   chan struct{}
}

// newLab powers n hosts on, and removes them when the test ends.
func newLab(t *testing.T, n int) *hosts {
	t.Helper()
	switch {
	case os.Getenv("STEAD_LAB") != "1":
		t.Skip("needs STEAD_LAB=1 (root, user-mode Linux): run make lab")
	case !has("linux.uml") || !has("mmdebstrap"):
		t.Skip("no user-mode Linux on this machine: scripts/setup --lab installs it on Debian 12")
	}
	h := &hosts{T: t, n: n, dir: t.TempDir()}
	h.lab("down") // one that was broken off
	h.lab("build")
	t.Cleanup(h.remove)
	began := time.Now()
	h.lab("up", fmt.Sprint(n))
	t.Logf("%d hosts are up after %v", n, time.Since(began).Round(time.Second))
	h.tool = filepath.Join(h.dir, "tool")
	if out, err := h.try(hanging, "env", "CGO_ENABLED=0", "go", "build", "-o", h.tool, "../e2e/tool"); err != nil {
		t.Fatalf("build the test tool: %v\n%s", err, out)
	}
	return h
}

func has(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

func (h *hosts) remove() {
	if h.Failed() {
		h.Log(h.lastWords())
	}
	for _, p := range h.programs {
		p.end()
	}
	h.lab("down")
}

// lastWords is what servers and agents logged last, for failures.
func (h *hosts) lastWords() string {
	var all strings.Builder
	for i := 1; i <= h.n; i++ {
		out, err := h.trySSH(i, "uptime; journalctl -q -n 60 -o short-precise --no-pager -u stead-server -u stead-agent")
		fmt.Fprintf(&all, "--- host%d: %v ---\n%s\n", i, err, out)
	}
	out, err := h.tryStead("get", "members", "-A", "-o", "wide")
	fmt.Fprintf(&all, "--- members: %v ---\n%s\n", err, out)
	out, err = h.tryStead("get", "events", "-A")
	fmt.Fprintf(&all, "--- events: %v ---\n%s\n", err, out)
	return all.String()
}

// try executes a command with a deadline and returns what it printed.
func (h *hosts) try(limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// lab runs a command of scripts/lab and fails the test when it fails.
func (h *hosts) lab(args ...string) string {
	h.Helper()
	// Not by a pipe: what it leaves running would hold it open.
	out, err := os.CreateTemp(h.dir, "lab-")
	if err != nil {
		h.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*hanging)
	defer cancel()
	cmd := exec.CommandContext(ctx, script, args...)
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	text, _ := os.ReadFile(out.Name())
	if err != nil {
		h.Fatalf("scripts/lab %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return string(text)
}

// ssh runs a command on a host and fails the test when it fails.
func (h *hosts) ssh(i int, command string) string {
	h.Helper()
	out, err := h.trySSH(i, command)
	if err != nil {
		h.Fatalf("host%d: %s: %v\n%s", i, command, err, out)
	}
	return strings.TrimSpace(out)
}

func (h *hosts) trySSH(i int, command string) (string, error) {
	return h.try(5*looking, script, "ssh", fmt.Sprint(i), command)
}

// stead runs the command line as people do who have a client file.
func (h *hosts) stead(args ...string) string {
	h.Helper()
	out, err := h.tryStead(args...)
	if err != nil {
		h.Fatalf("stead %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (h *hosts) tryStead(args ...string) (string, error) { return h.tryLong(5*looking, args...) }

// tryLong is tryStead for a command that takes longer.
func (h *hosts) tryLong(limit time.Duration, args ...string) (string, error) {
	return h.try(limit, script, append([]string{"wire", steadBin, "--config", h.people}, args...)...)
}

// start runs a program on this machine's end of the hosts' network until it or the test ends.
func (h *hosts) start(argv ...string) *program {
	h.Helper()
	p := &program{cmd: exec.Command(script, append([]string{"wire"}, argv...)...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errors
	if err := p.cmd.Start(); err != nil {
		h.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // what it said says how it ended
	}()
	h.programs = append(h.programs, p)
	return p
}

// end lets a program end by SIGTERM, and returns what it printed.
func (p *program) end() (out, errors string) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done:
	case <-time.After(hanging):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	return p.out.String(), p.errors.String()
}

// eventually waits until f says nil, or fails with its last word.
func (h *hosts) eventually(what string, f func() error) {
	h.Helper()
	for began := time.Now(); ; time.Sleep(time.Second) { // each look takes processor time that the hosts need
		err := f()
		if err == nil {
			return
		}
		if time.Since(began) > hanging {
			h.Fatalf("%s: not within %v: %v", what, hanging, err)
		}
	}
}

// each does the same for every host, at once.
func (h *hosts) each(do func(i int)) {
	var group sync.WaitGroup
	for i := 1; i <= h.n; i++ {
		group.Go(func() { do(i) })
	}
	group.Wait()
}

func host(i int) string    { return fmt.Sprint("host", i) }
func address(i int) string { return fmt.Sprint("10.77.0.1", i) }
