package containerdrt_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"

	"github.com/stead-project/stead/agent/runtime/containerdrt"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
	"github.com/stead-project/stead/spec"
)

// BenchmarkStart is a container of a present image until its program runs: bare is
// containerd's own client with its defaults and no output; stead is a whole life,
// with pinned namespaces, limits, seccomp and a logger; ctr and runc are these programs,
// run for one container each. They take turns, so that all meet the same machine.
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
	startOurs(h, rt, 0) // the first of each is slower
	startBare(ctx, b, client, image, 0)
	bundle := h.bundle()
	var bare, ours, ctr, runc time.Duration
	n := 0
	for b.Loop() {
		n++
		ours += startOurs(h, rt, n)
		bare += startBare(ctx, b, client, image, n)
		ctr += startCtr(h)
		runc += startRunc(h, bundle)
	}
	b.ReportMetric(0, "ns/op") // all, and their ends: of no use
	reportMillis(b, bare, n, "bare-ms")
	reportMillis(b, ours, n, "stead-ms")
	reportMillis(b, ctr, n, "ctr-ms")
	reportMillis(b, runc, n, "runc-ms")
}

// startOurs is sandbox, Create and Start of one identity.
func startOurs(h *host, rt *containerdrt.Runtime, i int) time.Duration {
	h.t.Helper()
	c := h.container("run")
	c.ID.ID = spec.Identity{Namespace: "default", Set: "bench", Ordinal: i}
	began := time.Now()
	h.start(rt, c)
	took := time.Since(began)
	if err := rt.Remove(h.t.Context(), c.ID); err != nil {
		h.t.Fatal(err)
	}
	if err := rt.RemoveSandbox(h.t.Context(), c.ID.ID); err != nil {
		h.t.Fatal(err)
	}
	return took
}

func startBare(ctx context.Context, b *testing.B, client *containerd.Client, image containerd.Image, i int) time.Duration {
	b.Helper()
	id := fmt.Sprint("bare-", i)
	began := time.Now()
	c, err := client.NewContainer(ctx, id, containerd.WithImage(image), containerd.WithNewSnapshot(id, image),
		containerd.WithNewSpec(oci.WithImageConfig(image), oci.WithProcessArgs("/box", "run")))
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
