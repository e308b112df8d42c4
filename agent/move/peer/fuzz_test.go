package peer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/move/tree"
)

// session is what an honest source says of a small tree.
func session(f *testing.F) []byte {
	f.Helper()
	_, top := beside(f)
	if err := errors.Join(os.MkdirAll(filepath.Join(top, "d/e"), 0o755), os.WriteFile(filepath.Join(top, "d/f"), []byte("content"), 0o600),
		os.Symlink("../secret", filepath.Join(top, "l")), os.Link(filepath.Join(top, "d/f"), filepath.Join(top, "d/e/g")),
		os.Truncate(filepath.Join(top, "d/f"), 1<<20+5)); err != nil {
		f.Fatal(err)
	}
	said, err := shows(f, top, walk{Claim: "data"}, []needs{{Batch: 1}, {Batch: 2, Files: []need{{Index: 1}}}, {Batch: 3}})
	if err != nil {
		f.Fatal(err)
	}
	return said
}

// FuzzASource: whatever a source says, a target changes nothing outside of its directory, does not panic, and takes little memory.
func FuzzASource(f *testing.F) {
	f.Add(session(f))
	f.Add(slices.Concat(framed(enterFrame, enter{Name: "."}), framed(batchFrame, batch{Number: 1, Entries: []tree.Item{
		{Name: "f", Mode: unix.S_IFREG | 0o600, Size: 1}, {Name: "f", Mode: unix.S_IFLNK | 0o777, Target: "../secret"},
	}}), framed(fileFrame, file{1, 0, 1}), framed(endFrame, end{Batch: 1, Item: tree.Item{Name: "f", Mode: unix.S_IFREG | 0o777}})))
	f.Fuzz(func(t *testing.T, said []byte) {
		dir, top := beside(t)
		before := allocated()
		_ = takes(t, top, said)
		if took := allocated() - before; took > 8<<20+uint64(len(said))*64 {
			t.Errorf("%d bytes took %d", len(said), took)
		}
		unharmed(t, dir)
	})
}

// FuzzATarget: whatever a target says, a source sends nothing from outside of its tree, and does not panic.
func FuzzATarget(f *testing.F) {
	f.Add(packed(walk{Claim: "data"}), packed(needs{Batch: 1, Files: []need{{Index: 1, Size: 3, Blocks: make([]tree.Digest, 2)}}}))
	f.Add(packed(walk{Claim: "data", Fresh: true}), packed(needs{Batch: 1, Files: []need{{Index: 2}, {Index: 3}}}))
	f.Fuzz(func(t *testing.T, ask, said []byte) {
		w, err := decode[walk](ask)
		n, err2 := decode[needs](said)
		if err != nil || err2 != nil {
			return
		}
		dir, top := beside(t)
		if err := errors.Join(os.WriteFile(filepath.Join(top, "f"), []byte("of the tree"), 0o600), os.Symlink(filepath.Join(dir, "secret"), filepath.Join(top, "l")),
			os.Symlink("..", filepath.Join(top, "m"))); err != nil {
			t.Fatal(err)
		}
		if sent, _ := shows(t, top, w, []needs{n}); bytes.Contains(sent, []byte(secret)) {
			t.Errorf("sent: %q", sent)
		}
		unharmed(t, dir)
	})
}

// FuzzMessages: what is understood is packed as it was, and nothing else than that.
func FuzzMessages(f *testing.F) {
	f.Add(packed(batch{Number: 1, Entries: []tree.Item{everything}}))
	f.Add(packed(needs{Batch: 1, Files: []need{{Index: 1, Blocks: make([]tree.Digest, 1)}}}))
	f.Add(packed(end{Item: everything}))
	f.Add(packed(failure{Text: "why"}))
	f.Fuzz(func(t *testing.T, content []byte) {
		again(t, content, batch.pack)
		again(t, content, needs.pack)
		again(t, content, end.pack)
		again(t, content, failure.pack)
		again(t, content, enter.pack)
		again(t, content, file.pack)
		again(t, content, total.pack)
		again(t, content, walk.pack)
	})
}

// again decodes a message, and what is made of it.
func again[T any, P unpackable[T]](t *testing.T, content []byte, pack func(T, *packer)) {
	t.Helper()
	before := allocated()
	doc, err := decode[T, P](content)
	if took := allocated() - before; took > 1<<20+uint64(len(content))*64 {
		t.Errorf("%d bytes took %d", len(content), took)
	}
	if err != nil {
		return
	}
	var first, second packer
	pack(doc, &first)
	doc, err = decode[T, P](first.b)
	pack(doc, &second)
	if err != nil || !bytes.Equal(first.b, second.b) {
		t.Errorf("%x becomes %x, %v", first.b, second.b, err)
	}
}
