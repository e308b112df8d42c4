package tree

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// onXFS is a directory on an XFS of its own, which keeps any number of attributes.
func onXFS(t *testing.T) string {
	t.Helper()
	if os.Getenv("STEAD_ROOT_TESTS") != "1" {
		t.Skip("needs STEAD_ROOT_TESTS=1 and root: it mounts")
	}
	dir := t.TempDir()
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "at")
	must(t, os.WriteFile(image, nil, 0o600), os.Truncate(image, 300<<20), os.Mkdir(at, 0o700))
	for _, c := range [][]string{{"mkfs.xfs", "-q", image}, {"mount", "-o", "loop", image, at}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", c, err, out)
		}
	}
	t.Cleanup(func() { must(t, unix.Unmount(at, 0)) })
	return at
}

// As many attributes as a message has room for are copied, and a file with more is named; what is mounted in a tree is as well.
func TestAttributesOfAFileAreBounded(t *testing.T) {
	top := onXFS(t)
	p := &pair{t: t, from: filepath.Join(top, "from"), to: filepath.Join(top, "to"), src: NewSums(later), dst: NewSums(later)}
	must(t, os.Mkdir(p.from, 0o700), os.Mkdir(p.to, 0o700), os.WriteFile(p.at("f"), []byte("x"), 0o600))
	n := 0
	for ; n < 60; n++ {
		must(t, unix.Setxattr(p.at("f"), "user."+strconv.Itoa(n), bytes.Repeat([]byte{1}, 64<<10), 0))
	}
	p.round()
	p.equal("with many attributes")
	for ; n < 70; n++ {
		must(t, unix.Setxattr(p.at("f"), "user."+strconv.Itoa(n), bytes.Repeat([]byte{1}, 64<<10), 0))
	}
	if _, err := p.copy(nil); !errors.Is(err, ErrAttributes) {
		t.Errorf("got %v", err)
	}
	must(t, os.Remove(p.at("f")), os.Mkdir(p.at("m"), 0o700), unix.Mount("tmpfs", p.at("m"), "tmpfs", 0, ""))
	if _, err := p.copy(nil); !errors.Is(err, ErrMounted) {
		t.Errorf("got %v", err)
	}
	must(t, unix.Unmount(p.at("m"), 0))
}
