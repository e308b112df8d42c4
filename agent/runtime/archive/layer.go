package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

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
