package backup

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stead-project/stead/internal/durable"
)

// How keys are written: one in a line; lines that begin with # are comments.
const (
	publicPrefix  = "stead-backup-public-"
	privatePrefix = "STEAD-BACKUP-PRIVATE-"
	checkBytes    = 4 // of a SHA-256 behind each key: nothing opens what was encrypted for a mistyped one
)

var (
	kem  = hpke.DHKEM(ecdh.X25519())
	kdf  = hpke.HKDFSHA256()
	aead = hpke.AES256GCM()
	// wrapInfo binds a wrapped key to what it is for.
	wrapInfo = []byte("stead backup key 1")
)

// PublicKey is a recipient of backups: it encrypts, and opens nothing.
type PublicKey struct{ key hpke.PublicKey }

// PrivateKey opens what was encrypted for its PublicKey. It shows nothing of itself when printed.
type PrivateKey struct{ key hpke.PrivateKey }

// String is the key as it is written.
func (k PublicKey) String() string { return written(publicPrefix, k.key.Bytes()) }

// String hides the key.
func (k PrivateKey) String() string { return "[private key of " + k.Public().String() + "]" }

// GoString hides the key.
func (k PrivateKey) GoString() string { return k.String() }

// Public is the key that encrypts for k.
func (k PrivateKey) Public() PublicKey { return PublicKey{k.key.PublicKey()} }

func written(prefix string, key []byte) string {
	sum := sha256.Sum256(append([]byte(prefix), key...))
	return prefix + base64.RawURLEncoding.EncodeToString(append(bytes.Clone(key), sum[:checkBytes]...))
}

// parse reads what written wrote. Its error has nothing of the text, which may be secret.
func parse(prefix, text string) ([]byte, error) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return nil, fmt.Errorf("a key that begins with %s is needed", prefix)
	}
	all, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil || len(all) <= checkBytes || written(prefix, all[:len(all)-checkBytes]) != text {
		return nil, errors.New("it is mistyped or cut short")
	}
	return all[:len(all)-checkBytes], nil
}

// ParsePublic reads a public key.
func ParsePublic(text string) (PublicKey, error) {
	raw, err := parse(publicPrefix, text)
	if err != nil {
		return PublicKey{}, fmt.Errorf("read public key: %w", err)
	}
	key, err := kem.NewPublicKey(raw)
	if err != nil {
		return PublicKey{}, fmt.Errorf("read public key: %w", err)
	}
	return PublicKey{key}, nil
}

// NewKeyFile makes a key and keeps it at path (0600, on disk before it returns), where no file may be.
func NewKeyFile(path string) (PublicKey, error) {
	key, err := kem.GenerateKey()
	if err != nil {
		return PublicKey{}, err
	}
	raw, err := key.Bytes()
	if err != nil {
		return PublicKey{}, err
	}
	public := PublicKey{key.PublicKey()}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return PublicKey{}, err
	}
	_, err = fmt.Fprintf(f, "# Opens backups of Stead. Keep it apart from them, and from the servers; keep a copy.\n# %s\n%s\n",
		public, written(privatePrefix, raw))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return PublicKey{}, errors.Join(err, os.Remove(path))
	}
	return public, durable.SyncDir(filepath.Dir(path))
}

// keyLines are the lines of a file of keys, without comments.
func keyLines(path string) (lines []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s holds no key", path)
	}
	return lines, nil
}

// LoadPublic reads the public keys in a file, one a line: each of them alone can open what is encrypted. A private key
// in it is refused: it must not be on a server.
func LoadPublic(path string) (keys []PublicKey, err error) {
	lines, err := keyLines(path)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		if strings.HasPrefix(line, privatePrefix) {
			return nil, fmt.Errorf("%s holds a private key: take it away from this server, and put here the public one that 'stead backup keygen' printed", path)
		}
		key, err := ParsePublic(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// LoadPrivate reads the private key in a file that is closed to others.
func LoadPrivate(path string) (k PrivateKey, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return k, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return k, fmt.Errorf("%s is open to others (%04o); write chmod 0600", path, info.Mode().Perm())
	}
	lines, err := keyLines(path)
	if err != nil {
		return k, err
	}
	raw, err := parse(privatePrefix, lines[0])
	if err == nil {
		k.key, err = kem.NewPrivateKey(raw)
	}
	if err != nil {
		return k, fmt.Errorf("read private key in %s: %w", path, err)
	}
	return k, nil
}
