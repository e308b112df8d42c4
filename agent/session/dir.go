package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stead-project/stead/internal/durable"
)

// Dir keeps small documents for the agent after this one, by the name of their file, which may be in
// a folder: "folder/name".
type Dir interface {
	// Get reads a document into doc; fs.ErrNotExist: there is none.
	Get(name string, doc any) error
	// Put replaces a document as a whole.
	Put(name string, doc any) error
	// Names lists the documents of a folder, sorted; none when there is no such folder.
	Names(folder string) ([]string, error)
	// Remove removes a document, if there is one.
	Remove(name string) error
}

// Tmpfs is a directory whose documents last until the next boot.
type Tmpfs string

// Get implements Dir.
func (d Tmpfs) Get(name string, doc any) error {
	return durable.GetJSON(filepath.Join(string(d), name), doc)
}

// Put implements Dir.
func (d Tmpfs) Put(name string, doc any) error {
	path := filepath.Join(string(d), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return durable.PutJSONUnsynced(path, doc)
}

// Names implements Dir.
func (d Tmpfs) Names(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(string(d), folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") { // not what an agent that died was writing
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Remove implements Dir.
func (d Tmpfs) Remove(name string) error {
	if err := os.Remove(filepath.Join(string(d), name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Disk is a directory whose documents are on disk when Put returns.
type Disk string

// Get implements Dir.
func (d Disk) Get(name string, doc any) error { return Tmpfs(d).Get(name, doc) }

// Put implements Dir.
func (d Disk) Put(name string, doc any) error {
	return durable.PutJSON(filepath.Join(string(d), name), doc)
}

// Names implements Dir.
func (d Disk) Names(folder string) ([]string, error) { return Tmpfs(d).Names(folder) }

// Remove implements Dir.
func (d Disk) Remove(name string) error { return Tmpfs(d).Remove(name) }
