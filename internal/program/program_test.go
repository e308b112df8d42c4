package program

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAProgramIsKnownByItsContent(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	changed := append([]byte(nil), content...)
	changed[len(changed)-1] ^= 1
	for path, want := range map[string]bool{
		own: true, at("a copy", content): true, at("of the same size", changed): false, at("of another size", content[1:]): false, "/nowhere": false,
	} {
		if got := Runs(os.Getpid(), path); got != want {
			t.Errorf("runs %s: %v, want %v", path, got, want)
		}
	}
	if Runs(1<<30, own) {
		t.Error("a process that is not there runs it")
	}
}
