package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

func TestAFileIsReplacedWholeAlsoWhenItIsNotSynced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "doc")
	if err := os.WriteFile(filepath.Join(dir, ".doc.new"), []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"old", "new"} {
		if err := durable.PutUnsynced(path, []byte(content), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "new" {
		t.Errorf("got %q, %v", got, err)
	}
	if at, err := os.Stat(path); err != nil || at.Mode().Perm() != 0o444 {
		t.Errorf("got %v, %v", at, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := durable.PutUnsynced(filepath.Join(dir, "absent", "doc"), nil, 0o444); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that the directory is not there", err)
	}
}

func TestWhatIsWrittenIsSyncedInOrder(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var synced []string
	broken := errors.New("the disk is gone")
	var fails error
	w := durable.Writer{Sync: func(f *os.File) error {
		name, err := filepath.Rel(root.Name(), f.Name())
		synced = append(synced, name)
		return errors.Join(err, fails)
	}}
	if err := errors.Join(w.MakeDirs(root, "a/b"), w.Put(root, "a/b/doc", []byte("old"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if want := []string{".", "a", "a/b/doc.new", "a/b"}; !slices.Equal(synced, want) {
		t.Errorf("synced %q, want %q", synced, want)
	}
	fails = broken
	if err := w.Put(root, "a/b/doc", []byte("new"), 0o600); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got, err := root.ReadFile("a/b/doc"); err != nil || string(got) != "old" {
		t.Errorf("what could not be synced is read as %q, %v", got, err)
	}
	if err := w.Create(root, "a/b/doc", nil, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there is created: %v", err)
	}
}
