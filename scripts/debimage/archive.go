package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	"github.com/opencontainers/image-spec/specs-go/v1"
)

// Image is a name, what its containers run by themselves, and layers, the lowest first, each an
// uncompressed tar.
type Image struct {
	Name       string
	Env        []string // NAME=VALUE; PATH takes the place of the usual one
	Entrypoint string   // a program; "": none
	Layers     [][]byte
}

// WriteFile writes the OCI archive whole or not at all.
func (m Image) WriteFile(path string) error {
	tmp, err := os.Create(path + ".partial")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	if err := errors.Join(m.archive().write(tmp), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}

// archive is the files of the OCI archive.
func (m Image) archive() Tree {
	files := Tree{"oci-layout": file(`{"imageLayoutVersion":"1.0.0"}`)}
	blob := func(media string, b []byte) v1.Descriptor {
		d := digest.FromBytes(b)
		files["blobs/sha256/"+d.Encoded()] = Entry{Type: tar.TypeReg, Mode: 0o644, Content: b}
		return v1.Descriptor{MediaType: media, Digest: d, Size: int64(len(b))}
	}
	conf := v1.Image{
		Created: &epoch, Platform: v1.Platform{Architecture: runtime.GOARCH, OS: "linux"}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.ImageConfig{Env: m.env(), WorkingDir: "/"},
	}
	if m.Entrypoint != "" {
		conf.Config.Entrypoint = []string{m.Entrypoint}
	}
	man := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest}
	for _, l := range m.Layers {
		d := blob(v1.MediaTypeImageLayer, l)
		man.Layers = append(man.Layers, d)
		conf.RootFS.DiffIDs = append(conf.RootFS.DiffIDs, d.Digest)
	}
	man.Config = blob(v1.MediaTypeImageConfig, encode(conf))
	top := blob(v1.MediaTypeImageManifest, encode(man))
	// Both names of the image: OCI's, and the one that containerd reads first.
	top.Annotations = map[string]string{v1.AnnotationRefName: m.Name, "io.containerd.image.name": m.Name}
	files["index.json"] = file(string(encode(v1.Index{
		Versioned: man.Versioned, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{top},
	})))
	return files
}

// env is the image's variables, with a PATH.
func (m Image) env() []string {
	if slices.ContainsFunc(m.Env, func(e string) bool { return strings.HasPrefix(e, "PATH=") }) {
		return m.Env
	}
	return append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, m.Env...)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // these types always marshal
	}
	return b
}
