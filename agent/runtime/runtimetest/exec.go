package runtimetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
)

func testExec(t *testing.T, m *member) {
	_, err := m.Runtime.Exec(t.Context(), m.cid("none"), runtime.Exec{Command: []string{Box, "exit", "0"}})
	wantKind(t, "Exec in none", err, runtime.ErrNotRunning)
	id := m.started(t, "main", "run")
	var out, errs bytes.Buffer
	code, err := m.Runtime.Exec(t.Context(), id, runtime.Exec{Command: []string{Box, "echo", "hello"}, Stdout: &out, Stderr: &errs})
	wantNil(t, "Exec echo", err)
	if code != 0 || out.String() != "hello\n" || errs.Len() != 0 {
		t.Errorf("Exec echo: code %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
	out.Reset()
	code, err = m.Runtime.Exec(t.Context(), id, runtime.Exec{Command: []string{Box, "fail", "no", "4"}, Stdout: &out, Stderr: &errs})
	wantNil(t, "Exec fail", err)
	if code != 4 || out.Len() != 0 || errs.String() != "no\n" {
		t.Errorf("Exec fail: code %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
	code, err = m.Runtime.Exec(t.Context(), id, runtime.Exec{Command: []string{Box, "echo", "dropped"}})
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
	type result struct {
		code int
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		code, err := m.Runtime.Exec(ctx, id, runtime.Exec{
			Command: []string{Box, "tty"}, Stdin: in, Stdout: out,
			Terminal: &runtime.Terminal{Size: runtime.Size{Columns: 91, Rows: 17}, Resize: resize},
		})
		in.Close()
		out.Close()
		ended <- result{code, err}
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
	if r := <-ended; r.err != nil || r.code != 0 {
		t.Errorf("Exec with a terminal: %+v", r)
	}
}

func testExecBounded(t *testing.T, m *member) {
	bounded := func(args ...string) runtime.Exec {
		return runtime.Exec{Command: append([]string{Box}, args...), Bounded: true}
	}
	_, err := m.Runtime.Exec(t.Context(), m.cid("none"), bounded("exit", "0"))
	wantKind(t, "bounded Exec in none", err, runtime.ErrNotRunning)
	id := m.started(t, "main", "run")
	for _, c := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{[]string{"echo", "hello"}, 0, "hello\n", ""},
		{[]string{"fail", "no", "4"}, 4, "", "no\n"},
		{[]string{"litter"}, 0, "", ""},
		{[]string{"chicks"}, 0, "0\n", ""},
	} {
		var out, errs bytes.Buffer
		e := bounded(c.args...)
		e.Stdout, e.Stderr = &out, &errs
		code, err := m.Runtime.Exec(t.Context(), id, e)
		if err != nil || code != c.code || out.String() != c.out || errs.String() != c.errs {
			t.Errorf("%v: code %d, %v, stdout %q, stderr %q; want %+v", c.args, code, err, out.String(), errs.String(), c)
		}
	}
	e := bounded("cat")
	e.Stdin = strings.NewReader("")
	_, err = m.Runtime.Exec(t.Context(), id, e)
	wantKind(t, "bounded Exec with input", err, runtime.ErrBadSpec)
	_, err = m.Runtime.Exec(t.Context(), id, runtime.Exec{Command: []string{"/no/such/command"}, Bounded: true})
	wantKind(t, "bounded Exec of no program", err, runtime.ErrBadSpec)
	_, err = m.Runtime.Exec(t.Context(), id, runtime.Exec{Command: []string{"no-such-command"}, Bounded: true})
	wantKind(t, "bounded Exec of no program in PATH", err, runtime.ErrBadSpec)
	_, err = m.Runtime.Exec(t.Context(), id, runtime.Exec{Command: []string{"/tmp"}, Bounded: true})
	wantKind(t, "bounded Exec of a directory", err, runtime.ErrBadSpec)
	testOneAtATime(t, m, id, bounded)
	if s := m.status(t, id); s.State != runtime.Running {
		t.Errorf("Status after ended commands: %+v", s)
	}
}

// testOneAtATime: while a bounded command runs no other one does; with its end the next
// begins.
func testOneAtATime(t *testing.T, m *member, id runtime.ContainerID, bounded func(...string) runtime.Exec) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		e := bounded("chatty", "20")
		e.Stdout = &once{began: began}
		_, err := m.Runtime.Exec(ctx, id, e)
		ended <- err
	}()
	select {
	case <-began:
	case err := <-ended:
		t.Fatalf("bounded Exec that says much: %v", err)
	}
	short, end := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer end()
	_, err := m.Runtime.Exec(short, id, bounded("exit", "0"))
	wantKind(t, "bounded Exec beside another", err, runtime.ErrUnavailable)
	wantKind(t, "bounded Exec beside another", err, context.DeadlineExceeded)
	if code, err := m.Runtime.Exec(t.Context(), id, runtime.Exec{Command: []string{Box, "exit", "6"}}); err != nil || code != 6 {
		t.Errorf("Exec beside a bounded one: code %d, %v", code, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("bounded Exec beyond its context: %v, want its end", err)
	}
	if code, err := m.Runtime.Exec(t.Context(), id, bounded("exit", "5")); err != nil || code != 5 {
		t.Errorf("bounded Exec after another: code %d, %v", code, err)
	}
}

// once closes began at the first thing written to it.
type once struct {
	began chan struct{}
	done  bool
}

// Write implements io.Writer.
func (o *once) Write(p []byte) (int, error) {
	if !o.done {
		o.done = true
		close(o.began)
	}
	return len(p), nil
}
