package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

const (
	sigTerm = 15
	sigKill = 9
)

func testImages(t *testing.T, m *member) {
	for _, policy := range []string{spec.PullNever, spec.PullIfNotPresent} {
		img, err := m.Runtime.EnsureImage(t.Context(), runtime.Pull{Image: m.Image, Policy: policy})
		wantNil(t, "EnsureImage "+policy, err)
		if img.Name != m.Image || img.Digest == "" || img.SizeBytes <= 0 {
			t.Errorf("EnsureImage %s returned %+v", policy, img)
		}
	}
	_, err := m.Runtime.EnsureImage(t.Context(), runtime.Pull{Image: "nowhere.invalid/none:1", Policy: spec.PullNever})
	wantKind(t, "EnsureImage Never of a missing image", err, runtime.ErrImageMissing)
	all, err := m.Runtime.Images(t.Context())
	wantNil(t, "Images", err)
	if !slices.ContainsFunc(all, func(i runtime.Image) bool { return i.Name == m.Image }) {
		t.Errorf("Images %+v lacks %q", all, m.Image)
	}
	if !slices.IsSortedFunc(all, func(a, b runtime.Image) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) }) {
		t.Errorf("Images are not sorted: %+v", all)
	}
}

func testSandbox(t *testing.T, m *member) {
	wantNil(t, "RemoveSandbox of none", m.Runtime.RemoveSandbox(t.Context(), m.id))
	first := m.sandbox(t)
	want := runtime.Sandbox{ID: m.id, Token: m.token, NetNS: first.NetNS, Hostname: m.id.MemberName()}
	if first != want || first.NetNS == "" {
		t.Errorf("EnsureSandbox returned %+v, want %+v with a NetNS", first, want)
	}
	if again := m.sandbox(t); again != first {
		t.Errorf("EnsureSandbox again returned %+v, want %+v", again, first)
	}
	later := spec.Token{Epoch: 1, Number: 999}
	_, err := m.Runtime.EnsureSandbox(t.Context(), runtime.Sandbox{ID: m.id, Token: later, Hostname: "x"})
	wantKind(t, "EnsureSandbox of another token", err, runtime.ErrExists)
	all, err := m.Runtime.Sandboxes(t.Context())
	wantNil(t, "Sandboxes", err)
	if !slices.Contains(all, first) {
		t.Errorf("Sandboxes %+v lacks %+v", all, first)
	}
	wantNil(t, "RemoveSandbox", m.Runtime.RemoveSandbox(t.Context(), m.id))
	s, err := m.Runtime.EnsureSandbox(t.Context(), runtime.Sandbox{ID: m.id, Token: later, Hostname: "x"})
	wantNil(t, "EnsureSandbox after removal", err)
	if s.Token != later || s.Hostname != "x" {
		t.Errorf("EnsureSandbox after removal returned %+v", s)
	}
}

func testCreateRefusals(t *testing.T, m *member) {
	c := m.container("main", "run")
	wantKind(t, "Create without a sandbox", m.Runtime.Create(t.Context(), c), runtime.ErrNotFound)
	m.sandbox(t)
	c.Token.Number++
	wantKind(t, "Create for a token without a sandbox", m.Runtime.Create(t.Context(), c), runtime.ErrNotFound)
	c.Token = m.token
	c.Image = "nowhere.invalid/none:1"
	wantKind(t, "Create without an image", m.Runtime.Create(t.Context(), c), runtime.ErrImageMissing)
	c.Image = m.Image
	wantNil(t, "Create", m.Runtime.Create(t.Context(), c))
	wantKind(t, "Create again", m.Runtime.Create(t.Context(), c), runtime.ErrExists)
}

