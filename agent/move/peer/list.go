package peer

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/move/tree"
)

const (
	batchEntries = 256
	batchBytes   = 256 << 10 // of names, targets and attributes, about
	batchBlocks  = 16 << 10  // of the files in it
	// window is how many batches may be unanswered. Each keeps a directory open, and the digests of its files in memory.
	window = 16
)

// totals is a Visitor that counts bytes.
type totals struct{ bytes int64 }

func (t *totals) Enter(*os.File, int, string) error { return nil }
func (t *totals) Leave() error                      { return nil }
func (t *totals) Item(_ *os.File, e *tree.Item, _ *unix.Stat_t) error {
	t.bytes += e.Size
	return nil
}

// lister is a Visitor that sends a tree.
type lister struct {
	s     *server
	ctx   context.Context
	sent  chan open
	place chan struct{}

	dir           *os.File
	now           batch
	bytes, blocks int64
	size          int
}

func (l *lister) Enter(dir *os.File, depth int, name string) error {
	l.dir = dir
	return l.s.say(enterFrame, enter{depth, name})
}

func (l *lister) Item(_ *os.File, e *tree.Item, st *unix.Stat_t) error {
	if e.Type() == unix.S_IFREG {
		e.Sum = l.s.p.sums.Find(st)
	}
	l.now.Entries = append(l.now.Entries, *e)
	l.bytes += e.Size
	l.blocks += e.Size / tree.BlockBytes(e.Size)
	l.size += len(e.Name) + len(e.Target) + 64
	for _, x := range e.Xattrs {
		l.size += len(x.Name) + len(x.Value)
	}
	if len(l.now.Entries) >= batchEntries || l.size >= batchBytes || l.blocks >= batchBlocks {
		return l.flush()
	}
	return nil
}

func (l *lister) Leave() error {
	if err := l.flush(); err != nil {
		return err
	}
	return l.s.say(leaveFrame, total{})
}

// flush sends what was gathered, when there is a place for it.
func (l *lister) flush() error {
	if len(l.now.Entries) == 0 {
		return nil
	}
	select {
	case l.place <- struct{}{}:
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
	fd, err := unix.FcntlInt(l.dir.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	l.now.Number++
	l.sent <- open{batch: l.now, dir: os.NewFile(uintptr(fd), l.dir.Name())} // as many as there are places
	err = l.s.say(batchFrame, l.now)
	l.now.Entries, l.size, l.blocks = nil, 0, 0
	return err
}
