package containerdrt_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
	"github.com/stead-project/stead/spec"
)

// zeroLayer is a layer with a file of so many zeros, compressed, and the digest of what it
// unpacks to.
func zeroLayer(t *testing.T, zeros int64) (layer []byte, unpacked string) {
	t.Helper()
	var out bytes.Buffer
	sum := sha256.New()
	z := gzip.NewWriter(&out)
	in := tar.NewWriter(io.MultiWriter(z, sum))
	err := in.WriteHeader(&tar.Header{Name: "zeros", Mode: 0o644, Size: zeros, Typeflag: tar.TypeReg})
	if err == nil {
		_, err = io.CopyN(in, zero{}, zeros)
	}
	if err := errors.Join(err, in.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// archiveOf is a tar of files: name, content, name, content …
func archiveOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	var err error
	for i := 0; i < len(files); i += 2 {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}))
		_, wrote := io.WriteString(w, files[i+1])
		err = errors.Join(err, wrote)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// dockerBomb is a docker archive with a layer of so many zeros, compressed. Its configuration
// names no layer, so that it cannot be unpacked either.
func dockerBomb(t *testing.T, zeros int64) []byte {
	t.Helper()
	layer, _ := zeroLayer(t, zeros)
	return archiveOf(t, "layer.tar", string(layer), "config.json", `{"os":"linux","architecture":"`+goruntime.GOARCH+`"}`,
		"manifest.json", `[{"Config":"config.json","RepoTags":["`+imageName+`"],"Layers":["layer.tar"]}]`)
}

// ociBomb is a whole OCI archive with such a layer.
func ociBomb(t *testing.T, zeros int64) []byte {
	t.Helper()
	layer, unpacked := zeroLayer(t, zeros)
	var files []string
	blob := func(media, text string) string {
		sum := sha256.Sum256([]byte(text))
		digest := hex.EncodeToString(sum[:])
		files = append(files, "blobs/sha256/"+digest, text)
		return fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%d}`, media, digest, len(text))
	}
	layers := blob("layer.v1.tar+gzip", string(layer))
	config := blob("config.v1+json", fmt.Sprintf(`{"os":"linux","architecture":%q,"rootfs":{"type":"layers","diff_ids":[%q]}}`, goruntime.GOARCH, unpacked))
	manifest := blob("manifest.v1+json", `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":`+config+`,"layers":[`+layers+`]}`)
	return archiveOf(t, append(files, "oci-layout", `{"imageLayoutVersion":"1.0.0"}`, "index.json",
		`{"schemaVersion":2,"manifests":[`+strings.TrimSuffix(manifest, "}")+`,"annotations":{"io.containerd.image.name":"stead.test/bomb:1"}}]}`)...)
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
	for name, c := range map[string]struct {
		archive []byte
		want    error
	}{
		"docker bomb":  {dockerBomb(t, 64<<20), runtime.ErrImageRefused},
		"OCI bomb":     {ociBomb(t, 64<<20), runtime.ErrImageRefused},
		"broken off":   {good[:len(good)/2], runtime.ErrImageRefused},
		"not unpacked": {dockerBomb(t, 1<<10), nil},
	} {
		got, err := rt.LoadImage(t.Context(), bytes.NewReader(c.archive))
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: loaded %v, %v", name, got, err)
		}
		if left := h.kept(); len(left) > 0 {
			t.Errorf("%s: left on the node: %s", name, strings.Join(left, ", "))
		}
	}
	first, err := rt.LoadImage(t.Context(), bytes.NewReader(good))
	if err != nil || len(first) != 1 || first[0].Name != imageName {
		t.Fatalf("a good one afterwards: %v, %v", first, err)
	}
	had := h.kept()
	if got, err := rt.LoadImage(t.Context(), bytes.NewReader(dockerBomb(t, 1<<10))); err == nil {
		t.Errorf("loaded %v in place of the good one", got)
	}
	for _, k := range h.kept() {
		if !slices.Contains(had, k) {
			t.Errorf("left of what was refused: %s", k)
		}
	}
	if got, err := rt.EnsureImage(t.Context(), runtime.Pull{Image: imageName, Policy: spec.PullNever}); err != nil || got.Digest != first[0].Digest {
		t.Errorf("the good image, after one of its name was refused: %+v, %v", got, err)
	}
}

func TestAnImageThatFillsTheDiskIsBrokenOffAndLeavesNothing(t *testing.T) {
	disk, err := os.MkdirTemp("", "stead-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the daemon has ended
		_ = unix.Unmount(disk, unix.MNT_DETACH)
		if err := os.Remove(disk); err != nil {
			t.Error(err)
		}
	})
	h := newHost(t)
	h.killDaemon()
	root := filepath.Join(h.dir, "root")
	if err := errors.Join(os.RemoveAll(root), unix.Mount("tmpfs", disk, "tmpfs", 0, "size=256m"), os.Symlink(disk, root)); err != nil {
		t.Fatal(err)
	}
	h.startDaemon()
	bomb := ociBomb(t, 512<<20)
	h.mirror(newRegistry(t, bomb))
	rt := h.open()
	defer rt.Close()
	if _, err := rt.LoadImage(t.Context(), bytes.NewReader(bomb)); !errors.Is(err, runtime.ErrNoSpace) {
		t.Errorf("load: %v, want no space", err)
	}
	if left := h.kept(); len(left) > 0 {
		t.Errorf("load: left on the node: %s", strings.Join(left, ", "))
	}
	_, err = rt.EnsureImage(t.Context(), runtime.Pull{Image: "registry.invalid/team/box:1", Policy: spec.PullIfNotPresent})
	if !errors.Is(err, runtime.ErrNoSpace) || !errors.Is(err, runtime.ErrImagePull) {
		t.Errorf("pull: %v, want no space, tried again", err)
	}
	if left := h.kept(); len(left) > 0 {
		t.Errorf("pull: left on the node: %s", strings.Join(left, ", "))
	}
	h.until("the daemon has stopped unpacking", func() bool {
		var st unix.Statfs_t
		return unix.Statfs(disk, &st) == nil && st.Bavail > st.Blocks*3/4
	})
	h.cfg.MaxImageBytes = 100 << 10 // fewer than the layer has as it comes
	small := h.open()
	defer small.Close()
	_, err = small.EnsureImage(t.Context(), runtime.Pull{Image: "registry.invalid/team/box:1", Policy: spec.PullIfNotPresent})
	if !errors.Is(err, runtime.ErrImageRefused) || !errors.Is(err, runtime.ErrImagePull) {
		t.Errorf("pull of layers that are too large: %v, want it refused", err)
	}
}
