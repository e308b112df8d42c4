package peer

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/stead-project/stead/agent/move/tree"
	agent "github.com/stead-project/stead/agent/runtime"
)

// joined are a source and a target on a pipe, without TLS.
type joined struct {
	s    *server
	p    *puller
	wait func()
}

func join(t *testing.T, from string, limits []*rate.Limiter, limit *rate.Limiter) *joined {
	t.Helper()
	a, b := net.Pipe()
	x := New(Config{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	s := &server{wire: newWire(a), c: x, p: &part{sums: tree.NewSums(time.Now)}, trees: []agent.MoveTree{{Claim: "data", Path: from}}, limits: limits}
	p := &puller{wire: newWire(b), ctx: t.Context(), p: &part{sums: tree.NewSums(time.Now)}, limit: limit}
	ended := make(chan error, 1)
	go func() { ended <- s.run(t.Context()) }()
	return &joined{s, p, func() { b.Close(); a.Close(); <-ended }}
}

// What is bounded by --move-rate, or by --rate of one move, takes the time that it says, within a tenth; whichever is least.
func TestTheRateIsKept(t *testing.T) {
	const size = 20 << 20
	from := t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "f"), bytes.Repeat([]byte("0123456789abcdef"), size/16), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ node, one, target int64 }{
		"of the source's node": {node: 1 << 20}, "of the move": {one: 2 << 20}, "of the target's node": {target: 1 << 20},
		"the least of all": {node: 4 << 20, one: 1 << 20, target: 3 << 20}, "a small one": {one: 100 << 10},
	} {
		to := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			j := join(t, from, []*rate.Limiter{limiter(c.node), limiter(c.one)}, limiter(c.target))
			defer j.wait()
			began := time.Now()
			if err := j.p.tree(agent.MoveTree{Claim: "data", Path: to}, false); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			least := int64(1 << 62)
			for _, r := range []int64{c.node, c.one, c.target} {
				if r > 0 {
					least = min(least, r)
				}
			}
			want := time.Duration(size) * time.Second / time.Duration(least)
			if took := time.Since(began); took < want*9/10 || took > want*11/10 || j.p.copied != size {
				t.Errorf("%s: %d bytes took %s, want %s", name, j.p.copied, took, want)
			}
		})
	}
}

// What is in memory of a move does not grow with the files: what is asked for and not sent yet is bounded, and so is what a message has.
func TestAMoveTakesLittleMemory(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for i := range 3000 {
		if i%500 == 0 {
			if err := os.Mkdir(filepath.Join(from, fmt.Sprint("d", i/500)), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(from, fmt.Sprint("d", i/500), fmt.Sprint("file", i)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(from, "large"))
	for i := range int64(64) {
		if err == nil {
			_, err = f.WriteAt(bytes.Repeat([]byte("y"), 1<<20), i<<20)
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most, files, open := live(), int64(0), 0, 0
	j := join(t, from, nil, nil)
	j.p.told = func(int64, int64) {
		open = max(open, len(j.p.batches))
		files++
		if files%1000 == 0 {
			most = max(most, live()-before)
		}
	}
	if err := j.p.tree(agent.MoveTree{Claim: "data", Path: to}, false); err != nil {
		t.Fatal(err)
	}
	j.wait()
	if most > 16<<20 || files < 3000 || open > window {
		t.Errorf("after %d files %d bytes are in memory at most, %d batches open", files, most, open)
	}
}
