package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/move/treetest"
	"github.com/stead-project/stead/agent/runtime"
)

const id = "0000000000000000000000000000000a"

// pair is a source and a target, and a tree of each.
type pair struct {
	t        *testing.T
	src, dst *Exchange
	from, to []runtime.MoveTree
	peer     move.Other
}

func copier(t *testing.T) *Exchange {
	t.Helper()
	c := New(Config{Listen: "127.0.0.1:0", Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { c.Close() })
	return c
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, src: copier(t), dst: copier(t)}
	// The directories of a test are on tmpfs on some machines, which believes no times: all is right there, and slower.
	p.from = []runtime.MoveTree{{Claim: "data", Path: t.TempDir()}}
	p.to = []runtime.MoveTree{{Claim: "data", Path: t.TempDir()}}
	p.offer()
	return p
}

// offer tells each end the other's key, as the servers do.
func (p *pair) offer() {
	p.t.Helper()
	key, port, err := p.src.Key(id)
	if err != nil {
		p.t.Fatal(err)
	}
	mine, _, err := p.dst.Key(id)
	if err != nil {
		p.t.Fatal(err)
	}
	p.src.Offer(p.t.Context(), move.Other{Move: id, Key: mine}, p.from)
	p.peer = move.Other{Move: id, Key: key, At: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)}
}

func (p *pair) round(fresh bool) (int64, error) {
	return p.dst.Round(p.t.Context(), p.peer, p.to, fresh, func(_, _ int64) {})
}

func (p *pair) at(path string) string { return filepath.Join(p.from[0].Path, path) }

// equal fails unless both trees are one by their sums, and by a look that knows nothing of them.
func (p *pair) equal(what string) {
	p.t.Helper()
	a, err := p.src.Sums(p.t.Context(), id, p.from, false)
	b, err2 := p.dst.Sums(p.t.Context(), id, p.to, false)
	if err := errors.Join(err, err2); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
	if diff := treetest.Difference(treetest.List(p.t, p.from[0].Path), treetest.List(p.t, p.to[0].Path)); diff != "" {
		p.t.Fatalf("%s: first difference:\n%s", what, diff)
	}
	if !slices.Equal(a, b) {
		p.t.Errorf("%s: sums %v and %v", what, a, b)
	}
}

// Whatever a member does between rounds and meanwhile, a round after which nobody writes makes the trees equal.
func TestARoundAfterTheLastWriteMakesTheTreesEqual(t *testing.T) {
	for range 6 {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 1))
		p := newPair(t)
		for range 120 {
			_ = treetest.Mutate(r, p.from[0].Path) // many make no sense
		}
		for round := range 5 {
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for ctx.Err() == nil && round > 0 {
					_ = treetest.Mutate(r, p.from[0].Path)
				}
			}()
			_, err := p.round(false)
			stop()
			<-ended
			if err != nil {
				t.Errorf("seed %d: a round while it is written to: %v", seed, err)
			}
			for range 20 {
				_ = treetest.Mutate(r, p.from[0].Path)
			}
		}
		if _, err := p.round(false); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p.equal(fmt.Sprintf("seed %d", seed))
	}
}

// Of a large file only the blocks that changed are sent, also by and to an agent that has just started; of small ones that
// did not change nothing is.
func TestOnlyWhatChangedIsSent(t *testing.T) {
	p := newPair(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)
	if err := errors.Join(os.WriteFile(p.at("big"), content, 0o600), os.WriteFile(p.at("small"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if n, err := p.round(false); err != nil || n != 10<<20+1 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	for _, again := range []bool{false, true} {
		if again { // both processes are others
			p.src, p.dst = copier(t), copier(t)
			p.offer()
		}
		if n, err := p.round(false); err != nil || n != 0 {
			t.Errorf("started again %v: %d bytes of nothing new, %v", again, n, err)
		}
	}
	f, err := os.OpenFile(p.at("big"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("changed"), 5<<20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if n, err := p.round(false); err != nil || n != 1<<20 {
		t.Errorf("%d bytes of one block, %v", n, err)
	}
	p.equal("after a change")
}

// A file that changed without a new time is found by a round that believes nothing.
func TestAFreshRoundReadsEverything(t *testing.T) {
	p := newPair(t)
	if err := os.WriteFile(p.at("file"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.round(false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.to[0].Path, "file"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.round(true); err != nil {
		t.Fatal(err)
	}
	p.equal("after a fresh round")
}

// Whoever has not the key that the servers told gets nothing, in either direction.
func TestOnlyThePeerOfTheMoveIsSpokenWith(t *testing.T) {
	p := newPair(t)
	if err := os.WriteFile(p.at("secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		if _, err := p.round(false); err == nil {
			t.Errorf("%s: it was copied", what)
		}
		if left, err := os.ReadDir(p.to[0].Path); err != nil || len(left) > 0 {
			t.Errorf("%s: %v, %v", what, left, err)
		}
	}
	right := p.peer
	p.peer.Key = strings.Repeat("0", 64)
	refused("another source")
	p.peer = right
	p.dst.Withdraw(id) // its next key is another
	refused("another target")
	p.offer()
	p.src.Withdraw(id)
	refused("not offered any more")
	p.offer()
	if _, err := p.round(false); err != nil {
		t.Error(err)
	}
	p.equal("the right ones")
}

// A tree of any depth, and what blocks whoever opens it.
func TestDeepTreesAndPipes(t *testing.T) {
	p := newPair(t)
	dir, err := unix.Open(p.from[0].Path, unix.O_DIRECTORY, 0)
	for range 200 {
		if err == nil {
			err = unix.Mkdirat(dir, "a-directory-of-a-long-name", 0o755)
		}
		if err == nil {
			var next int
			next, err = unix.Openat(dir, "a-directory-of-a-long-name", unix.O_DIRECTORY, 0)
			unix.Close(dir)
			dir = next
		}
	}
	if err := errors.Join(err, unix.Mknodat(dir, "pipe", unix.S_IFIFO|0o600, 0), unix.Symlinkat("/etc/passwd", dir, "link")); err != nil {
		t.Fatal(err)
	}
	unix.Close(dir)
	for range 2 {
		if _, err := p.round(false); err != nil {
			t.Fatal(err)
		}
	}
	p.src.Withdraw(id)
	a, err := p.src.Sums(t.Context(), id, p.from, true)
	b, err2 := p.dst.Sums(t.Context(), id, p.to, true)
	if err != nil || err2 != nil || !slices.Equal(a, b) {
		t.Errorf("%v %v, %v %v", a, b, err, err2)
	}
	if err := os.RemoveAll(p.at("a-directory-of-a-long-name")); err != nil {
		t.Fatal(err)
	}
	p.offer()
	if _, err := p.round(false); err != nil {
		t.Fatal(err)
	}
	p.equal("deleted")
}
