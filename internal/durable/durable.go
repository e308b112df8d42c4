// Package durable replaces files so that a reader sees the old content or the new one,
// whole; also after a power cut, unless a name says Unsynced.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// disk is the writer of the functions below.
var disk = Writer{Sync: (*os.File).Sync}

// Put replaces the file at path by content and returns when that is on disk: after a crash
// at any moment the file has the old content or the new one. Its mode is mode, whatever the
// umask. Of one path it may be called once at a time. Its directory must be there.
func Put(path string, content []byte, mode os.FileMode) error {
	return in(path, func(root *os.Root, name string) error { return disk.Put(root, name, content, mode) })
}

// PutUnsynced is Put for files that need not survive a power cut, as on tmpfs: after one the
// file may be the old one, empty or damaged. The name of what is being written begins with a
// dot, for others may list the directory.
func PutUnsynced(path string, content []byte, mode os.FileMode) error {
	draft := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	err := writeDraft(draft, content, mode)
	if errors.Is(err, fs.ErrExist) { // left by a crash
		if err = os.Remove(draft); err == nil {
			err = writeDraft(draft, content, mode)
		}
	}
	if err == nil {
		if err = syscall.Rename(draft, path); err != nil { // os.Rename looks at path before
			err = errors.Join(err, ignoreAbsent(os.Remove(draft)))
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// PutUnsyncedIn is PutUnsynced into a directory that is made, with the mode dir, if it is not there.
func PutUnsyncedIn(path string, content []byte, mode, dir os.FileMode) error {
	err := PutUnsynced(path, content, mode)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), dir); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return PutUnsynced(path, content, mode)
}

// writeDraft makes a file that must not be there. It is written with as few system calls as that needs, for a member's start waits
// for some ten of them.
func writeDraft(path string, content []byte, mode os.FileMode) (err error) {
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_EXCL|syscall.O_WRONLY|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, uint32(mode.Perm()))
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, syscall.Close(fd))
		if err != nil {
			err = errors.Join(err, ignoreAbsent(os.Remove(path)))
		}
	}()
	for rest := content; len(rest) > 0; {
		n, err := syscall.Write(fd, rest)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
		rest = rest[max(0, n):]
	}
	return syscall.Fchmod(fd, uint32(mode.Perm()))
}

// in calls do with the directory of path, open.
func in(path string, do func(root *os.Root, name string) error) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer root.Close()
	if err := do(root, filepath.Base(path)); err != nil {
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

// PutJSONUnsynced is PutUnsynced of the JSON form of doc, mode 0600.
func PutJSONUnsynced(path string, doc any) error {
	b, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return PutUnsynced(path, b, 0o600)
}

// GetJSON reads a file that PutJSON or PutJSONUnsynced wrote into doc. The error is
// fs.ErrNotExist when there is none.
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

// SyncDir returns when the names in the directory at path are on disk.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Draft names what Put writes before it becomes the file at path; a crash may leave it.
func Draft(path string) string { return path + ".new" }

// Writer writes below an open directory, which no link in a path leads out of.
type Writer struct {
	// Sync returns when a file or directory is on disk: (*os.File).Sync, but in tests that
	// watch it or let it fail.
	Sync func(*os.File) error
}

// Put is the function Put of a path below root.
func (w Writer) Put(root *os.Root, path string, content []byte, mode os.FileMode) error {
	return w.replace(root, path, Draft(path), content, mode)
}

// replace writes content at draft and moves it to path, which is in the same directory.
func (w Writer) replace(root *os.Root, path, draft string, content []byte, mode os.FileMode) error {
	if err := root.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a crash, or somebody else's
		return err
	}
	err := w.Create(root, draft, content, mode)
	if err == nil {
		err = root.Rename(draft, path)
	}
	if err != nil {
		return errors.Join(err, ignoreAbsent(root.Remove(draft)))
	}
	return w.SyncDir(root, filepath.Dir(path))
}

// Create writes a file that must not be there and returns when its content is on disk; its
// name may not be yet (see SyncDir).
func (w Writer) Create(root *os.Root, path string, content []byte, mode os.FileMode) error {
	f, err := root.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Chmod(mode), w.Sync(f), f.Close())
}

// MakeDirs makes path and what is above it, mode 0700, and returns when they are on disk.
// What is there already is synced, too: the process that made it may have died before it
// synced it, or failed to.
func (w Writer) MakeDirs(root *os.Root, path string) error {
	if path == "." {
		return nil
	}
	if err := w.MakeDirs(root, filepath.Dir(path)); err != nil {
		return err
	}
	if err := root.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return w.SyncDir(root, filepath.Dir(path))
}

// SyncDir returns when the names in a directory are on disk.
func (w Writer) SyncDir(root *os.Root, path string) error {
	dir, err := root.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(w.Sync(dir), dir.Close())
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
