package backup

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
)

// Chunks of chunkBytes are encrypted one by one, each with its number and whether it is the last: none can be left
// out, moved or added. The key is that of one file, and of its header.
const (
	chunkBytes = 64 << 10
	tagBytes   = 16
	keyBytes   = 32
)

// sealedBytes is how long plain bytes are when they are encrypted.
func sealedBytes(plain int64) int64 {
	return plain + tagBytes*max(1, (plain+chunkBytes-1)/chunkBytes)
}

// wrap makes a file's key, and encrypts it for each recipient.
func wrap(to []PublicKey) (key []byte, wrapped []Wrapped, err error) {
	key = make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails: see crypto/rand
	for _, k := range to {
		sealed, err := hpke.Seal(k.key, kdf, aead, wrapInfo, key)
		if err != nil {
			return nil, nil, fmt.Errorf("encrypt for %s: %w", k, err)
		}
		wrapped = append(wrapped, Wrapped{k.String(), sealed})
	}
	return key, wrapped, nil
}

// unwrap is the file's key.
func (k PrivateKey) unwrap(all []Wrapped) ([]byte, error) {
	for _, w := range all {
		if w.Recipient != k.Public().String() {
			continue
		}
		if key, err := hpke.Open(k.key, kdf, aead, wrapInfo, w.Key); err == nil && len(key) == keyBytes {
			return key, nil
		}
	}
	return nil, ErrKey
}

func cipherOf(key, header []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, "stead backup content 1\n"+string(header), keyBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// nonce is that of chunk n. A key is of one file, so that none is used twice.
func nonce(n uint64, last bool) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 3, 12), n)
	if last {
		return append(b, 1)
	}
	return append(b, 0)
}

// encrypt writes all of r to w.
func encrypt(w io.Writer, r io.Reader, key, header []byte) error {
	return eachChunk(r, key, header, chunkBytes, func(c cipher.AEAD, chunk []byte, nonce []byte) error {
		_, err := w.Write(c.Seal(nil, nonce, chunk, nil))
		return err
	})
}

// decrypt writes what encrypt wrote to r to w. Errors: ErrDamaged.
func decrypt(w io.Writer, r io.Reader, key, header []byte) error {
	return eachChunk(r, key, header, chunkBytes+tagBytes, func(c cipher.AEAD, chunk []byte, nonce []byte) error {
		plain, err := c.Open(nil, nonce, chunk, nil)
		if err != nil {
			return fmt.Errorf("%w: its encrypted content was changed", ErrDamaged)
		}
		_, err = w.Write(plain)
		return err
	})
}

// eachChunk reads r in chunks of size bytes; only the last may be shorter, and it may be empty.
func eachChunk(r io.Reader, key, header []byte, size int, do func(c cipher.AEAD, chunk, nonce []byte) error) error {
	c, err := cipherOf(key, header)
	if err != nil {
		return err
	}
	in, chunk := bufio.NewReaderSize(r, size), make([]byte, size)
	for n := uint64(0); ; n++ {
		got, err := io.ReadFull(in, chunk)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		_, end := in.Peek(1)
		if end != nil && end != io.EOF {
			return end
		}
		last := end == io.EOF
		if err := do(c, chunk[:got], nonce(n, last)); err != nil {
			return err
		}
		if last {
			return nil
		}
	}
}
