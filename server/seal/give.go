package seal

import (
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/internal/durable"
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

// Give seals k itself for the receiver with this public key (HPKE, RFC 9180): nobody else
// opens it, whatever becomes of the message.
func (k *Key) Give(public []byte) ([]byte, error) {
	point, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, errors.New("give key: not a public key")
	}
	to, err := hpke.NewDHKEMPublicKey(point)
	if err != nil {
		return nil, errors.New("give key: not a public key")
	}
	return hpke.Seal(to, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(givePurpose), k.secret)
}

// Take opens what Give sealed and keeps it at path (0600, durable), where no other key may
// be. Errors: ErrKey when it was not sealed for r, or another key is there.
func (r Receiver) Take(sealed []byte, path string) (*Key, error) {
	own, err := hpke.NewDHKEMPrivateKey(r.key)
	if err != nil {
		return nil, fmt.Errorf("take key: %w", err)
	}
	secret, err := hpke.Open(own, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(givePurpose), sealed)
	if err != nil {
		return nil, fmt.Errorf("take key: %w", ErrKey)
	}
	key, err := NewKey(secret)
	if err != nil {
		return nil, err
	}
	switch had, err := Load(path); {
	case err == nil && string(had.secret) == string(secret):
		return key, nil
	case err == nil:
		return nil, fmt.Errorf("%w: %s is of another cluster; move it away if nothing needs it", ErrKey, path)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return key, durable.Put(path, secret, 0o600)
}
