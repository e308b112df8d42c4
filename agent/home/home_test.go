package home

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/spec"
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

// What is written over what was there is read as if it were made anew, also by an agent of before.
func TestTheNewestSequenceIsReadAsItWasKeptLast(t *testing.T) {
	root := t.TempDir()
	for _, want := range []spec.Sequence{{Epoch: 1, Rev: 9}, {Epoch: math.MaxInt64, Rev: math.MaxInt64}, {Epoch: 2, Rev: 1}} {
		h, err := Open(root, "n1")
		must(t, err)
		must(t, h.KeepNewest(spec.Sequence{Epoch: 1, Rev: 1 << 40}))
		must(t, h.KeepNewest(want))
		got := h.Newest()
		must(t, h.Close())
		h, err = Open(root, "n1")
		must(t, err)
		if again := h.Newest(); got != want || again != want {
			t.Errorf("got %v, then %v, want %v", got, again, want)
		}
		must(t, h.Close())
	}
}
