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
		cmd := serverCommand()
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
