package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records/sealing"
)

// MaxKeys is how many keys a file may hold.
const MaxKeys = 16

// idPurpose binds what names a key to its use.
const idPurpose = "stead: the name of a key"

// newOne makes a key of 32 secret bytes. Its id tells nothing of them.
func newOne(secret []byte) (one, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return one{}, fmt.Errorf("make key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return one{}, fmt.Errorf("make key: %w", err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(idPurpose))
	return one{sealing.KeyID(hex.EncodeToString(mac.Sum(nil)[:6])), aead, bytes.Clone(secret)}, nil
}

// ringOf reads what a file holds. A key that is there twice counts once.
func ringOf(secret []byte) ([]one, error) {
	if n := len(secret); n == 0 || n%KeyBytes != 0 || n > MaxKeys*KeyBytes {
		return nil, fmt.Errorf("make key: %d bytes; want %d for each of at most %d keys", n, KeyBytes, MaxKeys)
	}
	var ring []one
	for part := range slices.Chunk(secret, KeyBytes) {
		o, err := newOne(part)
		if err != nil {
			return nil, err
		}
		ring = with(ring, o)
	}
	return ring, nil
}

// with is ring and those of more that it has not.
func with(ring []one, more ...one) []one {
	for _, o := range more {
		if !slices.ContainsFunc(ring, func(p one) bool { return p.id == o.id }) {
			ring = append(ring, o)
		}
	}
	return ring
}

// secretsOf is what the file of a ring holds.
func secretsOf(ring []one) []byte {
	var out []byte
	for _, o := range ring {
		out = append(out, o.secret...)
	}
	return out
}

// Sealing is the key that seals.
func (k *Key) Sealing() sealing.KeyID { return (*k.ring.Load())[0].id }

// IDs are those of all its keys, sorted.
func (k *Key) IDs() []sealing.KeyID {
	var ids []sealing.KeyID
	for _, o := range *k.ring.Load() {
		ids = append(ids, o.id)
	}
	slices.Sort(ids)
	return ids
}

// Has reports whether id is one of its keys.
func (k *Key) Has(id sealing.KeyID) bool { return slices.Contains(k.IDs(), id) }

// Make adds a new random key, which only opens until Use, and returns its id when it is in the file.
func (k *Key) Make() (sealing.KeyID, error) {
	secret := make([]byte, KeyBytes)
	_, _ = rand.Read(secret) // never fails: see crypto/rand
	o, err := newOne(secret)
	if err != nil {
		return "", err
	}
	return o.id, k.add(o)
}

func (k *Key) add(more ...one) error {
	return k.change(func(ring []one) []one { return with(ring, more...) })
}

// Use has id seal from now on. It fails with ErrKey when that is none of its keys.
func (k *Key) Use(id sealing.KeyID) error {
	if k.Sealing() == id {
		return nil
	}
	if !k.Has(id) {
		return fmt.Errorf("use key %s: %w", id, ErrKey)
	}
	return k.change(func(ring []one) []one {
		at := slices.IndexFunc(ring, func(o one) bool { return o.id == id })
		o := ring[at]
		return append([]one{o}, slices.Delete(ring, at, at+1)...)
	})
}

// Drop forgets a key, in the file first. The one that seals stays, with an error.
func (k *Key) Drop(id sealing.KeyID) error {
	if k.Sealing() == id {
		return fmt.Errorf("drop key %s: it seals", id)
	}
	return k.change(func(ring []one) []one {
		return slices.DeleteFunc(ring, func(o one) bool { return o.id == id })
	})
}

// change writes what becomes of the keys, and then takes it. What somebody put into the file meanwhile
// is kept there: nothing is lost that is in no other place.
func (k *Key) change(edit func([]one) []one) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	ring := slices.Clone(*k.ring.Load())
	if k.path != "" {
		there, err := os.ReadFile(k.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("change key: %w", err)
		}
		if more, err := ringOf(there); err == nil {
			ring = with(ring, more...)
		}
	}
	ring = edit(ring)
	if k.path != "" {
		if err := durable.Put(k.path, secretsOf(ring), 0o600); err != nil {
			return fmt.Errorf("change key: %w", err)
		}
	}
	k.ring.Store(&ring)
	return nil
}

// Merge keeps at path the keys of secret beside those that are there, if any of them is the same. It fails with
// ErrKey, and changes nothing, where none is: then the file is another cluster's.
func Merge(path string, secret []byte) (*Key, error) {
	given, err := NewKey(secret)
	if err != nil {
		return nil, err
	}
	have, err := Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := durable.Put(path, secret, 0o600); err != nil {
			return nil, err
		}
		return Load(path)
	case err != nil:
		return nil, err
	case !slices.ContainsFunc(given.IDs(), have.Has):
		return nil, fmt.Errorf("%w: %s is of another cluster; move it away if nothing needs it", ErrKey, path)
	case !slices.ContainsFunc(given.IDs(), func(id sealing.KeyID) bool { return !have.Has(id) }):
		return have, nil
	}
	return have, have.add(*given.ring.Load()...)
}
