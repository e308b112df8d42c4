package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stead-project/stead/internal/durable"
)

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.json")
	var got map[string]int
	if err := durable.GetJSON(path, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want that there is none", err)
	}
	// A crash of before has left half a file beside it.
	if err := os.WriteFile(path+".new", []byte(`{"a":1,"b":22222`), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := durable.PutJSON(path, map[string]int{"a": i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := durable.GetJSON(path, &got); err != nil || got["a"] != 2 || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if at, err := os.Stat(path); err != nil || at.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", at, err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.GetJSON(path, &got); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("damage is read as %v", err)
	}
}
