package runtimetest

import (
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime"
)

// shared makes a sandbox whose containers share their processes.
func (m *member) shared(t *testing.T) runtime.Sandbox {
	t.Helper()
	s, err := m.Runtime.EnsureSandbox(t.Context(), runtime.Sandbox{ID: m.id, Token: m.token, Hostname: m.id.MemberName(), SharedPIDs: true})
	wantNil(t, "EnsureSandbox with shared processes", err)
	return s
}

func testSharedSandbox(t *testing.T, m *member) {
	first := m.shared(t)
	if !first.SharedPIDs || first.NetNS == "" {
		t.Errorf("EnsureSandbox returned %+v", first)
	}
	if !m.empty(t) {
		t.Error("not empty although no container was made")
	}
	again, err := m.Again(t).EnsureSandbox(t.Context(), runtime.Sandbox{ID: m.id, Token: m.token, Hostname: m.id.MemberName(), SharedPIDs: true})
	wantNil(t, "EnsureSandbox by another agent", err)
	if again != first {
		t.Errorf("EnsureSandbox by another agent: %+v, want %+v", again, first)
	}
	list, err := m.Runtime.List(t.Context())
	wantNil(t, "List", err)
	for _, s := range list {
		if s.ID.ID == m.id {
			t.Errorf("List has %+v before a container was made", s)
		}
	}
	id := m.startedHere(t, "main", "run")
	if m.empty(t) {
		t.Error("empty while a container runs")
	}
	wantKind(t, "RemoveSandbox while a container runs", m.Runtime.RemoveSandbox(t.Context(), m.id), runtime.ErrExists)
	if u, err := m.Runtime.Usage(t.Context()); err != nil || len(u.Containers) == 0 {
		t.Errorf("Usage: %+v, %v", u, err)
	} else {
		for used := range u.Containers {
			if used.ID == m.id && used != id {
				t.Errorf("Usage has %v beside the container", used)
			}
		}
	}
	wantNil(t, "Signal", m.Runtime.Signal(t.Context(), id, sigTerm, false))
	if e := m.wait(t, id); e.Code != 0 || e.Unknown {
		t.Errorf("Wait after SIGTERM: %+v", e)
	}
	wantNil(t, "Remove", m.Runtime.Remove(t.Context(), id))
	if !m.empty(t) {
		t.Error("not empty after its container was removed")
	}
	wantNil(t, "RemoveSandbox", m.Runtime.RemoveSandbox(t.Context(), m.id))
	wantKind(t, "Create after RemoveSandbox", m.Runtime.Create(t.Context(), m.container("main", "run")), runtime.ErrNotFound)
}

func testLeft(t *testing.T, m *member) {
	m.shared(t)
	other := m.startedHere(t, "other", "run")
	id := m.startedHere(t, "main", "litter")
	m.wait(t, id)
	deadline := time.Now().Add(time.Minute)
	for m.status(t, id).Left { // the runtime may kill it by itself
		wantNil(t, "Signal to what is left", ignore(m.Runtime.Signal(t.Context(), id, sigKill, true), runtime.ErrNotRunning))
		if time.Now().After(deadline) {
			t.Fatal("what a container left is not killed")
		}
		time.Sleep(10 * time.Millisecond)
	}
	wantKind(t, "Signal after exit", m.Runtime.Signal(t.Context(), id, sigKill, true), runtime.ErrNotRunning)
	if s := m.status(t, other); s.State != runtime.Running {
		t.Errorf("its neighbour: %+v", s)
	}
	wantNil(t, "Remove", m.Runtime.Remove(t.Context(), id))
	if s := m.status(t, m.startedHere(t, "main", "run")); s.State != runtime.Running {
		t.Errorf("started again: %+v", s)
	}
}

func testLostSandbox(t *testing.T, m *member) {
	first := m.shared(t)
	one, two := m.startedHere(t, "one", "run"), m.startedHere(t, "two", "stubborn")
	wantNil(t, "KillAll", m.Runtime.KillAll(t.Context(), m.id))
	if !m.empty(t) {
		t.Error("not empty after KillAll")
	}
	for _, id := range []runtime.ContainerID{one, two} {
		if e := m.wait(t, id); e.Code != 137 {
			t.Errorf("%s after KillAll: %+v, want code 137", id.Name, e)
		}
	}
	wantNil(t, "Remove", m.Runtime.Remove(t.Context(), one))
	wantKind(t, "Create in a sandbox that was lost", m.Runtime.Create(t.Context(), m.container("one", "run")), runtime.ErrNotFound)
	if again := m.shared(t); again != first {
		t.Errorf("made again: %+v, want %+v", again, first)
	}
	if s := m.status(t, m.startedHere(t, "one", "run")); s.State != runtime.Running {
		t.Errorf("started again: %+v", s)
	}
}
