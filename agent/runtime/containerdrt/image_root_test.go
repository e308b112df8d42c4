package containerdrt_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
	"github.com/stead-project/stead/spec"
)

// registry serves the image of an archive as team/box:1 on loopback.
type registry struct {
	*httptest.Server
	files     map[string][]byte
	manifests atomic.Int64 // times the tag was asked for
	broken    atomic.Bool
}

func newRegistry(t *testing.T, archive []byte) *registry {
	t.Helper()
	r := &registry{files: map[string][]byte{}}
	for in := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		r.files[h.Name], err = io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
	}
	var index struct {
		Manifests []struct{ Digest, MediaType string }
	}
	if err := json.Unmarshal(r.files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	top := index.Manifests[0]
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		digest := q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]
		if strings.HasSuffix(q.URL.Path, "/team/box/manifests/1") {
			r.manifests.Add(1)
			digest = top.Digest
		}
		body, ok := r.files["blobs/"+strings.Replace(digest, ":", "/", 1)]
		switch {
		case r.broken.Load():
			w.WriteHeader(http.StatusInternalServerError)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		default:
			if digest == top.Digest {
				w.Header().Set("Content-Type", top.MediaType)
			}
			w.Header().Set("Docker-Content-Digest", digest)
			http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(body))
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// mirror has the host pull images of registry.invalid from reg.
func (h *host) mirror(reg *registry) {
	h.t.Helper()
	h.cfg.HostsDir = filepath.Join(h.dir, "certs.d")
	mirror := filepath.Join(h.cfg.HostsDir, "registry.invalid")
	if err := os.MkdirAll(mirror, 0o755); err != nil {
		h.t.Fatal(err)
	}
	toml := "server = \"" + reg.URL + "\"\n[host.\"" + reg.URL + "\"]\ncapabilities = [\"pull\", \"resolve\"]\n"
	if err := os.WriteFile(filepath.Join(mirror, "hosts.toml"), []byte(toml), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func TestImagesArePulledThroughAMirror(t *testing.T) {
	h := newHost(t)
	reg := newRegistry(t, runtimetest.Archive(t, imageName, h.box, runtimetest.ImageConfig{StopSignal: "SIGINT"}))
	h.mirror(reg)
	rt := h.open()
	defer rt.Close()
	const ref = "registry.invalid/team/box:1"

	reg.broken.Store(true)
	if _, err := rt.EnsureImage(t.Context(), runtime.Pull{Image: ref, Policy: spec.PullIfNotPresent}); !errors.Is(err, runtime.ErrImagePull) {
		t.Errorf("pull from a broken registry: %v, want one that may heal", err)
	}
	reg.broken.Store(false)
	if _, err := rt.EnsureImage(t.Context(), runtime.Pull{Image: "registry.invalid/team/none:1", Policy: spec.PullIfNotPresent}); !errors.Is(err, runtime.ErrImageMissing) {
		t.Errorf("pull of no image: %v, want missing", err)
	}
	var group errgroup.Group
	for range 5 { // many members start at once
		group.Go(func() error {
			_, err := rt.EnsureImage(t.Context(), runtime.Pull{Image: ref, Policy: spec.PullIfNotPresent})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatalf("pull: %v", err)
	}
	asked := reg.manifests.Load()
	img, err := rt.EnsureImage(t.Context(), runtime.Pull{Image: ref, Policy: spec.PullIfNotPresent})
	if err != nil || img.Name != ref || !strings.HasPrefix(img.Digest, "sha256:") || img.SizeBytes < int64(len(h.box)) {
		t.Errorf("the pulled image: %+v, %v", img, err)
	}
	if now := reg.manifests.Load(); now != asked {
		t.Errorf("a present image asked the registry %d times", now-asked)
	}
	if _, err := rt.EnsureImage(t.Context(), runtime.Pull{Image: ref, Policy: spec.PullAlways}); err != nil || reg.manifests.Load() == asked {
		t.Errorf("pull Always: %v; the registry was asked %d times more", err, reg.manifests.Load()-asked)
	}
	c := h.container("exit", "0")
	c.Image = ref
	h.start(rt, c)
	if e := h.wait(rt, c.ID); e.Code != 0 {
		t.Errorf("its end: %+v", e)
	}
	if s, err := rt.Status(t.Context(), c.ID); err != nil || s.StopSignal != 2 {
		t.Errorf("status %+v, %v; want the image's stop signal 2", s, err)
	}
}

func TestArchiveWithoutAnImageIsRefused(t *testing.T) {
	_, rt := newNode(t)
	for name, archive := range map[string][]byte{"empty": nil, "noise": bytes.Repeat([]byte("x"), 4096)} {
		if got, err := rt.LoadImage(t.Context(), bytes.NewReader(archive)); err == nil {
			t.Errorf("%s: loaded %v", name, got)
		}
	}
}
