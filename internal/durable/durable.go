// Package durable keeps small files that must survive a crash and a power cut.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Put replaces the file at path by content and returns when that is on disk: after a crash
// at any moment the file has the old content or the new one, whole. Of one path it may be
// called once at a time. Its directory must be there.
func Put(path string, content []byte, mode os.FileMode) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// PutJSON is Put of the JSON form of doc and a newline, mode 0600.
func PutJSON(path string, doc any) error {
	b, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return Put(path, append(b, '\n'), 0o600)
}

// GetJSON reads a file that PutJSON wrote into doc. The error is fs.ErrNotExist when there
// is none.
func GetJSON(path string, doc any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, doc); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
