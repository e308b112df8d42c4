package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
)

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
