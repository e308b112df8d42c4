package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/logs"
)

// TestMain lets the test binary be the program itself.
func TestMain(m *testing.M) {
	if os.Getenv("STEAD_NODE_TEST") == "1" {
		main()
	}
	os.Exit(m.Run())
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{nil, {"watchdog"}, {"logger"}, {"version", "x"}, {"pause"}} {
		if code := run(args, io.Discard, io.Discard); code != 2 {
			t.Errorf("stead-node %q exited %d, want 2", args, code)
		}
	}
	var out bytes.Buffer
	if code := run([]string{"version"}, &out, io.Discard); code != 0 || out.String() != "dev\n" {
		t.Errorf("version: code %d, output %q", code, out.String())
	}
}

// shim starts a logger as containerd's shim does and returns its two streams.
func shim(t *testing.T, cfg logs.Config) (*exec.Cmd, *os.File, *os.File) {
	t.Helper()
	var ends [6]*os.File // stdout r w, stderr r w, ready r w
	for i := 0; i < len(ends); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ends[i], ends[i+1] = r, w
		t.Cleanup(func() { r.Close(); w.Close() })
	}
	cmd := exec.Command(os.Args[0], "logger", cfg.Encode())
	cmd.Env = append(os.Environ(), "STEAD_NODE_TEST=1")
	cmd.ExtraFiles = []*os.File{ends[0], ends[2], ends[5]}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	ends[0].Close()
	ends[2].Close()
	ends[5].Close()
	if err := ends[4].SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := ends[4].Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("the logger did not say that it is ready: %v", err)
	}
	return cmd, ends[1], ends[3]
}

func TestLoggerOutlivesSignalsAndEndsWithItsStreams(t *testing.T) {
	dir := t.TempDir()
	cmd, stdout, stderr := shim(t, logs.Config{Dir: dir, Run: "1.7.0", FileBytes: 1 << 20, Files: 2})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	io.WriteString(stdout, "one\ntwo\n")
	io.WriteString(stderr, "no newline")
	stdout.Close()
	stderr.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the logger ended with %v", err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "1.7.0", "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" stdout one\n", " stdout two\n", " stderr no newline\n"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("log %q lacks %q", got, want)
		}
	}
	if lines := strings.Count(string(got), "\n"); lines != 3 {
		t.Errorf("log has %d lines, want 3: %q", lines, got)
	}
}

func TestLoggerLivesOnWithoutADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, stdout, stderr := shim(t, logs.Config{Dir: file, Run: "1.7.0"})
	// More than the pipe and one read hold: some of it was read and dropped.
	lost := strings.Repeat("lost\n", 1000)
	for range 60 {
		if _, err := io.WriteString(stdout, lost); err != nil {
			t.Fatalf("the logger let its container down: %v", err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	io.WriteString(stdout, "kept\n")
	stdout.Close()
	stderr.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the logger ended with %v", err)
	}
	got, err := os.ReadFile(filepath.Join(file, "1.7.0", "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(got), " stdout kept\n") || !strings.Contains(string(got), "lines lost") {
		t.Errorf("log of %d bytes, want a line about the loss, and the line kept last", len(got))
	}
}
