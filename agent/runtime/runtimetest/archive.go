package runtimetest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// ImageConfig is the part of an OCI image configuration that tests vary.
type ImageConfig struct {
	Entrypoint []string `json:",omitempty"`
	Cmd        []string `json:",omitempty"`
	Env        []string `json:",omitempty"`
	User       string   `json:",omitempty"`
	WorkingDir string   `json:",omitempty"`
	StopSignal string   `json:",omitempty"`
	// Pipes are made as named pipes, by path without a leading slash, in place of files.
	Pipes []string `json:"-"`
}

// BuildBox returns the bytes of the test program.
func BuildBox(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "box")
	Build(t, path, "agent/runtime/runtimetest/box")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Programs is the environment variable that names a directory with programs of this module, for tests on a host without Go.
const Programs = "STEAD_PROGRAMS"

// Build compiles a package of this module to a static program at path. It needs the go tool and no network.
func Build(t testing.TB, path, pkg string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-o", path, "github.com/stead-project/stead/"+pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if built := os.Getenv(Programs); built != "" {
		cmd = exec.Command("cp", filepath.Join(built, filepath.Base(pkg)), path)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
}

// Archive makes an OCI archive of one image of one layer: the program at /box,
// a user app (uid 1000, in group extra 2000), and /tmp.
func Archive(t testing.TB, name string, box []byte, config ImageConfig) []byte {
	t.Helper()
	files := []entry{
		{"box", 0o755, box},
		{"plain", 0o644, []byte("plain")},
		{"tmp/", 0o1777, nil}, {"etc/", 0o755, nil}, {"home/app/", 0o755, nil},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/box\napp:x:1000:1001:app:/home/app:/box\n")},
		{"etc/group", 0o644, []byte("root:x:0:\napp:x:1001:\nextra:x:2000:app\n")},
	}
	files = slices.DeleteFunc(files, func(e entry) bool { return slices.Contains(config.Pipes, e.name) })
	for _, name := range config.Pipes {
		files = append(files, entry{name + "|", 0o644, nil})
	}
	layer := tarball(t, files)
	type object = map[string]any
	var blobs []entry
	blob := func(media string, content []byte) object {
		sum := sha256.Sum256(content)
		digest := hex.EncodeToString(sum[:])
		blobs = append(blobs, entry{"blobs/sha256/" + digest, 0o644, content})
		return object{"mediaType": media, "digest": "sha256:" + digest, "size": len(content)}
	}
	text := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	layers := blob("application/vnd.oci.image.layer.v1.tar", layer)
	configs := blob("application/vnd.oci.image.config.v1+json", text(object{
		"architecture": runtime.GOARCH, "os": "linux", "config": config,
		"rootfs": object{"type": "layers", "diff_ids": []any{layers["digest"]}},
	}))
	manifest := blob("application/vnd.oci.image.manifest.v1+json", text(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": configs, "layers": []any{layers},
	}))
	manifest["annotations"] = object{"io.containerd.image.name": name}
	return tarball(t, append(blobs,
		entry{"oci-layout", 0o644, text(object{"imageLayoutVersion": "1.0.0"})},
		entry{"index.json", 0o644, text(object{"schemaVersion": 2, "manifests": []any{manifest}})}))
}

// entry is one file of a tar; a name with a slash at its end is a directory, one with a
// bar a named pipe.
type entry struct {
	name string
	mode int64
	text []byte
}

func tarball(t testing.TB, entries []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.text)), Typeflag: tar.TypeReg}
		if e.name[len(e.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if name, pipe := strings.CutSuffix(e.name, "|"); pipe {
			h.Name, h.Typeflag = name, tar.TypeFifo
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
