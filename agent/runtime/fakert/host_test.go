package fakert_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func TestRuntimePromises(t *testing.T) {
	h := fakert.New()
	h.OnStart(func(c runtime.Container) fakert.Behaviour {
		b := fakert.Behaviour{}
		switch {
		case c.Command[0] != runtimetest.Box:
			b.StartErr = runtime.ErrBadSpec
		case c.Args[0] == "stubborn":
			b.IgnoreTerm = true
		case c.Args[0] == "litter":
			b.Exits, b.Leaves = true, true
		case c.Args[0] == "exit":
			b.Exits = true
			b.Code, _ = strconv.Atoi(c.Args[1])
		}
		return b
	})
	h.OnExec(func(ctx context.Context, _ runtime.ContainerID, e runtime.Exec) (int, error) {
		if e.Command[0] != runtimetest.Box {
			return 0, runtime.ErrBadSpec
		}
		switch e.Command[1] {
		case "chicks":
			fmt.Fprintln(e.Stdout, 0)
		case "chatty":
			fmt.Fprintln(e.Stdout, "tick")
			<-ctx.Done()
			return 0, ctx.Err()
		case "echo":
			if e.Stdout != nil {
				fmt.Fprintln(e.Stdout, e.Command[2])
			}
		case "env":
			value, _ := strings.CutPrefix(e.Env[0], e.Command[2]+"=")
			fmt.Fprintln(e.Stdout, value)
		case "fail":
			fmt.Fprintln(e.Stderr, e.Command[2])
			return strconv.Atoi(e.Command[3])
		case "stubborn":
			<-ctx.Done()
			return 0, ctx.Err()
		case "exit":
			return strconv.Atoi(e.Command[2])
		case "cat":
			_, err := io.Copy(e.Stdout, e.Stdin)
			return 0, err
		case "tty":
			return 0, tty(e)
		}
		return 0, nil
	})
	runtimetest.Run(t, func(*testing.T) runtimetest.Subject {
		return runtimetest.Subject{
			Runtime: h,
			Again:   func(*testing.T) runtime.Runtime { return h },
			Archive: func() io.Reader { return strings.NewReader("box:1") },
			Image:   "box:1",
		}
	})
}

// tty does what the box's verb does.
func tty(e runtime.Exec) error {
	size := e.Terminal.Size
	fmt.Fprintln(e.Stdout, "size", size.Columns, size.Rows)
	size = <-e.Terminal.Resize
	for line := bufio.NewScanner(e.Stdin); line.Scan() && line.Text() != "end"; {
		fmt.Fprintln(e.Stdout, "size", size.Columns, size.Rows)
	}
	return nil
}

var (
	db0   = spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	main0 = runtime.ContainerID{ID: db0, Name: "main"}
	one   = spec.Token{Epoch: 1, Number: 1}
	two   = spec.Token{Epoch: 1, Number: 2}
)

func start(t *testing.T, h *fakert.Host, token spec.Token) {
	t.Helper()
	h.AddImage("box:1")
	if _, err := h.EnsureSandbox(t.Context(), runtime.Sandbox{ID: db0, Token: token, Hostname: "db-0"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Create(t.Context(), runtime.Container{ID: main0, Token: token, Image: "box:1"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context(), main0); err != nil {
		t.Fatal(err)
	}
}

func TestStartsAreCountedPerLife(t *testing.T) {
	h := fakert.New()
	start(t, h, one)
	if got := h.RunningTokens(db0); !slices.Equal(got, []spec.Token{one}) {
		t.Errorf("running tokens %v, want [%v]", got, one)
	}
	if err := h.Remove(t.Context(), main0); err != nil {
		t.Fatal(err)
	}
	if err := h.RemoveSandbox(t.Context(), db0); err != nil {
		t.Fatal(err)
	}
	start(t, h, two)
	if a, b := h.StartsOf(main0, one), h.StartsOf(main0, two); a != 1 || b != 1 {
		t.Errorf("starts of %v: %d, of %v: %d; want 1 and 1", one, a, two, b)
	}
	if got := h.RunningTokens(db0); !slices.Equal(got, []spec.Token{two}) {
		t.Errorf("running tokens %v, want [%v]", got, two)
	}
}

func TestDaemonDownLeavesProcessesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := fakert.New()
		start(t, h, one)
		waited := make(chan error)
		go func() { _, err := h.Wait(t.Context(), main0); waited <- err }()
		synctest.Wait()
		h.Down(true)
		if err := <-waited; !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("Wait when the daemon goes: %v", err)
		}
		if err := h.Ping(t.Context()); !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("Ping while down: %v", err)
		}
		if _, err := h.List(t.Context()); !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("List while down: %v", err)
		}
		if empty, err := h.Empty(t.Context(), db0); err != nil || empty {
			t.Errorf("Empty while down: %v, %v; want false", empty, err)
		}
		h.Down(false)
		if s, err := h.Status(t.Context(), main0); err != nil || s.State != runtime.Running {
			t.Errorf("Status after the daemon came back: %+v, %v", s, err)
		}
	})
}

