package seal

import (
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/records/sealing"
)

// givePurpose binds what Give seals to its use.
const givePurpose = "stead: the key of a cluster, for a server that joins"

// Receiver is the key by which a server that joins is given the cluster's key: X25519. It
// shows nothing of itself when printed.
type Receiver struct{ key *ecdh.PrivateKey }

// NewReceiver makes one.
func NewReceiver() (Receiver, error) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	return Receiver{key}, err
}

// ParseReceiver reads what Bytes gave.
func ParseReceiver(b []byte) (Receiver, error) {
	key, err := ecdh.X25519().NewPrivateKey(b)
	if err != nil {
		return Receiver{}, errors.New("it holds no key")
	}
	return Receiver{key}, nil
}

// Bytes is the private key, to be kept for another try.
func (r Receiver) Bytes() []byte { return r.key.Bytes() }

// Public is the half that is sent.
func (r Receiver) Public() []byte { return r.key.PublicKey().Bytes() }

// String hides the key.
func (r Receiver) String() string { return "[receiver]" }

// GoString hides the key.
func (r Receiver) GoString() string { return r.String() }

// Give seals all keys of k, the one that seals first, for the receiver with this public key (HPKE, RFC 9180):
// nobody else opens them, whatever becomes of the message.
func (k *Key) Give(public []byte) ([]byte, error) {
	return give(public, secretsOf(*k.ring.Load()))
}

// GiveOne is Give of one key. It fails with ErrKey when that is none of k's.
func (k *Key) GiveOne(id sealing.KeyID, public []byte) ([]byte, error) {
	for _, o := range *k.ring.Load() {
		if o.id == id {
			return give(public, o.secret)
		}
	}
	return nil, fmt.Errorf("give key %s: %w", id, ErrKey)
}

func give(public, secret []byte) ([]byte, error) {
	point, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, errors.New("give key: not a public key")
	}
	to, err := hpke.NewDHKEMPublicKey(point)
	if err != nil {
		return nil, errors.New("give key: not a public key")
	}
	return hpke.Seal(to, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(givePurpose), secret)
}

// Take opens what Give sealed and keeps it at path (0600, durable), where no key of another
// cluster may be. Errors: ErrKey when it was not sealed for r, or such a key is there.
func (r Receiver) Take(sealed []byte, path string) (*Key, error) {
	secret, err := r.open(sealed)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	key, err := Merge(path, secret)
	if err != nil {
		return nil, fmt.Errorf("take key: %w", err)
	}
	return key, nil
}

// AddTo adds to k what GiveOne sealed, if it is the key named id. Errors: ErrKey.
func (r Receiver) AddTo(k *Key, id sealing.KeyID, sealed []byte) error {
	secret, err := r.open(sealed)
	if err != nil {
		return err
	}
	ring, err := ringOf(secret)
	if err != nil {
		return err
	}
	if len(ring) != 1 || ring[0].id != id {
		return fmt.Errorf("take key %s: another one was given: %w", id, ErrKey)
	}
	return k.add(ring...)
}

func (r Receiver) open(sealed []byte) ([]byte, error) {
	own, err := hpke.NewDHKEMPrivateKey(r.key)
	if err != nil {
		return nil, fmt.Errorf("take key: %w", err)
	}
	secret, err := hpke.Open(own, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(givePurpose), sealed)
	if err != nil {
		return nil, fmt.Errorf("take key: %w", ErrKey)
	}
	return secret, nil
}
