package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	goruntime "runtime"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Bounds of how an archive's images are put together. Indexes that name one another, or one
// image many times, would keep an importer busy without end.
const (
	mostDepth  = 4
	mostVisits = 10_000
	mostLayers = 512
)

// descriptor names a blob, as in OCI's image specification.
type descriptor struct {
	MediaType string
	Digest    string
	Platform  *struct{ OS, Architecture string }
}

// document is an index or a manifest of OCI or docker.
type document struct {
	Manifests []descriptor // of an index
	Config    descriptor   // of a manifest
	Layers    []descriptor
}

// judge reads how the files make images, as containerd's importer does: as OCI if that is
// there, as docker's own format otherwise.
func (c *checker) judge() error {
	var layout struct{ ImageLayoutVersion string }
	if digest, ok := c.names["oci-layout"]; ok {
		if err := c.decode("oci-layout", digest, &layout); err != nil {
			return err
		}
	}
	if layout.ImageLayoutVersion != "" {
		return c.index("index.json", c.names["index.json"], 0)
	}
	digest, ok := c.names["manifest.json"]
	if !ok {
		return refused("it is neither an OCI nor a docker archive: it has no oci-layout and no manifest.json")
	}
	var images []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := c.decode("manifest.json", digest, &images); err != nil {
		return err
	}
	for _, i := range images {
		c.visits += 1 + len(i.RepoTags)
		if c.visits > mostVisits {
			return refused("it names more than %d images", mostVisits)
		}
		if err := c.decode("image configuration "+short(i.Config), c.names[i.Config], &struct{}{}); err != nil {
			return err
		}
		layers := make([]string, len(i.Layers))
		for n, name := range i.Layers {
			layers[n] = c.names[name] // none: a link to a file, or missing, which the importer tells
		}
		if err := c.image(layers, true); err != nil {
			return err
		}
	}
	return nil
}

// decode reads the first value of a document; more is not read by the importer either.
func (c *checker) decode(what, digest string, into any) error {
	b, ok := c.blobs[digest]
	if !ok {
		return refused("it is not whole: %s is missing; make the archive again", what)
	}
	if b.text == nil {
		return refused("%s is not JSON, or has more than %d bytes, or all such documents have more than %d", what, documentBytes, allDocuments)
	}
	if err := json.NewDecoder(bytes.NewReader(b.text)).Decode(into); err != nil {
		return refused("%s is not what it should be: %w", what, err)
	}
	return nil
}

// index judges what an index names.
func (c *checker) index(what, digest string, depth int) error {
	var doc document
	if err := c.decode(what, digest, &doc); err != nil {
		return err
	}
	for _, d := range doc.Manifests {
		c.visits++
		if c.visits > mostVisits {
			return refused("its indexes name more than %d images", mostVisits)
		}
		if _, there := c.blobs[d.Digest]; !there && !d.ours() {
			continue // exporters leave out what is for other platforms
		}
		var err error
		switch d.MediaType {
		case "application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json":
			if depth == mostDepth {
				return refused("its indexes are nested more than %d deep", mostDepth)
			}
			err = c.index("index "+short(d.Digest), d.Digest, depth+1)
		case "application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json":
			err = c.manifest(d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) manifest(d descriptor) error {
	var doc document
	if err := c.decode("manifest "+short(d.Digest), d.Digest, &doc); err != nil {
		return err
	}
	if _, there := c.blobs[doc.Config.Digest]; there || d.ours() {
		if err := c.decode("image configuration "+short(doc.Config.Digest), doc.Config.Digest, &struct{}{}); err != nil {
			return err
		}
	}
	layers := make([]string, 0, len(doc.Layers))
	for _, l := range doc.Layers {
		_, there := c.blobs[l.Digest]
		elsewhere := strings.Contains(l.MediaType, "nondistributable") || strings.Contains(l.MediaType, "foreign")
		if !there && d.ours() && !elsewhere {
			return refused("it is not whole: layer %s is missing; make the archive again", short(l.Digest))
		}
		layers = append(layers, l.Digest)
	}
	return c.image(layers, d.ours())
}

// image adds an image to what the images unpack to. Layers on top of the same ones are unpacked
// once; the same layer on top of others is unpacked again.
func (c *checker) image(layers []string, ours bool) error {
	if len(layers) > mostLayers {
		return refused("an image of it has more than %d layers", mostLayers)
	}
	if !ours {
		return nil
	}
	chain := ""
	for _, digest := range layers {
		chain = chainOf(chain, digest)
		if c.chains[chain] {
			continue
		}
		c.chains[chain] = true
		c.images += c.blobs[digest].unpacked
		if c.images > c.bounds.Bytes {
			return c.bounds.tooLarge("its images unpack to")
		}
	}
	return nil
}

// ours reports whether what d names may be for this machine.
func (d descriptor) ours() bool {
	return d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == goruntime.GOARCH
}

// short is a word of the archive for an error: quoted, and not longer than a digest.
func short(s string) string { return strconv.Quote(s[:min(len(s), 80)]) }

// chainOf names the layers up to digest by those below.
func chainOf(below, digest string) string {
	sum := sha256.Sum256([]byte(below + " " + digest))
	return string(sum[:])
}

const (
	// diskBlock is the usual block of a file system: a file takes whole ones.
	diskBlock = 4 << 10
	// inodeBytes is what a file takes beside its content, about.
	inodeBytes = 512
	// zstdWindow is the largest window of `zstd --ultra`; a reader keeps as much in memory.
	zstdWindow = 128 << 20
)

// errBeyond: it unpacks to more than it may.
var errBeyond = errors.New("unpacks to more than the limit")

// unpackedBytes is how many bytes on disk a layer unpacks to, at most limit. Of what is not a
// layer it is the number of its bytes, uncompressed.
func unpackedBytes(in *bufio.Reader, limit int64) (int64, error) {
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	m := &meter{from: in, left: limit}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return 0, refused("it is compressed, and damaged: %w", err)
		}
		m.from = z
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) || len(head) == 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:], []byte{0x2a, 0x4d, 0x18}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return 0, err
		}
		defer z.Close()
		m.from = z
	}
	onDisk, err := layerBytes(m, limit)
	if err == nil {
		_, err = io.Copy(io.Discard, m)
	}
	switch {
	case errors.Is(err, errBeyond):
		return 0, err
	case m.err != nil && m.from != in:
		return 0, refused("it is compressed, and damaged: %w", m.err)
	case m.err != nil:
		return 0, m.err
	}
	return max(onDisk, limit-m.left), nil
}

// layerBytes adds up the files of a layer. Sparse ones count whole, for unpacking writes their
// holes. What is not a tar counts 0.
func layerBytes(m *meter, limit int64) (int64, error) {
	var sum int64
	for in := tar.NewReader(m); ; {
		h, err := in.Next()
		switch {
		case m.err != nil:
			return 0, m.err
		case err != nil:
			return sum, nil // its end, or not a tar
		case h.Size > limit-sum:
			return 0, errBeyond
		}
		sum += inodeBytes + (h.Size+diskBlock-1)/diskBlock*diskBlock
		if sum > limit {
			return 0, errBeyond
		}
	}
}

// meter counts what is read, and keeps the error that ended it.
type meter struct {
	from io.Reader
	left int64
	err  error // never io.EOF
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.from.Read(p)
	m.left -= int64(n)
	if m.left < 0 {
		err = errBeyond
	}
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}
