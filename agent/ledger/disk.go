package ledger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/durable"
)

// Disk is where a ledger lies: a file of the host or, in a simulation, memory that
// loses in a crash what was not synced. One ledger has it open.
type Disk interface {
	// Name is where it is, for messages.
	Name() string
	// Read returns all of the content.
	Read() ([]byte, error)
	// WriteAt and Truncate change the content; they last when Sync has returned nil.
	WriteAt(p []byte, at int64) (int, error)
	Truncate(size int64) error
	Sync() error
	// Replace puts content in the place of all, whole or not at all, and returns when
	// that lasts. With an error it reports whether the content is the new one.
	Replace(content []byte) (replaced bool, err error)
	// Close may be repeated.
	Close() error
}

// hostFile is a Disk in the host's filesystem. It holds blocks beyond its end, so
// that ends of lives can be recorded, and an agent started, while members have
// filled the disk.
type hostFile struct {
	path string
	*os.File
	held int64 // blocks are ours up to here, as far as we know
}

// holdBytes is how far ahead blocks are held: some thousand records.
const holdBytes = 256 << 10

func openHostFile(path string) (*hostFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &hostFile{path: path, File: f}, nil
}

// WriteAt implements Disk.
func (h *hostFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := h.File.WriteAt(p, at)
	if end := at + int64(n); end+holdBytes/2 > h.held {
		// Where the filesystem cannot, or is full already, there is nothing to hold.
		if unix.Fallocate(int(h.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, end+holdBytes) == nil {
			h.held = end + holdBytes
		}
	}
	return n, err
}

// Truncate implements Disk. It gives up what is held, unless nothing changes.
func (h *hostFile) Truncate(size int64) error {
	if at, err := h.Stat(); err == nil && at.Size() == size {
		return nil
	}
	h.held = 0
	return h.File.Truncate(size)
}

func (h *hostFile) Read() ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(h.File, 0, 1<<62))
}

func (h *hostFile) Replace(content []byte) (replaced bool, err error) {
	next := h.path + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync())
	if err == nil {
		err = os.Rename(next, h.path)
	}
	if err != nil {
		return false, errors.Join(err, f.Close(), os.Remove(next))
	}
	old := h.File
	h.File, h.held = f, 0
	return true, errors.Join(syncName(h.path), old.Close())
}

// syncName returns when the name of the file at path is on disk.
func syncName(path string) error {
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("sync the ledger's directory: %w", err)
	}
	return nil
}
