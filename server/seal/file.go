package seal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/internal/durable"
)

// Load reads the key kept at path. Errors: fs.ErrNotExist when there is none;
// others when the file is readable by anybody but its owner or has a wrong length.
func Load(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("load key: %s is open to others (%04o); write chmod 0600", path, info.Mode().Perm())
	}
	secret, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load key: %w", err)
	}
	key, err := NewKey(secret)
	if err != nil {
		return nil, fmt.Errorf("load key: %s holds no key: %w", path, err)
	}
	return key, nil
}

// Ensure reads the key kept at path, or makes a random one there (0600, durable
// before it is used). A torn write leaves no key behind, and an existing file is
// never replaced: the key is all that opens the cluster's Secrets.
func Ensure(path string) (*Key, error) {
	key, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := write(path); err != nil {
		return nil, fmt.Errorf("make key %s: %w", path, err)
	}
	return Load(path)
}

// write puts a random key at path, or leaves the one that another process put
// there meanwhile.
func write(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	secret := make([]byte, KeyBytes)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	draft, err := os.CreateTemp(dir, ".key-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	_, err = draft.Write(secret)
	err = errors.Join(err, draft.Sync(), draft.Close())
	if err != nil {
		return err
	}
	if err := os.Link(draft.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.SyncDir(dir)
}