func TestRebootLosesWhatLivesInMemory(t *testing.T) {
	h := fakert.New()
	start(t, h, one)
	v := records.MemberVolume{Claim: "data", ID: "v1"}
	if _, err := h.Ensure(t.Context(), db0, v, true, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Scratch(t.Context(), runtime.Scratch{ID: db0, Token: one, Name: "tmp"}); err != nil {
		t.Fatal(err)
	}
	boxes, _ := h.Sandboxes(t.Context())
	if err := h.Attach(t.Context(), db0, boxes[0].NetNS, netip.MustParseAddr("10.88.0.1")); err != nil {
		t.Fatal(err)
	}
	h.Reboot()
	if s, err := h.Status(t.Context(), main0); err != nil || s.State != runtime.Lost {
		t.Errorf("Status after reboot: %+v, %v; want Lost", s, err)
	}
	if boxes, _ := h.Sandboxes(t.Context()); len(boxes) != 0 {
		t.Errorf("sandboxes after reboot: %v", boxes)
	}
	if ids, _ := h.Attached(t.Context()); len(ids) != 0 {
		t.Errorf("links after reboot: %v", ids)
	}
	if clean, _ := h.Clean(t.Context(), db0); !clean {
		t.Error("scratch is left after reboot")
	}
	if _, err := h.Ensure(t.Context(), db0, v, false, nil); err != nil {
		t.Errorf("the volume is gone after reboot: %v", err)
	}
}

func TestVolumesKeepTheirOwner(t *testing.T) {
	h := fakert.New()
	v := records.MemberVolume{Claim: "data", ID: "v1"}
	if _, err := h.Ensure(t.Context(), db0, v, false, nil); !errors.Is(err, runtime.ErrAbsent) {
		t.Errorf("a used volume that is missing: %v", err)
	}
	if _, err := h.Ensure(t.Context(), db0, v, true, nil); err != nil {
		t.Fatal(err)
	}
	v.ID = "v2"
	if _, err := h.Ensure(t.Context(), db0, v, true, nil); !errors.Is(err, runtime.ErrForeign) {
		t.Errorf("another volume id: %v", err)
	}
	h.DropVolumes(db0, "data")
	if _, err := h.Ensure(t.Context(), db0, v, true, nil); err != nil {
		t.Errorf("after the disk was replaced: %v", err)
	}
}

func TestUnkillableProcessIsNeverCalledGone(t *testing.T) {
	h := fakert.New()
	h.OnStart(func(runtime.Container) fakert.Behaviour { return fakert.Behaviour{Unkillable: true} })
	start(t, h, one)
	if err := h.KillAll(t.Context(), db0); err == nil {
		t.Error("KillAll of an unkillable process succeeded")
	}
	if err := h.Remove(t.Context(), main0); err == nil {
		t.Error("Remove of an unkillable process succeeded")
	}
	if empty, _ := h.Empty(t.Context(), db0); empty {
		t.Error("empty with an unkillable process")
	}
	if !h.Exit(main0, runtime.Exit{Code: 1}) {
		t.Error("Exit found no process")
	}
	if empty, _ := h.Empty(t.Context(), db0); !empty {
		t.Error("not empty after its end")
	}
}

func TestScriptedCallFails(t *testing.T) {
	h := fakert.New()
	bad := errors.New("bad")
	h.OnCall(func(_ context.Context, c fakert.Call) error {
		if c == (fakert.Call{Op: "Start", ID: db0, Name: "main"}) {
			return bad
		}
		return nil
	})
	h.AddImage("box:1")
	if _, err := h.EnsureSandbox(t.Context(), runtime.Sandbox{ID: db0, Token: one, Hostname: "db-0"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Create(t.Context(), runtime.Container{ID: main0, Token: one, Image: "box:1"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context(), main0); !errors.Is(err, bad) {
		t.Errorf("Start: %v, want the scripted error", err)
	}
	if s, _ := h.Status(t.Context(), main0); s.State != runtime.Created || len(h.Starts(db0)) != 0 {
		t.Errorf("after a failed start: %+v, starts %v", s, h.Starts(db0))
	}
}
