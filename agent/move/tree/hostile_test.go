package tree

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shaping is a tree that is made by hand, beside a file that must stay as it is.
type shaping struct {
	t      *testing.T
	s      *Shaper
	top    string
	victim string
}

func newShaping(ctx context.Context, t *testing.T) *shaping {
	t.Helper()
	dir := t.TempDir()
	h := &shaping{t: t, top: filepath.Join(dir, "tree"), victim: filepath.Join(dir, "victim")}
	must(t, os.Mkdir(h.top, 0o700), os.WriteFile(h.victim, []byte("precious"), 0o600))
	s, err := NewShaper(ctx, h.top, NewSums(later))
	must(t, err)
	h.s = s
	t.Cleanup(s.Close)
	must(t, s.Enter(0, "."))
	return h
}

// untouched fails if what is outside was changed.
func (h *shaping) untouched(what string) {
	h.t.Helper()
	var st unix.Stat_t
	must(h.t, unix.Lstat(h.victim, &st))
	content, err := os.ReadFile(h.victim)
	if err != nil || string(content) != "precious" || st.Mode != unix.S_IFREG|0o600 || st.Nlink != 1 || int(st.Uid) != os.Geteuid() {
		h.t.Errorf("%s: what is outside of the tree was changed: %q, mode %o, %v", what, content, st.Mode, err)
	}
}

func regular(name string, size int64) *Item {
	return &Item{Name: name, Mode: unix.S_IFREG | 0o777, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Size: size}
}

func (h *shaping) link(name string) *Item {
	e := regular(name, 0)
	e.Mode, e.Target = unix.S_IFLNK|0o777, h.victim
	return e
}

// A source that shows a link where it showed a file before reaches nothing through it.
func TestASourceReachesNothingThroughALink(t *testing.T) {
	h := newShaping(t.Context(), t)
	needs, err := h.s.Item(regular("f", 1))
	if err != nil || !needs {
		t.Fatal(needs, err)
	}
	early, err := h.s.Write(h.s.Dir(), "f", 1, nil)
	must(t, err)
	_, err = h.s.Item(h.link("f"))
	must(t, err)
	must(t, early.Put(0, []byte("x"), 0))
	if err := early.End(regular("f", 1), nil); err == nil {
		t.Error("what is a link now got the end of a file")
	}
	h.untouched("the end of a file")
	if _, err := h.s.Write(h.s.Dir(), "f", 1, nil); err == nil {
		t.Error("it is written through a link")
	}
	if _, _, err := h.s.Staged(h.s.Dir().File, "f"); err == nil {
		t.Error("it is read through a link")
	}
	if err := h.s.settle(h.s.Dir().File, "f", regular("f", 1)); err == nil {
		t.Error("it is settled through a link")
	}
	if err := chmod(h.s.Dir().File, "f", unix.S_IFREG|0o777); err == nil {
		t.Error("its mode is changed through a link")
	}
	h.untouched("all of it")
	d := regular("f", 0)
	d.Mode = unix.S_IFDIR | 0o700
	_, err = h.s.Item(d)
	must(t, err)
	if err := h.s.settle(h.s.Dir().File, "f", regular("f", 1)); err == nil {
		t.Error("a directory is settled as a file")
	}
}

