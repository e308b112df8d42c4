// Package archive judges an image archive while it passes by, so that nothing of a refused
// one becomes an image: what it is as it comes, what it unpacks to, and whether it is whole.
// Whatever the bytes are, memory stays bounded by the constants below.
package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/stead-project/stead/agent/runtime"
)

// Bounds of what is kept of an archive in memory, here and in the importer behind it.
const (
	mostEntries   = 10_000
	mostName      = 1 << 10  // bytes of a name, and of a link's target
	documentBytes = 4 << 20  // of a manifest, an index or a configuration; registries take no more
	allDocuments  = 32 << 20 // of all these
)

// endBytes is the end mark of a tar: two empty blocks. An importer that did not get them
// waits for them, or for the end of the stream.
const endBytes = 1024

// Bounds are what an archive may take.
type Bounds struct {
	// Bytes bounds the archive as it comes, the sum of its files, what all of these
	// unpack to, and what its images together unpack to.
	Bytes int64
	// Room reports whether the disk has room for so many bytes more; nil: it has.
	Room func(bytes int64) error
}

// Check passes src on to dst, and judges it. It holds back the end until the whole archive
// was found good: an importer that reads dst has no whole archive before. Its errors about
// what the archive holds are runtime.ErrImageRefused.
func Check(dst io.Writer, src io.Reader, b Bounds) error {
	out := &gate{to: dst, bounds: b}
	c := &checker{bounds: b, names: map[string]string{}, blobs: map[string]blob{}, chains: map[string]bool{}}
	in := tar.NewReader(io.TeeReader(src, out))
	for entries := 0; ; entries++ {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = c.entry(h, in, entries)
		}
		if err != nil {
			return damaged(err)
		}
	}
	if err := c.judge(); err != nil {
		return err
	}
	if err := b.room(c.images); err != nil {
		return err
	}
	return out.finish()
}

func (b Bounds) room(bytes int64) error {
	if b.Room == nil {
		return nil
	}
	return b.Room(bytes)
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{runtime.ErrImageRefused}, args...)...)
}

// damaged names what the reader of tars found.
func damaged(err error) error {
	if errors.Is(err, runtime.ErrImageRefused) {
		return err
	}
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refused("it is damaged, broke off, or is not a tar archive: %w", err)
	}
	return err
}

func (b Bounds) tooLarge(what string) error {
	return refused("%s more than %d bytes; --max-image-bytes of the agent sets this limit", what, b.Bytes)
}

// blob is a file of an archive.
type blob struct {
	unpacked int64  // bytes on disk, if it is a layer
	text     []byte // nil: it is not a document, or too large for one
}

type checker struct {
	bounds   Bounds
	names    map[string]string // digest of a file by its name
	blobs    map[string]blob   // by digest
	kept     int64             // bytes of text in blobs
	files    int64             // bytes of all files
	unpacked int64             // bytes that all files unpack to
	visits   int
	chains   map[string]bool // layers from the lowest one up that are counted in images
	images   int64           // bytes that the images for this machine unpack to
}

// entry takes one file of the archive.
func (c *checker) entry(h *tar.Header, in io.Reader, before int) error {
	switch {
	case before >= mostEntries:
		return refused("it has more than %d files", mostEntries)
	case len(h.Name) > mostName || len(h.Linkname) > mostName:
		return refused("it has a file whose name is longer than %d bytes", mostName)
	case h.Typeflag != tar.TypeReg:
		return nil // the importer takes nothing of it but a link's target
	case h.Size > c.bounds.Bytes-c.files: // a sparse file is larger than what comes of it
		return c.bounds.tooLarge("its files have")
	}
	c.files += h.Size
	name := path.Clean(h.Name)
	sum := sha256.New()
	file := &meter{from: io.TeeReader(in, sum), left: h.Size}
	b, err := c.read(bufio.NewReaderSize(file, 64<<10), name, h.Size)
	switch {
	case file.err != nil: // the archive's, not the file's
		return file.err
	case err != nil:
		return err
	}
	digest := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	if hash, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && "sha256:"+hash != digest {
		return refused("the content of %q does not have the digest of its name; make the archive again", name)
	}
	if other := c.names[name]; other != "" && other != digest {
		return refused("it has %q twice, with different content", name)
	}
	c.names[name] = digest
	if _, twice := c.blobs[digest]; twice {
		c.kept -= int64(len(b.text))
		return nil
	}
	c.blobs[digest] = b
	return nil
}

// read reads a file to its end.
func (c *checker) read(in *bufio.Reader, name string, size int64) (blob, error) {
	head, err := in.Peek(1)
	if err != nil && !errors.Is(err, io.EOF) {
		return blob{}, err
	}
	var text []byte
	if bytes.ContainsAny(head, "{[ \t\r\n") && size <= documentBytes && c.kept+size <= allDocuments {
		text, err = io.ReadAll(in)
		if err != nil {
			return blob{}, err
		}
		c.kept += int64(len(text))
		in = bufio.NewReader(bytes.NewReader(text)) // it may be a layer all the same
	}
	n, err := unpackedBytes(in, c.bounds.Bytes-c.unpacked)
	switch {
	case errors.Is(err, errBeyond):
		return blob{}, c.bounds.tooLarge("it unpacks to")
	case err != nil:
		return blob{}, fmt.Errorf("%q: %w", name, err)
	}
	c.unpacked += n
	_, err = io.Copy(io.Discard, in) // what follows a compressed stream has a share in the digest
	return blob{unpacked: n, text: text}, err
}

// gate passes on all but the last endBytes.
type gate struct {
	to     io.Writer
	bounds Bounds
	tail   []byte
	passed int64
	asked  int64 // passed when room was asked for last
}

// roomEvery is after how many bytes the room is looked at again.
const roomEvery = 16 << 20

// Write implements io.Writer.
func (g *gate) Write(p []byte) (int, error) {
	if int64(len(p)) > g.bounds.Bytes-g.passed-int64(len(g.tail)) {
		return 0, g.bounds.tooLarge("it has")
	}
	if g.passed == 0 || g.passed-g.asked >= roomEvery {
		if err := g.bounds.room(0); err != nil {
			return 0, err
		}
		g.asked = g.passed
	}
	g.tail = append(g.tail, p...)
	if ready := len(g.tail) - endBytes; ready > 0 {
		if _, err := g.to.Write(g.tail[:ready]); err != nil {
			return 0, err
		}
		g.passed += int64(ready)
		g.tail = append(g.tail[:0], g.tail[ready:]...)
	}
	return len(p), nil
}

func (g *gate) finish() error {
	_, err := g.to.Write(g.tail)
	return err
}
