package containerdrt_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/runtimetest"
	"github.com/stead-project/stead/spec"
)

func TestOnlyPulledImagesAreRemovedAndTheyCanBePulledAgain(t *testing.T) {
	h := newHost(t)
	reg := newRegistry(t, runtimetest.Archive(t, imageName, h.box, runtimetest.ImageConfig{StopSignal: "SIGINT"}))
	h.mirror(reg)
	rt := h.open()
	defer rt.Close()
	const ref = "registry.invalid/team/box:1"
	stored := func(name string) runtime.StoredImage {
		t.Helper()
		all, err := rt.StoredImages(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(i runtime.StoredImage) bool { return i.Name == name })
		if i < 0 {
			return runtime.StoredImage{}
		}
		return all[i]
	}
	pull := func() runtime.Image {
		t.Helper()
		img, err := rt.EnsureImage(t.Context(), runtime.Pull{Image: ref, Policy: spec.PullIfNotPresent})
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	h.load(rt, imageName, runtimetest.ImageConfig{})
	if loaded := stored(imageName); loaded.Pulled || loaded.Digest == "" || loaded.Since.IsZero() {
		t.Errorf("a loaded image: %+v", loaded)
	}
	asPulled := stored(imageName)
	asPulled.Pulled = true
	if err := rt.RemoveImage(t.Context(), asPulled); !errors.Is(err, runtime.ErrNotFound) || stored(imageName).Name == "" {
		t.Errorf("removal of a loaded image: %v, want none", err)
	}
	img := pull()
	pulled := stored(ref)
	if !pulled.Pulled || pulled.Digest != img.Digest {
		t.Errorf("a pulled image: %+v, want %s", pulled, img.Digest)
	}
	other := pulled
	other.Digest = "sha256:" + strings.Repeat("0", 64)
	if err := rt.RemoveImage(t.Context(), other); !errors.Is(err, runtime.ErrNotFound) || stored(ref).Name == "" {
		t.Errorf("removal of another image of the name: %v, want none", err)
	}
	if err := rt.RemoveImage(t.Context(), pulled); err != nil || stored(ref).Name != "" {
		t.Errorf("removal: %v", err)
	}
	if slices.Contains(h.kept(), "content "+pulled.Digest) {
		t.Error("its content is still there")
	}
	if err := rt.RemoveImage(t.Context(), pulled); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("removal of none: %v", err)
	}
	pull()
	h.load(rt, ref, runtimetest.ImageConfig{}) // takes the name
	if now := stored(ref); now.Pulled || now.Digest == pulled.Digest {
		t.Errorf("an archive took the name of a pulled image: %+v", now)
	}
	disks, err := rt.ImageDisks(t.Context())
	if err != nil || len(disks) == 0 {
		t.Fatalf("disks: %v, %v", disks, err)
	}
	for _, d := range disks {
		if !strings.HasPrefix(d.Dir, h.dir) || d.TotalBytes <= 0 || d.FreeBytes <= 0 || d.FreeBytes > d.TotalBytes || d.ReserveBytes <= 0 {
			t.Errorf("a disk: %+v", d)
		}
	}
}
