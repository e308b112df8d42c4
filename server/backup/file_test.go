package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// keyPair is a new key.
func keyPair(t *testing.T) (PrivateKey, PublicKey) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	public, err := NewKeyFile(file)
	if err != nil {
		t.Fatal(err)
	}
	private, err := LoadPrivate(file)
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

// sample is what write makes of a snapshot of that many bytes.
func sample(t *testing.T, size int, to ...PublicKey) (content, snapshot []byte) {
	t.Helper()
	snapshot = bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
	sum := sha256.Sum256(snapshot)
	m := Manifest{Cluster: "c-1", Epoch: 2, Rev: 30, Made: time.Unix(1700000000, 0), Bytes: int64(size), SHA256: hex.EncodeToString(sum[:])}
	var out bytes.Buffer
	if _, err := write(&out, m, bytes.NewReader(snapshot), Secrets{Key: []byte("the cluster's own secret")}, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), snapshot
}

func put(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.backup")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestABackupIsReadAsItWasWritten(t *testing.T) {
	private, public := keyPair(t)
	_, other := keyPair(t)
	for _, size := range []int{0, 1, chunkBytes - 40, chunkBytes, 3*chunkBytes - 1, 3 * chunkBytes} {
		for name, to := range map[string][]PublicKey{"plain": nil, "encrypted": {other, public}} {
			content, want := sample(t, size, to...)
			f, err := Open(put(t, content))
			if err != nil {
				t.Fatalf("%s of %d bytes: %v", name, size, err)
			}
			var got bytes.Buffer
			secrets, err := f.Unseal(&private, &got)
			if err := errors.Join(err, f.Check(), f.Close()); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s of %d bytes: %d bytes, %v", name, size, got.Len(), err)
			}
			hidden := !bytes.Contains(content, []byte("secret\"")) && !bytes.Contains(content, []byte("own secret"))
			switch {
			case name == "plain" && secrets != nil:
				t.Error("a backup that is not encrypted has a secret")
			case name == "encrypted" && (secrets == nil || string(secrets.Key) != "the cluster's own secret"):
				t.Errorf("the secret is %v", secrets)
			case !hidden, name == "encrypted" && size > 16 && bytes.Contains(content, []byte("0123456789abcdef")):
				t.Errorf("%s of %d bytes can be read without a key", name, size)
			}
		}
	}
}

func TestWithoutItsKeyABackupIsNotOpened(t *testing.T) {
	_, public := keyPair(t)
	wrong, _ := keyPair(t)
	content, _ := sample(t, 100, public)
	f, err := Open(put(t, content))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Unseal(nil, io.Discard); !errors.Is(err, ErrSealed) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := f.Unseal(&wrong, io.Discard); !errors.Is(err, ErrKey) {
		t.Errorf("with another's key: %v", err)
	}
	if err := f.Check(); err != nil {
		t.Errorf("whether it is whole needs no key: %v", err)
	}
}

// whole opens and checks a file, and opens what is encrypted.
func whole(path string, key PrivateKey) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Check(); err != nil {
		return err
	}
	_, err = f.Unseal(&key, io.Discard)
	return err
}

// resealed has the checksum that is right for what is before it.
func resealed(content []byte) []byte {
	content = slices.Clone(content[:len(content)-sha256.Size])
	sum := sha256.Sum256(content)
	return append(content, sum[:]...)
}

func TestADamagedBackupIsNoticed(t *testing.T) {
	private, public := keyPair(t)
	for name, to := range map[string][]PublicKey{"plain": nil, "encrypted": {public}} {
		good, _ := sample(t, 2*chunkBytes, to...)
		for cut := range 40 {
			if err := whole(put(t, good[:cut*len(good)/40]), private); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) {
				t.Errorf("%s, cut at %d of 40: %v", name, cut, err)
			}
		}
		for at := len(magic); at < len(good); at += len(good)/50 + 1 {
			bad := slices.Clone(good)
			bad[at] ^= 4
			if err := whole(put(t, bad), private); err == nil {
				t.Errorf("%s: byte %d differs, and nothing is noticed", name, at)
			}
		}
		if err := whole(put(t, append(slices.Clone(good), 0)), private); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s, longer: %v", name, err)
		}
	}
}

