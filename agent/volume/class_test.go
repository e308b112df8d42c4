package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/runtime"
)

func TestAVolumeLivesInTheDirectoryOfItsClass(t *testing.T) {
	dir := t.TempDir()
	ssd := filepath.Join(dir, "ssd")
	v, err := New(Config{Root: filepath.Join(dir, "root"), RunDir: filepath.Join(dir, "run"), ClusterID: "cluster-1",
		Classes: map[string]string{"ssd": ssd}})
	if err != nil {
		t.Fatal(err)
	}
	fast := data
	fast.Class = "ssd"
	// Not mounted yet: nothing is made in its place, not even for a new volume.
	_, err = v.Ensure(t.Context(), db0, fast, true, nil)
	if !errors.Is(err, runtime.ErrNotFound) || !strings.Contains(err.Error(), "is its filesystem mounted?") {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(ssd); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the directory of a class was made: %v", err)
	}
	if err := os.Mkdir(ssd, 0o755); err != nil {
		t.Fatal(err)
	}
	path, err := v.Ensure(t.Context(), db0, fast, true, nil)
	if want := filepath.Join(ssd, "default/db/data-0/data"); err != nil || path != want {
		t.Fatalf("got %s, %v, want %s", path, err, want)
	}
	slow := data
	slow.ID = "00112233445566778899aabbccddeeff"
	local, err := v.Ensure(t.Context(), db0, slow, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "root/volumes/default/db/data-0/data"); local != want {
		t.Fatalf("local is at %s, want %s", local, want)
	}
	// The owner file is checked in every class.
	fast.ID = "fedcba9876543210fedcba9876543210"
	if _, err := v.Ensure(t.Context(), db0, fast, true, nil); !errors.Is(err, runtime.ErrForeign) {
		t.Fatalf("got %v", err)
	}
	fast.Class = "gold"
	_, err = v.Ensure(t.Context(), db0, fast, true, nil)
	if !errors.Is(err, runtime.ErrNotFound) || !strings.Contains(err.Error(), `no storage class "gold", only local, ssd`) {
		t.Fatalf("got %v", err)
	}
}

func TestClassesThatCannotStandAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		classes map[string]string
		want    string
	}{
		"a relative path":     {map[string]string{"ssd": "mnt"}, "must be an absolute path"},
		"a name that is none": {map[string]string{"S S": "/mnt"}, "invalid storage class name"},
		"two in one":          {map[string]string{"a": "/nowhere/x", "b": "/nowhere/x/"}, "inside the other"},
		"one in another":      {map[string]string{"a": "/nowhere", "b": "/nowhere/x"}, "inside the other"},
		"one in local":        {map[string]string{"a": filepath.Join(dir, "root/volumes/default")}, "inside the other"},
		"one in all":          {map[string]string{"a": "/"}, "inside the other"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Root: filepath.Join(dir, "root"), RunDir: filepath.Join(dir, "run"), ClusterID: "cluster-1", Classes: c.classes})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	// Neighbours of like names, and local elsewhere.
	v, err := New(Config{Root: filepath.Join(dir, "root"), RunDir: filepath.Join(dir, "run"), ClusterID: "cluster-1",
		Classes: map[string]string{"local": "/nowhere/x", "b": "/nowhere/x2"}})
	if err != nil || v.classes["local"] != "/nowhere/x" {
		t.Errorf("got %v, %v", v, err)
	}
	if got := ClassNames(map[string]string{"ssd": "/x", "fast": "/y"}); !slices.Equal(got, []string{"fast", "local", "ssd"}) {
		t.Errorf("got %v", got)
	}
}
