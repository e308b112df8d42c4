package runtimetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
)

// result is what came of a command of the box.
type result struct {
	code      int
	out, errs string
}

// exec runs the box in a container, and wants this of it.
func (m *member) exec(t *testing.T, id runtime.ContainerID, bounded bool, want result, args ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	code, err := m.Runtime.Exec(t.Context(), id, runtime.Exec{Command: append([]string{Box}, args...), Stdout: &out, Stderr: &errs, Bounded: bounded})
	if got := (result{code, out.String(), errs.String()}); err != nil || got != want {
		t.Errorf("Exec %q (bounded: %v): %+v, %v; want %+v", args, bounded, got, err, want)
	}
}

func testExec(t *testing.T, m *member) {
	_, err := m.Runtime.Exec(t.Context(), m.cid("none"), runtime.Exec{Command: []string{Box, "exit", "0"}})
	wantKind(t, "Exec in none", err, runtime.ErrNotRunning)
	id := m.started(t, "main", "run")
	m.exec(t, id, false, result{out: "hello\n"}, "echo", "hello")
	m.exec(t, id, false, result{code: 4, errs: "no\n"}, "fail", "no", "4")
	code, err := m.Runtime.Exec(t.Context(), id, runtime.Exec{Command: []string{Box, "echo", "dropped"}})
	if err != nil || code != 0 {
		t.Errorf("Exec without writers: code %d, %v", code, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = m.Runtime.Exec(ctx, id, runtime.Exec{Command: []string{Box, "stubborn"}})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("Exec beyond its context: %v, want its deadline and no doubt about the runtime", err)
	}
	if s := m.status(t, id); s.State != runtime.Running {
		t.Errorf("Status after an ended exec: %+v", s)
	}
}

func testExecInput(t *testing.T, m *member) {
	id := m.started(t, "main", "run")
	for what, text := range map[string]string{"some": "one\ntwo", "none": "", "much": strings.Repeat("0123456789abcdef", 1<<15)} {
		var out, errs bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		code, err := m.Runtime.Exec(ctx, id, runtime.Exec{Command: []string{Box, "cat"}, Stdin: strings.NewReader(text), Stdout: &out, Stderr: &errs})
		cancel()
		if err != nil || code != 0 || out.String() != text || errs.Len() != 0 {
			t.Errorf("Exec cat of %s: code %d, %v; %d bytes out of %d; stderr %q", what, code, err, out.Len(), len(text), errs.String())
		}
	}
	in, _ := io.Pipe()
	defer in.Close()
	code, err := m.Runtime.Exec(t.Context(), id, runtime.Exec{Command: []string{Box, "exit", "5"}, Stdin: in})
	if err != nil || code != 5 {
		t.Errorf("Exec that does not read its input: code %d, %v", code, err)
	}
}

func testExecTerminal(t *testing.T, m *member) {
	id := m.started(t, "main", "run")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	in, typed := io.Pipe()
	shown, out := io.Pipe()
	resize := make(chan runtime.Size)
	ended := make(chan error, 1)
	go func() {
		code, err := m.Runtime.Exec(ctx, id, runtime.Exec{
			Command: []string{Box, "tty"}, Stdin: in, Stdout: out,
			Terminal: &runtime.Terminal{Size: runtime.Size{Columns: 91, Rows: 17}, Resize: resize},
		})
		in.Close()
		out.Close()
		if code != 0 {
			err = errors.Join(err, fmt.Errorf("code %d", code))
		}
		ended <- err
	}()
	lines := bufio.NewScanner(shown)
	want := func(size string) {
		t.Helper()
		for lines.Scan() {
			if line := strings.TrimSpace(lines.Text()); strings.HasPrefix(line, "size") {
				if line != size {
					t.Errorf("the command sees %q, want %q", line, size)
				}
				return
			}
		}
		t.Fatalf("the terminal says nothing more; want %q", size)
	}
	want("size 91 17")
	select {
	case resize <- runtime.Size{Columns: 120, Rows: 40}:
	case <-ctx.Done():
		t.Fatal("the new size is not taken")
	}
	// The new size may come after the line that asks for it: ask until it is there.
	for size := ""; size != "size 120 40"; {
		if _, err := io.WriteString(typed, "again\n"); err != nil || !lines.Scan() {
			t.Fatalf("the new size never came: %v", err)
		}
		size = strings.TrimSpace(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, shown) }() // ends when out is closed
	if _, err := io.WriteString(typed, "end\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Exec with a terminal: %v", err)
	}
}