// Whoever has no key may still know how checksums are made.
func TestWhatIsEncryptedCannotBeChanged(t *testing.T) {
	private, public := keyPair(t)
	good, _ := sample(t, 3*chunkBytes, public)
	f, err := Open(put(t, good))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	start, sealed := len(f.header), chunkBytes+tagBytes
	swapped := slices.Clone(good)
	copy(swapped[start:], good[start+sealed:start+2*sealed])
	copy(swapped[start+sealed:], good[start:start+sealed])
	epoch := bytes.Replace(good, []byte(`"epoch":2`), []byte(`"epoch":3`), 1)
	short := f.Manifest
	short.Bytes -= chunkBytes
	header, err := short.header()
	if err != nil {
		t.Fatal(err)
	}
	fewer := slices.Concat(header, good[start:start+int(sealedBytes(short.Extra+short.Bytes))], make([]byte, sha256.Size))
	for name, bad := range map[string][]byte{"chunks change places": swapped, "the manifest says another epoch": epoch, "chunks are left out": fewer} {
		if err := whole(put(t, resealed(bad)), private); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABackupOfALaterVersionIsRefused(t *testing.T) {
	good, _ := sample(t, 10)
	later := bytes.Replace(good, []byte(`"format":1`), []byte(`"format":2`), 1)
	if _, err := Open(put(t, resealed(later))); !errors.Is(err, ErrNewer) {
		t.Error(err)
	}
	if _, err := Open(put(t, []byte("something else"))); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
	more := bytes.Replace(good, []byte(`"format":1`), []byte(`"news":7,"format":1`), 1)
	if f, err := Open(put(t, resealed(more))); err != nil {
		t.Errorf("a field that is not known: %v", err)
	} else {
		f.Close()
	}
}

func TestKeysAreReadAsTheyAreWrittenAndMistypedOnesRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	public, err := NewKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	private, err := LoadPrivate(path)
	if err != nil || private.Public().String() != public.String() {
		t.Errorf("%v, %v", private, err)
	}
	if text := fmt.Sprintf("%v %+v %#v", private, private, private); strings.Contains(text, privatePrefix) {
		t.Error("it shows itself")
	}
	if _, err := NewKeyFile(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("written over: %v", err)
	}
	if _, err := LoadPublic(path); err == nil || !strings.Contains(err.Error(), "private key") {
		t.Errorf("a private key as recipient: %v", err)
	}
	text := public.String()
	for i := len(publicPrefix); i < len(text); i++ {
		bad := []byte(text)
		bad[i] = 'A' + (bad[i]-'A'+1)%26
		if key, err := ParsePublic(string(bad)); err == nil && key.String() != text {
			t.Errorf("mistyped at %d, and read", i)
		}
	}
	for _, bad := range []string{"", publicPrefix, text[:len(text)-1], text + "A", privatePrefix + text[len(publicPrefix):]} {
		if _, err := ParsePublic(bad); err == nil {
			t.Errorf("read: %q", bad)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadPrivate(path); err == nil {
		t.Error("a key that others can read was taken")
	}
}

// Whenever making one fails or is killed, no file has the name of a backup, and the next try does not mind what is left.
func TestABackupHasItsNameWhenItIsWhole(t *testing.T) {
	dir := t.TempDir()
	good, _ := sample(t, 3000)
	if err := os.WriteFile(filepath.Join(dir, ".draft.part"), bytes.Repeat([]byte("left by a crash"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	for name, make := range map[string]func(io.Writer) error{
		"the disk is full": func(w io.Writer) error { _, _ = w.Write(good[:900]); return full },
		"it is cut short":  func(w io.Writer) error { _, err := w.Write(good[:len(good)-1]); return err },
		"it is damaged": func(w io.Writer) error {
			bad := slices.Clone(good)
			bad[len(bad)/2] ^= 1
			_, err := w.Write(bad)
			return err
		},
		"nothing is written": func(io.Writer) error { return nil },
	} {
		if _, err := Save(dir, ".draft.part", make); err == nil {
			t.Errorf("%s, and it is taken as made", name)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left are %v, %v", name, left, err)
		}
	}
	write := func(w io.Writer) error { _, err := w.Write(good); return err }
	f, err := Save(dir, ".draft.part", write)
	if err != nil || filepath.Base(f.Path) != "stead-c-1-20231114T221320Z-e2-r30.backup" {
		t.Fatalf("%+v, %v", f, err)
	}
	if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := Save(dir, ".draft.part", write); !errors.Is(err, os.ErrExist) {
		t.Errorf("it is replaced: %v", err)
	}
	if _, err := Save(f.Path, ".draft.part", write); !errors.Is(err, os.ErrExist) {
		t.Errorf("it is replaced by its name: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}
