package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// durable writes so that it outlives a power cut: what returns without an error is on disk.
type durable struct {
	flush func(*os.File) error // (*os.File).Sync; tests watch and fail here
}

// put writes a file whole and durably, or not at all.
func (d durable) put(root *os.Root, dir, temp, name string, content []byte) error {
	if err := d.writeFile(root, filepath.Join(dir, temp), content); err != nil {
		return err
	}
	if err := root.Rename(filepath.Join(dir, temp), filepath.Join(dir, name)); err != nil {
		return err
	}
	return d.syncDir(root, dir)
}

// writeFile writes a line and returns when it is on disk; its name may not be yet.
func (d durable) writeFile(root *os.Root, path string, content []byte) error {
	f, err := root.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(content, '\n'))
	return errors.Join(err, d.flush(f), f.Close())
}

// makeDirs makes path and what is above it, durably. What is there already is synced, too:
// the try that made it may have died before it synced it, or failed to.
func (d durable) makeDirs(root *os.Root, path string) error {
	if path == "." {
		return nil
	}
	if err := d.makeDirs(root, filepath.Dir(path)); err != nil {
		return err
	}
	if err := except(root.Mkdir(path, 0o700), fs.ErrExist); err != nil {
		return err
	}
	return d.syncDir(root, filepath.Dir(path))
}

// syncDir returns when the names in a directory are on disk.
func (d durable) syncDir(root *os.Root, path string) error {
	dir, err := root.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return d.flush(dir)
}

// except returns err, or nil when err is harmless.
func except(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}
