package seal

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheClustersKeyIsGivenToOneReceiver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	key, err := Ensure(path)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := NewReceiver()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewReceiver()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := key.Give(mine.Public())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(sealed), string(secretsOf(*key.ring.Load()))) {
		t.Error("it travels in the open")
	}
	again, err := ParseReceiver(mine.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(t.TempDir(), "new", "secret.key")
	for range 2 { // a crash after the first
		if _, err := again.Take(sealed, there); err != nil {
			t.Fatal(err)
		}
	}
	taken, err := Load(there)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := taken.OpenAt("x", key.SealAt("x", []byte("secret"))); err != nil || string(plain) != "secret" {
		t.Errorf("what was taken opens %q, %v", plain, err)
	}
	if _, err := other.Take(sealed, filepath.Join(t.TempDir(), "k")); !errors.Is(err, ErrKey) {
		t.Errorf("another receiver: %v", err)
	}
	foreign := filepath.Join(t.TempDir(), "secret.key")
	if _, err := Ensure(foreign); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Take(sealed, foreign); !errors.Is(err, ErrKey) {
		t.Errorf("over the key of another cluster: %v", err)
	}
	if _, err := key.Give([]byte("short")); err == nil {
		t.Error("given to nobody")
	}
	if shown := fmt.Sprintf("%v %+v %#v", mine, mine, mine); strings.Contains(shown, fmt.Sprint(mine.Bytes()[:3])[1:6]) {
		t.Errorf("it shows %s", shown)
	}
}
