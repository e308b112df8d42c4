package peer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/move/treetest"
	"github.com/stead-project/stead/agent/runtime"
)

// Wherever the disk of a target is full, a round says so, and changes nothing at the source; with room it goes on.
func TestARoundGoesOnWhenTheDiskHasRoomAgain(t *testing.T) {
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		t.Skip("needs STEAD_ROOT_TESTS=1 and root: it mounts")
	}
	p := newPair(t)
	for i := range 6 {
		dir := p.at(fmt.Sprint("d", i))
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "f"), bytes.Repeat([]byte("x"), 9000), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	before := treetest.List(t, p.from[0].Path)
	failed := 0
	for free := 0; ; free += 2 {
		disk := t.TempDir()
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=128k"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(disk, 0); err != nil {
				t.Error(err)
			}
		})
		filler, top := filepath.Join(disk, "filler"), filepath.Join(disk, "tree")
		if err := errors.Join(os.Mkdir(top, 0o700), os.WriteFile(filler, make([]byte, (128>>2-free)<<12), 0o600)); err != nil {
			t.Fatal(err)
		}
		p.to = []runtime.MoveTree{{Claim: "data", Path: top}}
		_, err := p.round(false)
		if err == nil {
			break
		}
		failed++
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("with %d pages: %v", free, err)
		}
		if diff := treetest.Difference(before, treetest.List(t, p.from[0].Path)); diff != "" {
			t.Errorf("with %d pages the source was changed:\n%s", free, diff)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if _, err := p.round(false); err != nil {
			t.Fatalf("with room again: %v", err)
		}
		p.equal(fmt.Sprintf("after %d pages", free))
	}
	if failed < 5 {
		t.Errorf("it was full %d times", failed)
	}
}
