package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
)

func testKey(t *testing.T, fill byte) *Key {
	t.Helper()
	k, err := NewKey(bytes.Repeat([]byte{fill}, KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealedFilesOpenAgain(t *testing.T) {
	k := testKey(t, 1)
	files := map[string][]byte{"password": []byte("hunter2"), "empty": {}, "binary": {0, 255}}
	sealed, err := k.Seal("default", "db", files)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("hunter2")) || bytes.Contains(sealed, []byte("password")) {
		t.Fatal("the sealed bytes show the content")
	}
	got, err := k.Open(&records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "db"}, Sealed: sealed})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || string(got["password"]) != "hunter2" || !bytes.Equal(got["binary"], []byte{0, 255}) {
		t.Fatalf("got %q", got)
	}
}

func TestWhatWasNotSealedForThisIsRefused(t *testing.T) {
	k := testKey(t, 1)
	sealed, err := k.Seal("default", "db", map[string][]byte{"password": []byte("hunter2")})
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(sealed)
	damaged[len(damaged)-1] ^= 1
	for name, c := range map[string]struct {
		key    *Key
		record records.SecretRecord
	}{
		"another key":       {testKey(t, 2), records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "db"}, Sealed: sealed}},
		"another name":      {k, records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "db2"}, Sealed: sealed}},
		"another namespace": {k, records.SecretRecord{Meta: records.Meta{Namespace: "prod", Name: "db"}, Sealed: sealed}},
		"damaged":           {k, records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "db"}, Sealed: damaged}},
		"cut off":           {k, records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "db"}, Sealed: sealed[:5]}},
		"nothing":           {k, records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "db"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.key.Open(&c.record)
			if !errors.Is(err, ErrKey) || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("got %v, want ErrKey", err)
			}
		})
	}
}

func TestSealingTwiceDiffers(t *testing.T) {
	k := testKey(t, 1)
	a, _ := k.Seal("default", "db", map[string][]byte{"a": []byte("x")})
	b, _ := k.Seal("default", "db", map[string][]byte{"a": []byte("x")})
	if len(a) == 0 || bytes.Equal(a, b) {
		t.Fatal("the nonce was reused")
	}
}

func TestAKeyNeverShowsItself(t *testing.T) {
	k := testKey(t, 'K')
	for _, text := range []string{fmt.Sprint(k), fmt.Sprintf("%+v", k), fmt.Sprintf("%#v", k)} {
		if text != "[key]" {
			t.Fatalf("got %q", text)
		}
	}
}

func TestTheKeyFileIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server", "secret.key")
	first, err := Ensure(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != KeyBytes {
		t.Fatalf("file: %v %v", info, err)
	}
	sealed, _ := first.Seal("default", "db", map[string][]byte{"a": []byte("x")})
	again, err := Ensure(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Open(&records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "db"}, Sealed: sealed}); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".key-*")); len(left) > 0 {
		t.Fatalf("drafts left: %v", left)
	}
}

func TestABadKeyFileIsRefusedAndNotReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		content []byte
		mode    os.FileMode
		want    string
	}{
		"open to others": {bytes.Repeat([]byte{1}, KeyBytes), 0o644, "open to others"},
		"cut off":        {[]byte("short"), 0o600, "holds no key"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret.key")
			if err := os.WriteFile(path, c.content, c.mode); err != nil {
				t.Fatal(err)
			}
			if _, err := Ensure(path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if kept, _ := os.ReadFile(path); !bytes.Equal(kept, c.content) {
				t.Fatal("the file was replaced")
			}
		})
	}
}

// What is stored is a nonce of 96 bits and what AES-256-GCM makes with it, whoever made it.
func TestTheStoredFormStays(t *testing.T) {
	k := testKey(t, 7)
	block, err := aes.NewCipher(bytes.Repeat([]byte{7}, KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := []byte("twelve bytes")
	stored := plain.Seal(bytes.Clone(nonce), nonce, []byte("content"), []byte("ca"))
	if got, err := k.OpenAt("ca", stored); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	sealed := k.SealAt("ca", []byte("content"))
	if got, err := plain.Open(nil, sealed[:12], sealed[12:], []byte("ca")); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}
