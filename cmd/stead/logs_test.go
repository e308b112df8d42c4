package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestLinesAreWrittenWholeAfterTheirMember(t *testing.T) {
	var out bytes.Buffer
	var lock sync.Mutex
	a, b := &lineWriter{lock: &lock, out: &out, prefix: "[a] "}, &lineWriter{lock: &lock, out: &out, prefix: "[b] "}
	for _, w := range []struct {
		to   *lineWriter
		text string
	}{{a, "one\ntw"}, {b, "x\n\ny"}, {a, "o\n"}, {b, ""}} {
		if n, err := w.to.Write([]byte(w.text)); n != len(w.text) || err != nil {
			t.Fatalf("wrote %d of %q, %v", n, w.text, err)
		}
	}
	if err := a.flush(); err != nil {
		t.Fatal(err)
	}
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "[a] one\n[b] x\n[b] \n[a] two\n[b] y\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLogsOfSeveralMembersAndContainers(t *testing.T) {
	c := newCluster(t, nil)
	if code, out := c.stead("apply", "-f", "testdata/pair.yaml", "--wait", "--timeout", "2m"); code != exitDone {
		t.Fatal(out)
	}
	for _, member := range []string{"pair-0", "pair-1"} {
		for _, container := range []string{"main", "side"} {
			run := filepath.Join(c.dir, "host-a", "logs", "default", member, container, "9.9.0")
			var text strings.Builder
			for i := range 12 { // more than the ten that a selector shows
				fmt.Fprintf(&text, "2026-11-19T10:00:%02dZ stdout %s of %s %s\n", i, map[bool]string{true: "old", false: "more"}[i == 0], member, container)
			}
			fmt.Fprintf(&text, "2026-11-21T10:00:00Z stdout new of %s %s\n", member, container)
			if err := errors.Join(os.MkdirAll(run, 0o700), os.WriteFile(filepath.Join(run, "0.log"), []byte(text.String()), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.play("logs.txt")
}

// TestLogsOfAMemberThatWaitsSayForWhat: 'get' shows it, so "there is no member" would be untrue.
func TestLogsOfAMemberThatWaitsSayForWhat(t *testing.T) {
	c := stuck(t)
	c.until("db-1 waits for db-0", func() bool {
		code, out := c.stead("logs", "db-1")
		return code == exitRefused && strings.Contains(out, "member db-1 has not started yet, so it has no logs: waiting for db-0")
	})
}
