package containerdrt_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
)

// dockerBomb is a docker archive with a layer of so many zeros, compressed.
func dockerBomb(t *testing.T, zeros int64) []byte {
	t.Helper()
	var layer bytes.Buffer
	z := gzip.NewWriter(&layer)
	in := tar.NewWriter(z)
	err := in.WriteHeader(&tar.Header{Name: "zeros", Mode: 0o644, Size: zeros, Typeflag: tar.TypeReg})
	if err == nil {
		_, err = io.CopyN(in, zero{}, zeros)
	}
	if err := errors.Join(err, in.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name string
		text []byte
	}{
		{"layer.tar", layer.Bytes()}, {"config.json", []byte(`{"os":"linux"}`)},
		{"manifest.json", []byte(`[{"Config":"config.json","RepoTags":["stead.test/bomb:1"],"Layers":["layer.tar"]}]`)},
	} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text)), Typeflag: tar.TypeReg}))
		_, wrote := w.Write(f.text)
		err = errors.Join(err, wrote)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// kept is what a host's daemon holds: images, leases, content, parts of content, snapshots.
func (h *host) kept() (out []string) {
	h.t.Helper()
	client, err := containerd.New(h.cfg.Address)
	if err != nil {
		h.t.Fatal(err)
	}
	defer client.Close()
	ctx := namespaces.WithNamespace(h.t.Context(), h.cfg.Namespace)
	list, err := client.ImageService().List(ctx)
	for _, i := range list {
		out = append(out, "image "+i.Name)
	}
	held, err2 := client.LeasesService().List(ctx)
	for _, l := range held {
		out = append(out, "lease "+l.ID)
	}
	err3 := client.ContentStore().Walk(ctx, func(i content.Info) error {
		out = append(out, "content "+i.Digest.String())
		return nil
	})
	parts, err4 := client.ContentStore().ListStatuses(ctx)
	for _, p := range parts {
		out = append(out, "part "+p.Ref)
	}
	err5 := client.SnapshotService("overlayfs").Walk(ctx, func(_ context.Context, i snapshots.Info) error {
		out = append(out, "snapshot "+i.Name)
		return nil
	})
	if err := errors.Join(err, err2, err3, err4, err5); err != nil {
		h.t.Fatal(err)
	}
	return out
}

func TestARefusedArchiveLeavesNothingOnTheNode(t *testing.T) {
	h := newHost(t)
	h.cfg.MaxImageBytes = 16 << 20
	rt := h.open()
	defer rt.Close()
	good := runtimetest.Archive(t, imageName, h.box, runtimetest.ImageConfig{})
	// Whole, but its layer is not what its configuration says: only unpacking shows it.
	other := dockerBomb(t, 1<<10)
	for name, c := range map[string]struct {
		archive []byte
		want    error
	}{
		"bomb":       {dockerBomb(t, 64<<20), runtime.ErrImageRefused},
		"broken off": {good[:len(good)/2], runtime.ErrImageRefused},
		"other":      {other, nil},
	} {
		got, err := rt.LoadImage(t.Context(), bytes.NewReader(c.archive))
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: loaded %v, %v", name, got, err)
		}
		if left := h.kept(); len(left) > 0 {
			t.Errorf("%s: left on the node: %s", name, strings.Join(left, ", "))
		}
	}
	if got, err := rt.LoadImage(t.Context(), bytes.NewReader(good)); err != nil || len(got) != 1 || got[0].Name != imageName {
		t.Errorf("a good one afterwards: %v, %v", got, err)
	}
}
