package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTheUnitIsUpWhenTheServerAnswers: 'systemctl start' returns when the next command finds a server.
func TestTheUnitIsUpWhenTheServerAnswers(t *testing.T) {
	dir, err := os.MkdirTemp("", "stead-unit-") // short, because socket paths have a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "systemd"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "systemd"))
	socket := filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		cmd := serverCommand(&cli{})
		cmd.SetArgs([]string{"--data-dir", filepath.Join(dir, "d"), "--socket", socket, "--log-level", "error"})
		ended <- cmd.ExecuteContext(ctx)
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	said := make([]byte, 100)
	if err := systemd.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	n, err := systemd.Read(said)
	if err != nil || string(said[:n]) != "READY=1" {
		t.Fatalf("systemd was sent %q, %v", said[:n], err)
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatalf("the API does not answer: %v", err)
	}
	conn.Close()
	if at := os.Getenv("NOTIFY_SOCKET"); at != "" {
		t.Errorf("what the server starts would be taken for it: NOTIFY_SOCKET=%s", at)
	}
}

// TestOnlyAShutdownOfTheHostStopsMembers: whatever else systemd says, or if it is not there.
func TestOnlyAShutdownOfTheHostStopsMembers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, c := range []struct {
		state string
		want  bool
	}{{"", false}, {"running", false}, {"degraded", false}, {"starting", false}, {"maintenance", false}, {"stopping", true}} {
		if c.state != "" {
			program := "#!/bin/sh\n[ \"$*\" = is-system-running ] && echo " + c.state + "\nexit 1\n"
			if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(program), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if got := hostEnds(t.Context()); got != c.want {
			t.Errorf("systemd is %q: members stop: %v", c.state, got)
		}
	}
}

// TestSystemdWaitsForMembers: again and again, and nothing that is started inherits the socket.
func TestSystemdWaitsForMembers(t *testing.T) {
	dir, err := os.MkdirTemp("", "stead-unit-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "systemd"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "systemd"))
	var n notifySocket
	for _, text := range []string{"READY=1", "EXTEND_TIMEOUT_USEC=30000000"} {
		if err := n.notify(text); err != nil {
			t.Fatal(err)
		}
		if err := listener.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 100)
		if got, err := listener.Read(said); err != nil || string(said[:got]) != text {
			t.Errorf("systemd was sent %q, %v", said[:got], err)
		}
		if at := os.Getenv("NOTIFY_SOCKET"); at != "" {
			t.Errorf("NOTIFY_SOCKET=%s", at)
		}
	}
}
