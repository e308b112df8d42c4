package enter

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLimitsAreReadFromTheKernelsTable(t *testing.T) {
	const head = "Limit                     Soft Limit           Hard Limit           Units     \n"
	for _, c := range []struct {
		name, text string
		want       []Limit
		fails      bool
	}{
		{"numbers and none", head +
			"Max cpu time              unlimited            unlimited            seconds   \n" +
			"Max file size             4096                 unlimited            bytes     \n" +
			"Max nice priority         0                    0                    \n",
			[]Limit{{0, unix.RLIM_INFINITY, unix.RLIM_INFINITY}, {1, 4096, unix.RLIM_INFINITY}, {2, 0, 0}}, false},
		{"a short line", head + "Max cpu time 1 2\n", nil, true},
		{"a word", head + "Max cpu time              much                 unlimited            seconds   \n", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseLimits(c.text)
			if !reflect.DeepEqual(got, c.want) || (err != nil) != c.fails {
				t.Errorf("got %v, %v; want %v, failure %v", got, err, c.want, c.fails)
			}
		})
	}
}

func TestTheLimitsOfTheSpecWinOverThoseOfTheProcess(t *testing.T) {
	all, err := limits(os.Getpid(), []Limit{{unix.RLIMIT_NOFILE, 3, 5}})
	if err != nil {
		t.Fatal(err)
	}
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil {
		t.Fatal(err)
	}
	if got, want := all[unix.RLIMIT_NOFILE], (Limit{unix.RLIMIT_NOFILE, 3, 5}); got != want {
		t.Errorf("files: %v, want %v", got, want)
	}
	if got, want := all[unix.RLIMIT_CORE], (Limit{unix.RLIMIT_CORE, core.Cur, core.Max}); got != want {
		t.Errorf("core: %v, want %v", got, want)
	}
}

func TestHomeIsThatOfTheUser(t *testing.T) {
	passwd := "root:x:0:0:root:/root:/bin/sh\nbroken\npostgres:x:999:999::/var/lib/postgres:/bin/sh\nnone:x:5:5:::\n"
	for uid, want := range map[uint32]string{0: "/root", 999: "/var/lib/postgres", 5: "", 7: ""} {
		if got := homeIn(strings.NewReader(passwd), uid); got != want {
			t.Errorf("user %d: %q, want %q", uid, got, want)
		}
	}
}

// TestMain lets the test binary be a helper that says what its command is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "enter" {
		conn := os.NewFile(connFD, "agent")
		var p Plan
		if err := receive(conn, p.wire); err != nil {
			os.Exit(2)
		}
		for _, word := range p.Command {
			if word == "wait" {
				time.Sleep(time.Hour)
			}
			answer := message{Kind: word, Text: "why", Code: 7}
			if err := send(conn, answer.wire); err != nil {
				os.Exit(2)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// open makes a helper of the test binary, and a container that it is given.
func open(t *testing.T) (*Helper, *Container) {
	t.Helper()
	h, err := NewHelper("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	c, err := Open(os.Getpid(), Plan{}, false, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return h, c
}

// TestWhatAHelperSaysIsToldAsItIs: every word of a helper, and its silence, has one
// meaning. A helper that dies before the command ran has run nothing.
func TestWhatAHelperSaysIsToldAsItIs(t *testing.T) {
	h, container := open(t)
	for _, c := range []struct {
		name  string
		words []string
		code  int
		kinds []error // all that it is of those that there are
	}{
		{"an exit", []string{started, exited}, 7, nil},
		{"no such program", []string{commandWord}, 0, []error{ErrCommand}},
		{"a refusal", []string{refused}, 0, []error{ErrRefused}},
		{"dead before", nil, 0, []error{ErrRefused}},
		{"late", []string{"wait"}, 0, []error{ErrLate, context.DeadlineExceeded}},
		{"overtime", []string{started, "wait"}, 0, []error{context.DeadlineExceeded}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			for limit := 100 * time.Millisecond; ; limit *= 2 { // until it has said its words, however slow it is
				if slices.Contains(c.words, "wait") {
					short, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					ctx = short
				}
				swept := 0
				code, err := h.Run(ctx, container, Command{Args: c.words, Sweep: func() error { swept++; return nil }})
				var kinds []error
				for _, kind := range []error{ErrCommand, ErrRefused, ErrLate, context.DeadlineExceeded} {
					if errors.Is(err, kind) {
						kinds = append(kinds, kind)
					}
				}
				if c.name == "overtime" && errors.Is(err, ErrLate) && limit < time.Minute {
					continue
				}
				if code != c.code || !slices.Equal(kinds, c.kinds) || swept != 1 || (err == nil) != (c.kinds == nil) {
					t.Errorf("code %d, %v, swept %d times; want code %d, %v, once", code, err, swept, c.code, c.kinds)
				}
				return
			}
		})
	}
	_, err := h.Run(t.Context(), container, Command{Args: []string{started}, Sweep: func() error { return nil }})
	if err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a helper that dies while the command runs: %v, want an error that is no refusal", err)
	}
}

// TestTheHelpersProgramCannotBeWritten: whoever finds it in /proc can read it only
// (CVE-2019-5736).
func TestTheHelpersProgramCannotBeWritten(t *testing.T) {
	h, _ := open(t)
	path := h.path()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil { // a memory file opens, and takes nothing
		_, err = f.Write([]byte("#!/bin/evil\n"))
		f.Close()
	}
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ETXTBSY) {
		t.Errorf("writing to it: %v, want not permitted", err)
	}
	if err := os.Truncate(path, 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("emptying it: %v, want not permitted", err)
	}
}

func TestAContainerWhoseProcessHasEndedIsNotEntered(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := Open(cmd.Process.Pid, Plan{}, false, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !c.Alive() {
		t.Error("it is not alive")
	}
	cmd.Process.Kill()
	cmd.Wait()
	if c.Alive() {
		t.Error("it is alive")
	}
	if _, err := Open(cmd.Process.Pid, Plan{}, false, func() error { return nil }); err == nil {
		t.Error("a process that ended was opened")
	}
	other := errors.New("it is another's")
	if _, err := Open(os.Getpid(), Plan{}, false, func() error { return other }); !errors.Is(err, other) {
		t.Errorf("a process of another container: %v", err)
	}
}
