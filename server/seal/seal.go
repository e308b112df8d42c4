// Package seal encrypts what must not stand readable in the store: the files of
// Secrets and the key of the cluster's authority, with AES-256-GCM under a key that
// never leaves the servers' hosts.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// KeyBytes is the length of a key.
const KeyBytes = 32

// ErrKey: the sealed content was not made with this key, or not for this name,
// or it is damaged. Nothing of the content is in the error.
var ErrKey = errors.New("the key does not open it")

// Key seals and opens. It is safe for concurrent use. It shows nothing of itself
// when printed or logged.
type Key struct{ aead cipher.AEAD }

// NewKey makes a key of 32 secret bytes.
func NewKey(secret []byte) (*Key, error) {
	if len(secret) != KeyBytes {
		return nil, fmt.Errorf("make key: %d bytes; want %d", len(secret), KeyBytes)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return &Key{aead}, nil
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
	return k.SealAt(store.SecretKey(ns, name), plain)
}

// SealAt encrypts what is to stand at a key of the store, to which it is bound: nonce,
// then ciphertext.
func (k *Key) SealAt(key string, plain []byte) (scalar.Bytes, error) {
	nonce := make([]byte, k.aead.NonceSize(), k.aead.NonceSize()+len(plain)+k.aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("seal %s: %w", key, err)
	}
	return k.aead.Seal(nonce, nonce, plain, []byte(key)), nil
}

// OpenAt decrypts what SealAt made for key. It fails with ErrKey.
func (k *Key) OpenAt(key string, sealed []byte) ([]byte, error) {
	n := k.aead.NonceSize()
	if len(sealed) < n {
		return nil, fmt.Errorf("open %s: %w", key, ErrKey)
	}
	plain, err := k.aead.Open(nil, sealed[:n], sealed[n:], []byte(key))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, ErrKey)
	}
	return plain, nil
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