func testLifecycle(t *testing.T, m *member) {
	ctx := t.Context()
	m.sandbox(t)
	c := m.container("main", "run")
	c.Attempt = 2
	wantKind(t, "Start of none", m.Runtime.Start(ctx, c.ID), runtime.ErrNotFound)
	wantKind(t, "Signal to none", m.Runtime.Signal(ctx, c.ID, sigTerm, false), runtime.ErrNotFound)
	_, err := m.Runtime.Status(ctx, c.ID)
	wantKind(t, "Status of none", err, runtime.ErrNotFound)
	wantNil(t, "Create", m.Runtime.Create(ctx, c))
	if s := m.status(t, c.ID); s.State != runtime.Created || s.Token != m.token || s.Attempt != 2 ||
		s.ID != c.ID || s.Labels["test"] != "main" || len(s.Labels) != 1 || s.Image != m.Image {
		t.Errorf("Status after Create: %+v", s)
	}
	wantKind(t, "Signal to a created one", m.Runtime.Signal(ctx, c.ID, sigTerm, false), runtime.ErrNotRunning)
	wantNil(t, "Start", m.Runtime.Start(ctx, c.ID))
	if s := m.status(t, c.ID); s.State != runtime.Running || s.Started.IsZero() {
		t.Errorf("Status after Start: %+v", s)
	}
	m.ready(t, c)
	wantNil(t, "Start while it runs", m.Runtime.Start(ctx, c.ID))
	wantNil(t, "Signal", m.Runtime.Signal(ctx, c.ID, sigTerm, false))
	if e := m.wait(t, c.ID); e.Code != 0 || e.Unknown || e.OOM || e.At.IsZero() {
		t.Errorf("Wait after SIGTERM: %+v", e)
	}
	if s := m.status(t, c.ID); s.State != runtime.Exited || s.Exit.Code != 0 || s.Exit.Unknown {
		t.Errorf("Status after exit: %+v", s)
	}
	wantKind(t, "Signal after exit", m.Runtime.Signal(ctx, c.ID, sigTerm, false), runtime.ErrNotRunning)
	wantKind(t, "Start after exit", m.Runtime.Start(ctx, c.ID), runtime.ErrExists)
	wantNil(t, "Remove", m.Runtime.Remove(ctx, c.ID))
	wantNil(t, "Remove again", m.Runtime.Remove(ctx, c.ID))
	_, err = m.Runtime.Status(ctx, c.ID)
	wantKind(t, "Status after Remove", err, runtime.ErrNotFound)
	wantNil(t, "Create after Remove", m.Runtime.Create(ctx, c))
}

func testExitCode(t *testing.T, m *member) {
	id := m.started(t, "main", "exit", "3")
	if e := m.wait(t, id); e.Code != 3 || e.Unknown {
		t.Errorf("Wait: %+v, want code 3", e)
	}
	if e := m.wait(t, id); e.Code != 3 {
		t.Errorf("Wait again: %+v, want code 3", e)
	}
	if s := m.status(t, id); s.State != runtime.Exited || s.Exit.Code != 3 {
		t.Errorf("Status: %+v, want exit code 3", s)
	}
}

func testWait(t *testing.T, m *member) {
	_, err := m.Runtime.Wait(t.Context(), m.cid("none"))
	wantKind(t, "Wait for none", err, runtime.ErrNotFound)
	m.sandbox(t)
	wantNil(t, "Create", m.Runtime.Create(t.Context(), m.container("early", "run")))
	_, err = m.Runtime.Wait(t.Context(), m.cid("early"))
	wantKind(t, "Wait for a created one", err, runtime.ErrNotRunning)

	id := m.started(t, "main", "run")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if e, err := m.Runtime.Wait(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait beyond its context: %+v, %v", e, err)
	}
}

func testStubborn(t *testing.T, m *member) {
	id := m.started(t, "main", "stubborn")
	wantNil(t, "Signal TERM", m.Runtime.Signal(t.Context(), id, sigTerm, false))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if e, err := m.Runtime.Wait(ctx, id); err == nil {
		t.Fatalf("a stubborn process ended by SIGTERM: %+v", e)
	}
	wantNil(t, "Signal KILL", m.Runtime.Signal(t.Context(), id, sigKill, true))
	if e := m.wait(t, id); e.Code != 137 || e.OOM || e.Unknown {
		t.Errorf("Wait after SIGKILL: %+v, want code 137", e)
	}
}

func testBadCommand(t *testing.T, m *member) {
	m.sandbox(t)
	c := m.container("main")
	c.Command = []string{"/no/such/command"}
	err := m.Runtime.Create(t.Context(), c)
	if err == nil {
		err = m.Runtime.Start(t.Context(), c.ID)
		if s := m.status(t, c.ID); s.State != runtime.Created {
			t.Errorf("Status after a bad start: %+v, want Created", s)
		}
	}
	wantKind(t, "a command that is not there", err, runtime.ErrBadSpec)
	if !m.empty(t) {
		t.Error("a process is left after a bad start")
	}
}

