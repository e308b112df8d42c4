package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sort"
)

// Image is a name and layers, the lowest first, each an uncompressed tar.
type Image struct {
	Name   string
	Layers [][]byte
}

// The JSON documents of an OCI archive (opencontainers/image-spec), as far as needed.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	index struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}
	manifest struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
	}
	config struct {
		Created      string       `json:"created"`
		Architecture string       `json:"architecture"`
		OS           string       `json:"os"`
		Config       configConfig `json:"config"`
		RootFS       rootFS       `json:"rootfs"`
	}
	configConfig struct {
		Env        []string `json:"Env"`
		WorkingDir string   `json:"WorkingDir"`
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
)

const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// WriteFile writes the OCI archive whole or not at all.
func (m Image) WriteFile(path string) error {
	tmp, err := os.Create(path + ".partial")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	err = m.write(tar.NewWriter(tmp))
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}

func (m Image) write(out *tar.Writer) error {
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	blob := func(media string, b []byte) descriptor {
		d := digest(b)
		files["blobs/sha256/"+d] = b
		return descriptor{MediaType: media, Digest: "sha256:" + d, Size: len(b)}
	}
	conf := config{
		Created: epoch.Format("2006-01-02T15:04:05Z"), Architecture: runtime.GOARCH, OS: "linux",
		Config: configConfig{
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			WorkingDir: "/",
		},
		RootFS: rootFS{Type: "layers"},
	}
	man := manifest{SchemaVersion: 2, MediaType: mediaManifest}
	for _, l := range m.Layers {
		d := blob(mediaLayer, l)
		man.Layers = append(man.Layers, d)
		conf.RootFS.DiffIDs = append(conf.RootFS.DiffIDs, d.Digest)
	}
	man.Config = blob(mediaConfig, encode(conf))
	top := blob(mediaManifest, encode(man))
	// Both names of the image: OCI's, and the one that containerd reads first.
	top.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": m.Name,
		"io.containerd.image.name":          m.Name,
	}
	files["index.json"] = encode(index{SchemaVersion: 2, MediaType: mediaIndex, Manifests: []descriptor{top}})

	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name])), ModTime: epoch}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(files[name]); err != nil {
			return err
		}
	}
	return out.Close()
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types always marshal
	}
	return b
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
