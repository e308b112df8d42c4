package fence

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// script is an executable of the shell.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fence")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func asked() *Case {
	return &Case{
		Node: "n1", UID: "u1", Facts: records.NodeFacts{Boot: "b1", HostIP: "192.0.2.7"},
		Lives: []spec.LifeID{{ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: 3}, Token: spec.Token{Epoch: 1, Number: 9}}},
	}
}

func TestTheCommandIsAskedAboutTheNode(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	path := script(t, `{ echo "$#:$1:$STEAD_NODE:$STEAD_NODE_UID:$STEAD_NODE_BOOT:$STEAD_NODE_ADDRESS"; cat; } >`+out)
	if err := Command(path)(t.Context(), asked()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	words, document, _ := strings.Cut(string(text), "\n")
	if words != "1:n1:n1:u1:b1:192.0.2.7" {
		t.Errorf("it was called with %q", words)
	}
	var got question
	if err := json.Unmarshal([]byte(document), &got); err != nil {
		t.Fatalf("%v: %q", err, document)
	}
	if got.Node != "n1" || got.UID != "u1" || got.Boot != "b1" || got.Address != "192.0.2.7" || len(got.Lives) != 1 || got.Lives[0] != asked().Lives[0] {
		t.Errorf("it read %+v", got)
	}
}

func TestWhatIsNoYesProvesNothing(t *testing.T) {
	for name, c := range map[string]struct{ path, want string }{
		"another exit code":     {script(t, "echo first; echo 'no such\tplug' >&2; exit 3"), "exit status 3: no such plug"},
		"a signal":              {script(t, "kill -9 $$"), "signal: killed"},
		"a program that is not": {"/nonexistent/fence", "no such file"},
		"much output":           {script(t, "head -c 100000 /dev/zero | tr '\\0' x; exit 1"), "exit status 1: xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Command(c.path)(t.Context(), asked())
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2*mostSaid {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

// TestATimeOutProvesNothing: also of a program that says yes when it is ended. What it
// started is ended with it.
func TestATimeOutProvesNothing(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	path := script(t, "sleep 1000 & echo $! >"+pid+".new; mv "+pid+".new "+pid+"; trap 'exit 0' TERM; wait")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- Command(path)(ctx, asked()) }()
	var child string
	for end := time.Now().Add(time.Minute); child == "" && time.Now().Before(end); time.Sleep(time.Millisecond) {
		text, _ := os.ReadFile(pid)
		child = strings.TrimSpace(string(text))
	}
	cancel() // as a time-out does
	if err := <-done; err == nil || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("got %v", err)
	}
	if child == "" {
		t.Fatal("it did not start")
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + child + "/stat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("what it started lives: %s", stat)
		}
	}
}

func TestCheck(t *testing.T) {
	good, plain := script(t, "exit 0"), filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path           string
		after, timeout time.Duration
		want           string // "": it is right
	}{
		"none":             {"", time.Second, -1, ""},
		"a program":        {good, 0, 0, ""},
		"a name":           {"fence", 0, 0, "must be an absolute path"},
		"nothing there":    {good + "x", 0, 0, "no such file"},
		"a plain file":     {plain, 0, 0, "not an executable file"},
		"a directory":      {filepath.Dir(plain), 0, 0, "not an executable file"},
		"too soon":         {good, time.Second, 0, "at least 10s"},
		"a time before it": {good, 0, -time.Second, "must not be negative"},
	} {
		err := Check(c.path, c.after, c.timeout)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
	}
}
