package ledger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Disk is where a ledger lies: a file of the host or, in a simulation, memory that
// loses in a crash what was not synced. One ledger has it open.
type Disk interface {
	// Name tells people where it is.
	Name() string
	// Read returns all of the content.
	Read() ([]byte, error)
	// WriteAt and Truncate change the content; they last when Sync has returned nil.
	WriteAt(p []byte, at int64) (int, error)
	Truncate(size int64) error
	Sync() error
	// Replace puts content in the place of all, whole or not at all, and returns when
	// that lasts. With an error it tells whether the content is the new one.
	Replace(content []byte) (replaced bool, err error)
	// Close may be repeated.
	Close() error
}

// hostFile is a Disk in the host's filesystem.
type hostFile struct {
	path string
	*os.File
}

func openHostFile(path string) (*hostFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &hostFile{path, f}, nil
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
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(next, h.path)
	}
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	old := h.File
	h.File = f
	return true, errors.Join(syncDir(h.path), old.Close())
}

func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("sync the ledger's directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync the ledger's directory: %w", err)
	}
	return nil
}