// A source cannot name what is not in the directory that it is in, nor enter what it has not shown as a directory.
func TestASourceStaysInTheTree(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../victim", "a/b", "/etc", "a\x00", strings.Repeat("x", unix.NAME_MAX+1)} {
		h := newShaping(t.Context(), t)
		if _, err := h.s.Item(regular(name, 0)); err == nil {
			t.Errorf("an entry is named %q", name)
		}
		if err := h.s.Enter(1, name); err == nil {
			t.Errorf("a directory %q is entered", name)
		}
		h.untouched(name)
	}
	for name, try := range map[string]func(h *shaping) error{
		"a directory that was not shown": func(h *shaping) error {
			must(t, os.Mkdir(filepath.Join(h.top, "d"), 0o700))
			return h.s.Enter(1, "d")
		},
		"a directory twice": func(h *shaping) error {
			d := regular("d", 0)
			d.Mode = unix.S_IFDIR | 0o700
			_, err := h.s.Item(d)
			must(t, err, h.s.Enter(1, "d"))
			return h.s.Enter(1, "d")
		},
		"a directory that became a link": func(h *shaping) error {
			d, l := regular("d", 0), h.link("d")
			d.Mode, l.Target = unix.S_IFDIR|0o700, filepath.Dir(h.victim)
			_, err := h.s.Item(d)
			_, err2 := h.s.Item(l)
			must(t, err, err2)
			return h.s.Enter(1, "d")
		},
		"too deep":         func(h *shaping) error { return h.s.Enter(7, "d") },
		"an unknown type":  func(h *shaping) error { _, err := h.s.Item(&Item{Name: "x", Mode: 0o17 << 12}); return err },
		"a link to nobody": func(h *shaping) error { _, err := h.s.Item(&Item{Name: "x", Mode: unix.S_IFLNK}); return err },
		"an attribute of the host": func(h *shaping) error {
			e := regular("p", 0)
			e.Mode, e.Xattrs = unix.S_IFIFO|0o600, []Xattr{{"security.selinux", []byte("x")}}
			_, err := h.s.Item(e)
			return err
		},
		"a top that is no directory": func(h *shaping) error { return h.s.End(regular(".", 0)) },
	} {
		h := newShaping(t.Context(), t)
		if err := try(h); err == nil {
			t.Errorf("%s: taken", name)
		}
		h.untouched(name)
	}
}

// Parts of a file that are not where they should be are refused, and written nowhere.
func TestPartsOfAFileAreWhereTheyShouldBe(t *testing.T) {
	const size = 3<<20 - 5
	type part struct {
		off, hole int64
		content   string
	}
	for name, parts := range map[string][]part{
		"before its beginning":       {{off: -1, content: "x"}},
		"beyond its end":             {{off: 2 << 20, hole: 1<<20 - 6}, {off: size - 1, content: "xx"}},
		"far beyond":                 {{off: math.MaxInt64, content: "x"}},
		"a hole beyond":              {{off: 0, hole: math.MaxInt64}},
		"a negative hole":            {{off: 0, hole: -5}},
		"nothing":                    {{off: 0}},
		"over the end of a block":    {{off: 0, hole: 1<<20 - 1}, {off: 1<<20 - 1, content: "xx"}},
		"without a beginning":        {{off: 5, content: "x"}},
		"with a part missing":        {{off: 0, content: "x"}, {off: 2, content: "x"}},
		"twice":                      {{off: 0, content: "x"}, {off: 0, content: "x"}},
		"back, in the middle of one": {{off: 1 << 20, content: "x"}, {off: 5, content: "x"}},
	} {
		h := newShaping(t.Context(), t)
		_, err := h.s.Item(regular("f", size))
		must(t, err)
		w, err := h.s.Write(h.s.Dir(), "f", size, nil)
		must(t, err)
		err = nil
		for i, p := range parts {
			err = w.Put(p.off, []byte(p.content), p.hole)
			if err != nil && i < len(parts)-1 {
				t.Fatalf("%s: part %d: %v", name, i, err)
			}
		}
		if err == nil {
			t.Errorf("%s: taken", name)
		}
		w.Close()
		if st, err := os.Stat(filepath.Join(h.top, "f")); err != nil || st.Size() > size {
			t.Errorf("%s: %d bytes, %v", name, st.Size(), err)
		}
	}
}

// A source that announces a hole of years ends with the move.
func TestAHoleOfAnySizeEndsWithTheMove(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	h := newShaping(ctx, t)
	_, err := h.s.Item(regular("f", math.MaxInt64))
	must(t, err)
	w, err := h.s.Write(h.s.Dir(), "f", math.MaxInt64, nil)
	must(t, err)
	defer w.Close()
	if err := w.Put(0, nil, BlockBytes(math.MaxInt64)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// Nothing but regular files is opened to be read: a device in the place of one may do something when it is.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Symlink("/etc/passwd", filepath.Join(dir, "link")), os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	at, err := os.Open(dir)
	must(t, err)
	defer at.Close()
	for _, name := range []string{"pipe", "link", "dir", ".", "none"} {
		if f, err := NewSums(later).Read(at, name); err == nil || !Gone(err) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}
