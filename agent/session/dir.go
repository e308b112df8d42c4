package session

import (
	"path/filepath"

	"github.com/stead-project/stead/internal/durable"
)

// Dir keeps small documents, by the name of their file, for the agent after this one.
type Dir interface {
	// Get reads a document into doc; fs.ErrNotExist: there is none.
	Get(name string, doc any) error
	// Put replaces a document as a whole.
	Put(name string, doc any) error
}

// Tmpfs is a directory whose documents last until the next boot.
type Tmpfs string

// Get implements Dir.
func (d Tmpfs) Get(name string, doc any) error {
	return durable.GetJSON(filepath.Join(string(d), name), doc)
}

// Put implements Dir.
func (d Tmpfs) Put(name string, doc any) error {
	return durable.PutJSONUnsynced(filepath.Join(string(d), name), doc)
}

// Disk is a directory whose documents are on disk when Put returns.
type Disk string

// Get implements Dir.
func (d Disk) Get(name string, doc any) error { return Tmpfs(d).Get(name, doc) }

// Put implements Dir.
func (d Disk) Put(name string, doc any) error {
	return durable.PutJSON(filepath.Join(string(d), name), doc)
}
