package runtimetest

import (
	"testing"

	"github.com/stead-project/stead/agent/runtime"
)

func testResize(t *testing.T, m *member) {
	ctx := t.Context()
	m.sandbox(t)
	c := m.container("main", "run")
	c.Resources = runtime.Resources{CPUMillis: 500, CPURequestMillis: 100, MemoryBytes: 256 << 20}
	larger := runtime.Resources{CPUMillis: 750, CPURequestMillis: 200, MemoryBytes: 384 << 20}
	has := func(when string, rt runtime.Runtime, want runtime.Resources) {
		t.Helper()
		s, err := rt.Status(ctx, c.ID)
		wantNil(t, "Status "+when, err)
		if s.Resources == nil || *s.Resources != want {
			t.Errorf("%s it has %+v, want %+v", when, s.Resources, want)
		}
	}
	wantKind(t, "Resize of none", m.Runtime.Resize(ctx, c.ID, larger), runtime.ErrNotFound)
	wantNil(t, "Create", m.Runtime.Create(ctx, c))
	has("after Create", m.Runtime, c.Resources)
	wantKind(t, "Resize of a created one", m.Runtime.Resize(ctx, c.ID, larger), runtime.ErrNotRunning)
	wantNil(t, "Start", m.Runtime.Start(ctx, c.ID))
	m.ready(t, c)
	for _, when := range []string{"after Resize", "after another"} {
		wantNil(t, "Resize", m.Runtime.Resize(ctx, c.ID, larger))
		has(when, m.Runtime, larger)
	}
	least := larger
	least.CPUMillis, least.MemoryBytes = 250, 4096 // less than any process uses
	wantKind(t, "Resize below what is in use", m.Runtime.Resize(ctx, c.ID, least), runtime.ErrRefused)
	has("after a refusal", m.Runtime, larger)
	has("as another agent sees it", m.Again(t), larger)
	none := runtime.Resources{}
	wantNil(t, "Resize to no bounds", m.Runtime.Resize(ctx, c.ID, none))
	has("without bounds", m.Runtime, none)
	wantNil(t, "Resize to what it had first", m.Runtime.Resize(ctx, c.ID, c.Resources))
	has("at the end", m.Runtime, c.Resources)
	if s := m.status(t, c.ID); s.State != runtime.Running || s.Attempt != 0 {
		t.Errorf("after all it is %+v, want it to run on", s)
	}
	wantNil(t, "Signal", m.Runtime.Signal(ctx, c.ID, sigKill, true))
	m.wait(t, c.ID)
	wantKind(t, "Resize of one that has ended", m.Runtime.Resize(ctx, c.ID, larger), runtime.ErrNotRunning)
	has("when it has ended", m.Runtime, c.Resources)
}
