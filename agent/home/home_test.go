package home

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/ledger"
)

func TestOneAgentARoot(t *testing.T) {
	root := t.TempDir()
	h, err := Open(root, "n1")
	must(t, err)
	_, err = Open(root, "n1")
	if !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Fatalf("second agent: got %v", err)
	}
	copied := t.TempDir()
	must(t, os.CopyFS(copied, os.DirFS(root)))
	if _, err := Open(copied, "n1"); !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "a copy") {
		t.Fatalf("second agent on a copied root: got %v", err)
	}
	must(t, h.Close())
	if _, err := Open(root, "n2"); err == nil {
		t.Fatal("another name on the same root: want an error")
	}
	must(t, os.Remove(filepath.Join(root, "ledger")))
	if _, err := Open(root, "n1"); !errors.Is(err, ledger.ErrLost) {
		t.Fatalf("without its ledger: got %v, want ErrLost", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
