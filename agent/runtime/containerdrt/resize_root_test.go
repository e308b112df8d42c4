package containerdrt_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/oci"

	"github.com/stead-project/stead/agent/runtime"
)

// bounds reads of the kernel what db-0's container may use: quota, shares or weight, and memory.
func (h *host) bounds() (found [3]string) {
	h.t.Helper()
	dir := filepath.Join(h.cfg.CgroupParent, "default.db-0", "main")
	for i, files := range [][]string{
		{"cpu" + dir + "/cpu.cfs_quota_us", dir + "/cpu.max"},
		{"cpu" + dir + "/cpu.shares", dir + "/cpu.weight"},
		{"memory" + dir + "/memory.limit_in_bytes", dir + "/memory.max"},
	} {
		for _, file := range files {
			if text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", file)); err == nil {
				found[i], _, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
			}
		}
		if found[i] == "" {
			h.t.Fatalf("none of %v is there", files)
		}
	}
	return found
}

// What the kernel has of a resized container is what it has of one that was created so; and it is kept over the daemon's death.
func TestAResizedContainerHasTheBoundsOfOneThatIsCreatedSo(t *testing.T) {
	h, rt := newLoadedNode(t)
	sizes := []runtime.Resources{
		{CPUMillis: 500, CPURequestMillis: 100, MemoryBytes: 256 << 20}, {CPUMillis: 1500, CPURequestMillis: 700, MemoryBytes: 128 << 20},
		{MemoryBytes: 512 << 20}, {}, {CPURequestMillis: 300},
	}
	created := map[runtime.Resources][3]string{}
	for attempt, size := range sizes {
		c := h.container("run")
		c.Attempt, c.Resources = attempt, size
		h.start(rt, c)
		created[size] = h.bounds()
		if err := rt.Remove(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
	}
	c := h.container("run")
	h.start(rt, c)
	for _, size := range append(sizes, sizes[0]) {
		if err := rt.Resize(t.Context(), c.ID, size); err != nil {
			t.Fatalf("%+v: %v", size, err)
		}
		if got := h.bounds(); got != created[size] {
			t.Errorf("%+v: the kernel has %v, of one that was created so %v", size, got, created[size])
		}
	}
	h.killDaemon()
	if err := rt.Resize(t.Context(), c.ID, sizes[1]); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("without a daemon: %v, want unavailable", err)
	}
	h.startDaemon()
	h.until("the runtime has connected again", func() bool { return rt.Ping(t.Context()) == nil })
	s, err := rt.Status(t.Context(), c.ID)
	if err != nil || s.State != runtime.Running || s.Resources == nil || *s.Resources != sizes[0] {
		t.Errorf("after the daemon came back: %+v (%+v), %v; want it running with %+v", s, s.Resources, err, sizes[0])
	}
	if got := h.bounds(); got != created[sizes[0]] {
		t.Errorf("after the daemon came back the kernel has %v, want %v", got, created[sizes[0]])
	}
	ctx, kept := h.beside("default.db-0.main")
	var spec *oci.Spec
	if spec, err = kept.Spec(ctx); err != nil {
		t.Fatal(err)
	}
	if res := spec.Linux.Resources; res.CPU.Quota == nil || *res.CPU.Quota != 50_000 || res.Memory == nil || *res.Memory.Limit != 256<<20 || len(res.Devices) == 0 {
		t.Errorf("kept with it: %+v, %+v", res.CPU, res.Memory)
	}
}

// What the kernel can take back at once, pages of files, is in nobody's way.
func TestALimitOfMemoryBelowWhatIsHeldChangesNothing(t *testing.T) {
	h, rt := newLoadedNode(t)
	c := h.container("hold", "60", "100")
	c.Resources = runtime.Resources{CPUMillis: 500, MemoryBytes: 256 << 20}
	h.start(rt, c)
	h.until("it holds memory", func() bool { return strings.Contains(h.log(c), "holding") })
	before := h.bounds()
	small := runtime.Resources{CPUMillis: 250, MemoryBytes: 40 << 20}
	if err := rt.Resize(t.Context(), c.ID, small); !errors.Is(err, runtime.ErrRefused) || !strings.Contains(err.Error(), "is to have 40 MiB") {
		t.Errorf("below what it holds: %v, want a refusal", err)
	}
	s, err := rt.Status(t.Context(), c.ID)
	if err != nil || s.State != runtime.Running || *s.Resources != c.Resources {
		t.Errorf("after a refusal: %+v (%+v), %v", s, s.Resources, err)
	}
	if got := h.bounds(); got != before {
		t.Errorf("a refusal changed %v to %v", before, got)
	}
	small.MemoryBytes = 120 << 20
	if err := rt.Resize(t.Context(), c.ID, small); err != nil {
		t.Errorf("above what it holds, below what is in the cache: %v", err)
	}
	if s, err := rt.Status(t.Context(), c.ID); err != nil || s.State != runtime.Running || *s.Resources != small {
		t.Errorf("after a change: %+v, %v", s, err)
	}
}