func testKillAll(t *testing.T, m *member) {
	if !m.empty(t) {
		t.Error("an identity that never ran is not empty")
	}
	wantNil(t, "KillAll of none", m.Runtime.KillAll(t.Context(), m.id))
	other := &member{suite: m.suite, id: m.id, token: m.token}
	other.id.Ordinal += 100
	t.Cleanup(func() { other.clean(t) })
	spared := other.started(t, "main", "run")
	one, two := m.started(t, "one", "stubborn"), m.started(t, "two", "run")
	if m.empty(t) {
		t.Error("empty while two containers run")
	}
	wantKind(t, "RemoveSandbox while processes run", m.Runtime.RemoveSandbox(t.Context(), m.id), runtime.ErrExists)
	wantNil(t, "KillAll", m.Runtime.KillAll(t.Context(), m.id))
	if !m.empty(t) {
		t.Error("not empty after KillAll")
	}
	for _, id := range []runtime.ContainerID{one, two} {
		if e := m.wait(t, id); e.Code != 137 {
			t.Errorf("%s after KillAll: %+v, want code 137", id.Name, e)
		}
	}
	if s := other.status(t, spared); s.State != runtime.Running {
		t.Errorf("another identity after KillAll: %+v", s)
	}
}

func testRemoveRunning(t *testing.T, m *member) {
	id := m.started(t, "main", "stubborn")
	wantNil(t, "Remove of a running one", m.Runtime.Remove(t.Context(), id))
	if !m.empty(t) {
		t.Error("not empty after Remove")
	}
	_, err := m.Runtime.Status(t.Context(), id)
	wantKind(t, "Status after Remove", err, runtime.ErrNotFound)
}

func testAgain(t *testing.T, m *member) {
	id := m.started(t, "b", "run")
	wantNil(t, "Create", m.Runtime.Create(t.Context(), m.container("a", "run")))
	again := m.Again(t)
	box, err := again.EnsureSandbox(t.Context(), runtime.Sandbox{ID: m.id, Token: m.token, Hostname: m.id.MemberName()})
	wantNil(t, "EnsureSandbox by another agent", err)
	if mine := m.sandbox(t); box != mine {
		t.Errorf("EnsureSandbox by another agent: %+v, want %+v", box, mine)
	}
	list, err := again.List(t.Context())
	wantNil(t, "List by another agent", err)
	var got []runtime.Status
	for _, s := range list {
		if s.ID.ID == m.id {
			got = append(got, s)
		}
	}
	if len(got) != 2 || got[0].ID.Name != "a" || got[0].State != runtime.Created || got[1].ID.Name != "b" ||
		got[1].State != runtime.Running || got[1].Token != m.token || got[1].Labels["test"] != "b" {
		t.Fatalf("List by another agent: %+v", got)
	}
	wantNil(t, "Signal by another agent", again.Signal(t.Context(), id, sigTerm, false))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if e, err := again.Wait(ctx, id); err != nil || e.Code != 0 {
		t.Errorf("Wait by another agent: %+v, %v", e, err)
	}
}

func testUsage(t *testing.T, m *member) {
	usage := func() runtime.Usage {
		t.Helper()
		u, err := m.Runtime.Usage(t.Context())
		wantNil(t, "Usage", err)
		return u
	}
	id := m.started(t, "main", "run")
	if u := usage(); u.Host.CPU < 0 || u.Host.MemoryBytes < 0 {
		t.Errorf("Usage told %+v of the host", u.Host)
	} else if _, told := u.Containers[id]; !told {
		t.Errorf("Usage told %+v, not of %v, which runs", u.Containers, id)
	}
	wantNil(t, "Signal", m.Runtime.Signal(t.Context(), id, sigKill, true))
	m.wait(t, id)
	if _, told := usage().Containers[id]; told {
		t.Errorf("Usage tells of %v, which has ended", id)
	}
}

func testDial(t *testing.T, m *member) {
	_, err := m.Runtime.Dial(t.Context(), m.id, 9)
	wantKind(t, "Dial without a sandbox", err, runtime.ErrNotRunning)
	m.sandbox(t)
	conn, err := m.Runtime.Dial(t.Context(), m.id, 9)
	if err == nil {
		t.Errorf("Dial of a port where nothing listens returned %v", conn.RemoteAddr())
	}
	wantNil(t, "RemoveSandbox", m.Runtime.RemoveSandbox(t.Context(), m.id))
	_, err = m.Runtime.Dial(t.Context(), m.id, 9)
	wantKind(t, "Dial after RemoveSandbox", err, runtime.ErrNotRunning)
}

func testEndedContext(t *testing.T, m *member) {
	m.sandbox(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Runtime.Create(ctx, m.container("main", "run")); err == nil {
		t.Error("Create with an ended context succeeded")
	}
	if err := m.Runtime.KillAll(ctx, m.id); err == nil {
		t.Error("KillAll with an ended context succeeded")
	}
	_, err := m.Runtime.Status(t.Context(), m.cid("main"))
	wantKind(t, "Status", err, runtime.ErrNotFound)
}
