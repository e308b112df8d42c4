// Package seal encrypts what must not stand readable in the store: the files of
// Secrets and the key of the cluster's authority, with AES-256-GCM under a key that
// never leaves the servers' hosts. While that key is rotated there are several: one
// seals, all open (server/keyring says which).
package seal

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// KeyBytes is the length of a key.
const KeyBytes = 32

// ErrKey: the sealed content was made with no key that is here, or not for this name,
// or it is damaged. Nothing of the content is in the error.
var ErrKey = errors.New("the key does not open it")

// Key seals and opens. It may hold several keys: one seals, all open. It is safe for
// concurrent use. It shows nothing of itself when printed or logged.
type Key struct {
	path string     // its file; "": it has none
	mu   sync.Mutex // held while the keys change
	ring atomic.Pointer[[]one]
}

// one is one of the keys. The first one of a ring seals.
type one struct {
	id     sealing.KeyID
	aead   cipher.AEAD
	secret []byte
}

// NewKey makes a key of what its file holds: 32 secret bytes for each of its keys, at first
// those of the one that seals.
func NewKey(secret []byte) (*Key, error) {
	ring, err := ringOf(secret)
	if err != nil {
		return nil, err
	}
	k := &Key{}
	k.ring.Store(&ring)
	return k, nil
}

// String hides the key.
func (k *Key) String() string { return "[key]" }

// GoString hides the key.
func (k *Key) GoString() string { return "[key]" }

// Seal encrypts the files of the Secret ns/name: nonce, then ciphertext. The
// name is bound to it: it opens under no other. Twice the same files seal to
// different bytes.
func (k *Key) Seal(ns spec.Namespace, name string, files map[string][]byte) (scalar.Bytes, error) {
	plain, err := json.Marshal(files)
	if err != nil {
		return nil, fmt.Errorf("seal secret %s/%s: its files cannot be encoded", ns, name)
	}
	return k.SealAt(store.SecretKey(ns, name), plain), nil
}

// SealAt encrypts what is to stand at a key of the store, to which it is bound: nonce,
// then ciphertext.
func (k *Key) SealAt(key string, plain []byte) scalar.Bytes {
	return (*k.ring.Load())[0].aead.Seal(nil, nil, plain, []byte(key))
}

// OpenAt decrypts what SealAt made for key. It fails with ErrKey.
func (k *Key) OpenAt(key string, sealed []byte) ([]byte, error) {
	plain, _, err := k.open(key, sealed)
	return plain, err
}

// Under tells which of the keys opens what is sealed at key; "": none.
func (k *Key) Under(key string, sealed []byte) sealing.KeyID {
	_, id, _ := k.open(key, sealed)
	return id
}

func (k *Key) open(key string, sealed []byte) ([]byte, sealing.KeyID, error) {
	for _, o := range *k.ring.Load() {
		if plain, err := o.aead.Open(nil, nil, sealed, []byte(key)); err == nil {
			return plain, o.id, nil
		}
	}
	return nil, "", fmt.Errorf("open %s: %w", key, ErrKey)
}

// Open decrypts the files of r. It fails with ErrKey.
func (k *Key) Open(r *records.SecretRecord) (map[string][]byte, error) {
	plain, err := k.OpenAt(store.SecretKey(r.Namespace, r.Name), r.Sealed)
	if err != nil {
		return nil, fmt.Errorf("open secret %s/%s: %w", r.Namespace, r.Name, ErrKey)
	}
	var files map[string][]byte
	if err := json.Unmarshal(plain, &files); err != nil {
		return nil, fmt.Errorf("open secret %s/%s: %w", r.Namespace, r.Name, ErrKey)
	}
	return files, nil
}

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
	key.path = path
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
	_, _ = rand.Read(secret)                   // never fails: see crypto/rand
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