func testExecBounded(t *testing.T, m *member) {
	bounded := func(args ...string) runtime.Exec {
		return runtime.Exec{Command: append([]string{Box}, args...), Bounded: true}
	}
	_, err := m.Runtime.Exec(t.Context(), m.cid("none"), bounded("exit", "0"))
	wantKind(t, "bounded Exec in none", err, runtime.ErrNotRunning)
	id := m.started(t, "main", "run")
	m.exec(t, id, true, result{out: "hello\n"}, "echo", "hello")
	m.exec(t, id, true, result{code: 4, errs: "no\n"}, "fail", "no", "4")
	m.exec(t, id, true, result{}, "litter")
	m.exec(t, id, true, result{out: "0\n"}, "chicks")
	e := bounded("cat")
	e.Stdin = strings.NewReader("")
	_, err = m.Runtime.Exec(t.Context(), id, e)
	wantKind(t, "bounded Exec with input", err, runtime.ErrBadSpec)
	for what, name := range map[string]string{"no program": "/no/such/command", "no program in PATH": "no-such-command", "a directory": "/tmp"} {
		_, err = m.Runtime.Exec(t.Context(), id, runtime.Exec{Command: []string{name}, Bounded: true})
		wantKind(t, "bounded Exec of "+what, err, runtime.ErrBadSpec)
	}
	testOneAtATime(t, m, id, id, bounded)
	if s := m.status(t, id); s.State != runtime.Running {
		t.Errorf("Status after ended commands: %+v", s)
	}
}

// testOneAtATime: while a bounded command runs in the container no other one does in beside; with its end the next
// starts.
func testOneAtATime(t *testing.T, m *member, id, beside runtime.ContainerID, bounded func(...string) runtime.Exec) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		e := bounded("chatty", "20")
		e.Stdout = &once{started: started}
		_, err := m.Runtime.Exec(ctx, id, e)
		ended <- err
	}()
	select {
	case <-started:
	case err := <-ended:
		t.Fatalf("bounded Exec that says much: %v", err)
	}
	short, end := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer end()
	_, err := m.Runtime.Exec(short, beside, bounded("exit", "0"))
	wantKind(t, "bounded Exec beside another", err, runtime.ErrUnavailable)
	wantKind(t, "bounded Exec beside another", err, context.DeadlineExceeded)
	m.exec(t, id, false, result{code: 6}, "exit", "6")
	if bounded().Alone {
		m.exec(t, id, true, result{code: 7}, "exit", "7")
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("bounded Exec beyond its context: %v, want its end", err)
	}
	m.exec(t, id, true, result{code: 5}, "exit", "5")
}

// once closes started at the first thing written to it.
type once struct {
	started chan struct{}
	done    bool
}

// Write implements io.Writer.
func (o *once) Write(p []byte) (int, error) {
	if !o.done {
		o.done = true
		close(o.started)
	}
	return len(p), nil
}

func testExecAlone(t *testing.T, m *member) {
	alone := func(args ...string) runtime.Exec {
		return runtime.Exec{Command: append([]string{Box}, args...), Alone: true}
	}
	_, err := m.Runtime.Exec(t.Context(), m.cid("none"), alone("exit", "0"))
	wantKind(t, "Exec alone in none", err, runtime.ErrNotRunning)
	id := m.started(t, "main", "run")
	code, err := m.Runtime.Exec(t.Context(), id, alone("litter"))
	if err != nil || code != 0 {
		t.Errorf("Exec alone: code %d, %v", code, err)
	}
	m.exec(t, id, true, result{out: "0\n"}, "chicks")
	var out bytes.Buffer
	e := alone("env", "STEAD_GONE")
	e.Env, e.Stdout = []string{"STEAD_GONE=db-2"}, &out
	if code, err = m.Runtime.Exec(t.Context(), id, e); err != nil || code != 0 || out.String() != "db-2\n" {
		t.Errorf("Exec with a variable: code %d, %v, it says %q", code, err, out.String())
	}
	e = alone("cat")
	e.Stdin = strings.NewReader("")
	_, err = m.Runtime.Exec(t.Context(), id, e)
	wantKind(t, "Exec alone with input", err, runtime.ErrBadSpec)
	testOneAtATime(t, m, id, m.startedHere(t, "side", "run"), alone)
	if s := m.status(t, id); s.State != runtime.Running {
		t.Errorf("Status after ended commands: %+v", s)
	}
}
