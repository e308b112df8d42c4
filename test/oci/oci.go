// Package oci writes tiny OCI image archives for tests: one layer of given files,
// no registry and no package needed.
package oci

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"sort"
	"strings"
)

// Image is what an archive shall hold.
type Image struct {
	// Name is the full name under which the image is loaded, e.g. stead.local/x:1.
	Name string
	// Files maps absolute paths to content; all are executable and owned by root.
	Files map[string][]byte
	// Dirs are further directories, mode 1777.
	Dirs       []string
	Entrypoint []string
	Cmd        []string
	Env        []string
	User       string
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

const mediaPrefix = "application/vnd.oci.image."

// Write writes the archive to file.
func Write(file string, image Image) error {
	layer, err := layer(image)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{
			"Entrypoint": image.Entrypoint, "Cmd": image.Cmd, "User": image.User,
			"Env": append([]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, image.Env...),
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": mediaPrefix + "manifest.v1+json",
		"config": describe("config.v1+json", config),
		"layers": []descriptor{describe("layer.v1.tar", layer)},
	})
	if err != nil {
		return err
	}
	entry := describe("manifest.v1+json", manifest)
	entry.Annotations = map[string]string{
		"io.containerd.image.name":          image.Name,
		"org.opencontainers.image.ref.name": image.Name,
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{entry}})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name string
		body []byte
	}{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", index},
		{blob(manifest), manifest}, {blob(config), config}, {blob(layer), layer},
	} {
		if err := put(w, f.name, 0o644, f.body); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}

func layer(image Image) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	dirs := map[string]int64{"tmp": 0o1777}
	names := make([]string, 0, len(image.Files))
	for name := range image.Files {
		names = append(names, name)
		for dir := path.Dir(strings.TrimPrefix(name, "/")); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = 0o755
		}
	}
	for _, d := range image.Dirs {
		dirs[strings.TrimPrefix(d, "/")] = 0o1777
	}
	sort.Strings(names)
	for _, dir := range sortedKeys(dirs) {
		h := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: dirs[dir]}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if err := put(w, strings.TrimPrefix(name, "/"), 0o755, image.Files[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func sortedKeys(m map[string]int64) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func put(w *tar.Writer, name string, mode int64, body []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(body))}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blob(b []byte) string { return "blobs/sha256/" + strings.TrimPrefix(digest(b), "sha256:") }

func describe(kind string, body []byte) descriptor {
	return descriptor{MediaType: fmt.Sprint(mediaPrefix, kind), Digest: digest(body), Size: len(body)}
}
