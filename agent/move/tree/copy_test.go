package tree

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/move/treetest"
)

// copying is a Visitor that makes one tree another, as agent/move/peer does over a connection.
type copying struct {
	s        *Shaper
	src      *Sums
	top      *Item
	needed   int // files whose content was read
	onItem   func(dir *os.File, e *Item)
	onLeave  func(depth int)
	depth    int
	onOpened func(name string)
}

func (c *copying) Enter(_ *os.File, depth int, name string) error {
	c.depth = depth
	return c.s.Enter(depth, name)
}

func (c *copying) Leave() error {
	if c.onLeave != nil {
		c.onLeave(c.depth)
	}
	return c.s.Leave()
}

func (c *copying) Item(dir *os.File, e *Item, st *unix.Stat_t) error {
	if c.onItem != nil {
		c.onItem(dir, e)
	}
	if e.Name == "." {
		c.top = e
		return nil
	}
	if e.Type() == unix.S_IFREG {
		e.Sum = c.src.Find(st)
	}
	needs, err := c.s.Item(e)
	if err != nil || !needs {
		return err
	}
	c.needed++
	return c.content(dir, e)
}

func (c *copying) content(dir *os.File, e *Item) error {
	_, _, err := c.s.Staged(c.s.Dir().File, e.Name)
	if err != nil {
		return err
	}
	f, err := c.src.Read(dir, e.Name)
	if Gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if c.onOpened != nil {
		c.onOpened(e.Name)
	}
	size := f.Stat.Size
	w, err := c.s.Write(c.s.Dir(), e.Name, size, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	for off, block := int64(0), BlockBytes(size); off < size; off += block {
		err := Extents(f.File, off, min(off+block, size), func(from, to int64, hole bool) error {
			if hole {
				return w.Put(from, nil, to-from)
			}
			buf := make([]byte, to-from)
			if _, err := f.ReadAt(buf, from); err != nil {
				return err
			}
			return w.Put(from, buf, 0)
		})
		if err != nil {
			return nil // it became shorter: what was told counts
		}
	}
	blocks, err := Blocks(f, size, func() error { return nil })
	if err != nil {
		return nil
	}
	now, err := EntryOf(dir, e.Name)
	if err != nil || now.Type() != unix.S_IFREG {
		return nil
	}
	sum := SumOf(blocks)
	if !f.End(blocks) {
		sum = nil
	}
	return w.End(&now, sum)
}

// pair is two trees, and what is known of them.
type pair struct {
	t        *testing.T
	from, to string
	src, dst *Sums
}

// later is a clock by which nothing has changed just now.
func later() time.Time { return time.Now().Add(time.Hour) }

func newPair(t *testing.T) *pair {
	return &pair{t: t, from: t.TempDir(), to: t.TempDir(), src: NewSums(later), dst: NewSums(later)}
}

func (p *pair) at(name string) string { return filepath.Join(p.from, name) }

// copy makes one round; set changes how.
func (p *pair) copy(set func(*copying)) (*copying, error) {
	s, err := NewShaper(p.t.Context(), p.to, p.dst)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	c := &copying{s: s, src: p.src}
	if set != nil {
		set(c)
	}
	if err := Walk(p.t.Context(), p.from, c); err != nil {
		return c, err
	}
	return c, s.End(c.top)
}

func (p *pair) round() *copying {
	p.t.Helper()
	c, err := p.copy(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *pair) sum(top string, sums *Sums, fresh bool) string {
	p.t.Helper()
	sum, err := Sum(p.t.Context(), top, sums, fresh)
	if err != nil {
		p.t.Fatal(err)
	}
	return sum
}

// equal fails unless both trees are one, by a look that knows nothing of this package and by their sums, believed or not.
func (p *pair) equal(what string) {
	p.t.Helper()
	if diff := treetest.Difference(treetest.List(p.t, p.from), treetest.List(p.t, p.to)); diff != "" {
		p.t.Fatalf("%s: first difference:\n%s", what, diff)
	}
	p.equalSums(what)
}

func (p *pair) equalSums(what string) {
	p.t.Helper()
	want := p.sum(p.from, p.src, true)
	for _, got := range []string{p.sum(p.to, p.dst, false), p.sum(p.to, p.dst, true), p.sum(p.from, p.src, false)} {
		if got != want {
			p.t.Errorf("%s: sums %s and %s", what, got, want)
		}
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Whatever a tree was, and whatever is done to it, a round while nobody writes makes the other one equal, with all that goes
// with a file; and the next one reads nothing that did not change.
func TestARandomTreeIsCopiedWithAllThatGoesWithAFile(t *testing.T) {
	for range 4 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		p := newPair(t)
		for _, top := range []string{p.from, p.to} { // the other one holds what is not to stay
			for range 150 {
				_ = treetest.Mutate(r, top)
			}
		}
		for round := range 5 {
			p.round()
			p.equal(fmt.Sprintf("seed %d, round %d", seed, round))
			p.round() // it remembers what it read
			if c := p.round(); c.needed > 0 && believes(t, p.from) {
				t.Errorf("seed %d, round %d: %d files are read again that did not change", seed, round, c.needed)
			}
			for range 40 {
				_ = treetest.Mutate(r, p.from)
			}
		}
	}
}

// believes reports whether sums of a tree there are believed.
func believes(t *testing.T, top string) bool {
	t.Helper()
	f, err := os.CreateTemp(top, "probe")
	must(t, err)
	defer os.Remove(f.Name())
	defer f.Close()
	return steady(f)
}

// What a member does to a tree while a round is in it makes no round fail, and the next one is right.
func TestATreeThatChangesWhileItIsCopied(t *testing.T) {
	full := func(n byte) []byte { return slices.Repeat([]byte{n}, 3<<20) }
	for name, change := range map[string]func(p *pair, path string) error{
		"grows":   func(_ *pair, path string) error { return os.Truncate(path, 5<<20) },
		"shrinks": func(_ *pair, path string) error { return os.Truncate(path, 10) },
		"empty":   func(_ *pair, path string) error { return os.Truncate(path, 0) },
		"written": func(_ *pair, path string) error { return os.WriteFile(path, full(2), 0o640) },
		"gone":    func(_ *pair, path string) error { return os.Remove(path) },
		"renamed": func(_ *pair, path string) error { return os.Rename(path, path+"-new") },
		"a pipe":  func(_ *pair, path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
		"a link":  func(_ *pair, path string) error { return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)) },
		"a directory": func(_ *pair, path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700), os.WriteFile(path+"/in", full(3), 0o600))
		},
		"another file": func(p *pair, path string) error {
			return errors.Join(os.WriteFile(p.at("new"), full(4), 0o600), os.Rename(p.at("new"), path))
		},
	} {
		for _, when := range []string{"listed", "opened"} {
			t.Run(name+" when it is "+when, func(t *testing.T) {
				p := newPair(t)
				must(t, os.WriteFile(p.at("file"), full(1), 0o600), os.WriteFile(p.at("other"), []byte("x"), 0o600))
				p.round()
				must(t, os.WriteFile(p.at("file"), full(9), 0o600))
				done := false
				once := func(name string) {
					if name == "file" && !done {
						done = true
						must(t, change(p, p.at("file")))
					}
				}
				_, err := p.copy(func(c *copying) {
					if when == "opened" {
						c.onOpened = once
					} else {
						c.onItem = func(_ *os.File, e *Item) { once(e.Name) }
					}
				})
				if err != nil || !done {
					t.Errorf("done %v, the round: %v", done, err)
				}
				p.round()
				p.equal("afterwards")
			})
		}
	}
}

// A directory that becomes something else between its listing and the way into it leads nowhere else.
func TestADirectoryThatIsSwappedLeadsNowhere(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600))
	for name, swap := range map[string]func(path string) error{
		"a link": func(path string) error { return os.Symlink(outside, path) },
		"a pipe": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"gone":   func(string) error { return nil },
		"a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		p := newPair(t)
		must(t, os.MkdirAll(p.at("a/b"), 0o700), os.WriteFile(p.at("a/b/in"), []byte("y"), 0o600), os.Mkdir(p.at("c"), 0o700))
		_, err := p.copy(func(c *copying) {
			c.onLeave = func(depth int) {
				if depth == 0 {
					must(t, os.RemoveAll(p.at("a")), swap(p.at("a")))
				}
			}
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(filepath.Join(p.to, "a/secret")); err == nil {
			t.Errorf("%s: what is outside of the tree was read", name)
		}
		p.round()
		p.equal(name)
	}
}

// A walk ends when it is told to.
func TestAWalkEndsWithItsContext(t *testing.T) {
	p := newPair(t)
	must(t, os.MkdirAll(p.at("a/b/c"), 0o700))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Sum(ctx, p.from, p.src, false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
