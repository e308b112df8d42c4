package containerdrt_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/containerdrt"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
	"github.com/stead-project/stead/spec"
)

// BenchmarkStart is a container of a present image until its program runs: bare is
// containerd's own client with its defaults and no output; stead is a whole life,
// with pinned namespaces, limits, seccomp and a logger; ctr and runc are these programs,
// run for one container each; native is stead with Config.NativeOnly, filtered is bare with the default seccomp filter; crun is stead
// with it, where it can be used. They take turns, so that all meet the same machine; medians.
func BenchmarkStart(b *testing.B) {
	h := newHost(b)
	rt := h.open()
	b.Cleanup(func() { rt.Close() })
	h.load(rt, imageName, runtimetest.ImageConfig{})
	client, err := containerd.New(h.cfg.Address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close() })
	ctx := namespaces.WithNamespace(b.Context(), h.cfg.Namespace)
	image, err := client.GetImage(ctx, imageName)
	if err != nil {
		b.Fatal(err)
	}
	h.cfg.NativeOnly = true
	native := h.open()
	b.Cleanup(func() { native.Close() })
	h.cfg.NativeOnly = false
	var withCrun *containerdrt.Runtime
	h.cfg.OCIRuntime = crunHere()
	if h.cfg.OCIRuntime != "" {
		withCrun = h.open()
		b.Cleanup(func() { withCrun.Close() })
	}
	withFilter := func(_ context.Context, _ oci.Client, _ *containers.Container, s *oci.Spec) error {
		s.Linux.Seccomp = seccomp.DefaultProfile(s)
		return nil
	}
	bundle := h.bundle()
	took := map[string][]time.Duration{}
	turn := func(i int) {
		for name, start := range map[string]func() time.Duration{
			"bare-ms": func() time.Duration { return startBare(ctx, b, client, image, fmt.Sprint("bare-", i)) },
			"filtered-ms": func() time.Duration {
				return startBare(ctx, b, client, image, fmt.Sprint("filtered-", i), withFilter)
			},
			"stead-ms":  func() time.Duration { return startOurs(h, rt, i, took) },
			"native-ms": func() time.Duration { return startOurs(h, native, i, nil) },
			"ctr-ms":    func() time.Duration { return startCtr(h) },
			"runc-ms":   func() time.Duration { return startRunc(h, bundle) },
		} {
			took[name] = append(took[name], start())
		}
		if withCrun != nil {
			took["crun-ms"] = append(took["crun-ms"], startOurs(h, withCrun, i, nil))
		}
	}
	turn(0)
	clear(took) // the first of each is slower
	for n := 1; b.Loop(); n++ {
		turn(n)
	}
	b.ReportMetric(0, "ns/op") // all, and their ends: of no use
	for name, all := range took {
		slices.Sort(all)
		reportMillis(b, all[len(all)/2], 1, name)
	}
}

// startOurs is sandbox, Create and Start of one identity; steps, unless nil, gets what each took.
func startOurs(h *host, rt *containerdrt.Runtime, i int, steps map[string][]time.Duration) time.Duration {
	h.t.Helper()
	c := h.container("run")
	c.ID.ID = spec.Identity{Namespace: "default", Set: "bench", Ordinal: i}
	began := time.Now()
	last := began
	step := func(name string, err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
		if now := time.Now(); steps != nil {
			steps[name], last = append(steps[name], now.Sub(last)), now
		}
	}
	_, err := rt.EnsureSandbox(h.t.Context(), runtime.Sandbox{ID: c.ID.ID, Token: c.Token, Hostname: c.Hostname})
	step("sandbox-ms", err)
	step("create-ms", rt.Create(h.t.Context(), c))
	step("start-ms", rt.Start(h.t.Context(), c.ID))
	took := time.Since(began)
	if err := rt.Remove(h.t.Context(), c.ID); err != nil {
		h.t.Fatal(err)
	}
	if err := rt.RemoveSandbox(h.t.Context(), c.ID.ID); err != nil {
		h.t.Fatal(err)
	}
	return took
}

func startBare(ctx context.Context, b *testing.B, client *containerd.Client, image containerd.Image, id string, opts ...oci.SpecOpts) time.Duration {
	b.Helper()
	began := time.Now()
	c, err := client.NewContainer(ctx, id, containerd.WithImage(image), containerd.WithNewSnapshot(id, image),
		containerd.WithNewSpec(append([]oci.SpecOpts{oci.WithImageConfig(image), oci.WithProcessArgs("/box", "run")}, opts...)...))
	if err != nil {
		b.Fatal(err)
	}
	task, err := c.NewTask(ctx, cio.NullIO)
	if err != nil {
		b.Fatal(err)
	}
	if err := task.Start(ctx); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if _, err := task.Delete(ctx, containerd.WithProcessKill); err != nil {
		b.Fatal(err)
	}
	if err := c.Delete(ctx, containerd.WithSnapshotCleanup); err != nil {
		b.Fatal(err)
	}
	return took
}
