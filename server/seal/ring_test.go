package seal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAFileHoldsSeveralKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	k, err := Ensure(path)
	if err != nil {
		t.Fatal(err)
	}
	old := k.Sealing()
	before := k.SealAt("x", []byte("secret"))
	next, err := k.Make()
	if err != nil || k.Sealing() != old || !k.Has(next) {
		t.Fatalf("%v; %s seals, of %v", err, k.Sealing(), k.IDs())
	}
	if err := k.Use("none"); !errors.Is(err, ErrKey) {
		t.Errorf("a key that is not there: %v", err)
	}
	if err := k.Use(next); err != nil {
		t.Fatal(err)
	}
	again, err := Load(path)
	if err != nil || again.Sealing() != next || !slices.Equal(again.IDs(), k.IDs()) {
		t.Fatalf("the file: %v, %v", again, err)
	}
	after := again.SealAt("x", []byte("secret"))
	for _, sealed := range [][]byte{before, after} {
		if plain, err := again.OpenAt("x", sealed); err != nil || string(plain) != "secret" {
			t.Errorf("%q, %v", plain, err)
		}
	}
	if again.Under("x", before) != old || again.Under("x", after) != next || again.Under("y", after) != "" {
		t.Error("under which key something is")
	}
	if err := again.Drop(next); err == nil {
		t.Error("the key that seals is dropped")
	}
	if err := again.Drop(old); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || len(b) != KeyBytes {
		t.Errorf("the file has %d bytes, %v", len(b), err)
	}
	if _, err := again.OpenAt("x", before); !errors.Is(err, ErrKey) {
		t.Errorf("a dropped key opens: %v", err)
	}
	if _, err := NewKey(bytes.Repeat([]byte{1}, KeyBytes+1)); err == nil {
		t.Error("a key and a byte")
	}
	if _, err := NewKey(make([]byte, (MaxKeys+1)*KeyBytes)); err == nil {
		t.Error("too many keys")
	}
}

// A person may have appended the file of another server while this one ran.
func TestWhatSomebodyPutIntoTheFileStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	k, err := Ensure(path)
	if err != nil {
		t.Fatal(err)
	}
	file, _ := os.ReadFile(path)
	theirs := testKey(t, 9)
	if err := os.WriteFile(path, append(file, bytes.Repeat([]byte{9}, KeyBytes)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Make(); err != nil {
		t.Fatal(err)
	}
	again, err := Load(path)
	if err != nil || len(again.IDs()) != 3 || !again.Has(theirs.Sealing()) {
		t.Errorf("got %v, %v", again.IDs(), err)
	}
}

func TestKeysOfABackupAreMerged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	a, b, c := bytes.Repeat([]byte{1}, KeyBytes), bytes.Repeat([]byte{2}, KeyBytes), bytes.Repeat([]byte{3}, KeyBytes)
	for _, tt := range []struct {
		secret []byte
		keys   int
		err    error
	}{
		{a, 1, nil},                   // none is there
		{a, 1, nil},                   // once more, after a crash
		{b, 1, ErrKey},                // of another cluster
		{slices.Concat(b, a), 2, nil}, // of after a rotation
		{a, 2, nil},                   // of before it
		{slices.Concat(c, b), 3, nil}, // of another one
	} {
		if _, err := Merge(path, tt.secret); !errors.Is(err, tt.err) {
			t.Fatal(err)
		}
		k, err := Load(path)
		if err != nil || len(k.IDs()) != tt.keys || k.Sealing() != testKey(t, 1).Sealing() {
			t.Errorf("%d keys, %s seals; %v", len(k.IDs()), k.Sealing(), err)
		}
	}
}
