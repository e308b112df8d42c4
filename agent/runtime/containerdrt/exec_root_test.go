package containerdrt_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
)

// hang stops the daemon without ending it, and returns what lets it go on.
func (h *host) hang() (goOn func()) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		h.t.Fatal(err)
	}
	goOn = func() { h.cmd.Process.Signal(syscall.SIGCONT) }
	h.t.Cleanup(goOn) // before the host is closed
	return goOn
}

// TestAHungDaemonIsNoWordAboutAContainer: a probe's command that the daemon did not
// begin, or whose end it does not tell, has not failed.
func TestAHungDaemonIsNoWordAboutAContainer(t *testing.T) {
	h, rt, c := newRunning(t)
	doubt := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, runtime.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want unavailable and the deadline", what, err)
		}
	}

	// The daemon hangs once the command runs.
	ended := make(chan error, 1)
	for limit, runs := 5*time.Second, false; !runs; limit *= 2 { // in time for it to begin
		began := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		go func() {
			_, err := rt.Exec(ctx, c.ID, runtime.Exec{Command: []string{"/box", "chatty", "20"}, Stdout: &first{began: began}})
			ended <- err
		}()
		select {
		case <-began:
			runs = true
		case err := <-ended:
			if !errors.Is(err, context.DeadlineExceeded) || limit > time.Minute {
				t.Fatalf("a command that says much: %v", err)
			}
		}
	}
	goOn := h.hang()
	doubt("a command that runs when the daemon hangs", <-ended)

	// And it hangs before one begins.
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := rt.Exec(short, c.ID, runtime.Exec{Command: []string{"/box", "exit", "0"}})
	doubt("a command that cannot begin", err)

	goOn()
	h.until("commands can be run again", func() bool {
		code, err := rt.Exec(t.Context(), c.ID, runtime.Exec{Command: []string{"/box", "exit", "3"}})
		return err == nil && code == 3
	})
}

// first closes began at the first thing written to it.
type first struct {
	began chan struct{}
	done  bool
}

func (f *first) Write(p []byte) (int, error) {
	if !f.done {
		f.done = true
		close(f.began)
	}
	return len(p), nil
}
