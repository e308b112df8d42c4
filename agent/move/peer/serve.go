package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/move/tree"
	"github.com/stead-project/stead/agent/runtime"
)

const (
	batchEntries = 256
	batchBytes   = 256 << 10 // of names, targets and attributes, about
	batchBlocks  = 16 << 10  // of the files in it
	// window is how many batches may be unanswered. Each keeps a directory open.
	window = 64
)

// server is a source's end of one connection.
type server struct {
	*wire
	c      *Exchange
	p      *part
	trees  []runtime.MoveTree
	limits []*rate.Limiter

	asks    chan []byte // walks
	answers chan needs
}

// open is a batch that was sent and not answered.
type open struct {
	batch
	dir *os.File
}

// run serves until the target hangs up.
func (s *server) run(ctx context.Context) error {
	s.asks, s.answers = make(chan []byte, 1), make(chan needs, window)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		return s.conn.Close()
	})
	group.Go(func() error { return s.listen(ctx) })
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case content := <-s.asks:
				if err := s.show(ctx, content); err != nil {
					never := errors.Is(never(err), move.ErrNever)
					return errors.Join(err, s.say(errorFrame, failure{Text: err.Error(), Never: never}))
				}
			}
		}
	})
	return group.Wait()
}

// listen takes what the target says.
func (s *server) listen(ctx context.Context) error {
	for {
		k, content, err := s.receive(nil, true)
		if err != nil {
			return err
		}
		switch k {
		case walkFrame:
			select {
			case s.asks <- content:
			default:
				return errors.New("two trees are asked for at once")
			}
		case needsFrame:
			n, err := decode[needs](content)
			if err != nil {
				return err
			}
			select {
			case s.answers <- n:
			default:
				return errors.New("more is answered than was asked")
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// show shows one tree, and sends what the target needs of it.
func (s *server) show(ctx context.Context, content []byte) error {
	ask, err := decode[walk](content)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.trees, func(t runtime.MoveTree) bool { return t.Claim == ask.Claim })
	if i < 0 {
		return fmt.Errorf("volume %q is not offered", ask.Claim)
	}
	if ask.Fresh {
		s.p.sums.Clear()
	}
	if err := s.count(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	l := &lister{s: s, ctx: ctx, sent: make(chan open, window), place: make(chan struct{}, window)}
	group.Go(func() error {
		defer close(l.sent)
		return tree.Walk(ctx, s.trees[i].Path, l)
	})
	group.Go(func() error { return s.content(ctx, l) })
	err = group.Wait()
	for o := range l.sent { // of what was broken off
		o.dir.Close()
	}
	if err != nil {
		return err
	}
	return s.say(doneFrame, total{l.bytes})
}

// count says how much there is in all, as it was counted once.
func (s *server) count(ctx context.Context) error {
	s.c.mu.Lock()
	n := s.p.total
	s.c.mu.Unlock()
	if n == 0 {
		t := &totals{}
		for _, one := range s.trees {
			if err := tree.Walk(ctx, one.Path, t); err != nil {
				return err
			}
		}
		n = max(t.bytes, 1)
		s.c.mu.Lock()
		s.p.total = n
		s.c.mu.Unlock()
	}
	return s.say(totalFrame, total{n})
}

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

// content sends what is needed of each batch, in order.
func (s *server) content(ctx context.Context, l *lister) error {
	for o := range l.sent {
		err := s.answer(ctx, o)
		o.dir.Close()
		if err != nil {
			return err
		}
		<-l.place
	}
	return nil
}

func (s *server) answer(ctx context.Context, o open) error {
	var n needs
	select {
	case n = <-s.answers:
	case <-ctx.Done():
		return ctx.Err()
	}
	if n.Batch != o.Number {
		return errors.New("another batch is answered")
	}
	for _, f := range n.Files {
		if f.Index < 0 || f.Index >= len(o.Entries) {
			return errors.New("a file is needed that was not shown")
		}
		e := end{Batch: n.Batch, Index: f.Index, Item: o.Entries[f.Index]}
		if err := s.file(ctx, o.dir, f, &e); err != nil {
			return err
		}
		if err := s.say(endFrame, e); err != nil {
			return err
		}
	}
	return nil
}

var buffers = sync.Pool{New: func() any { b := make([]byte, dataBytes); return &b }}

// file sends the blocks of a file that the target does not have. A file that changes or is deleted meanwhile is not an error.
func (s *server) file(ctx context.Context, dir *os.File, n need, e *end) error {
	f, err := s.p.sums.Read(dir, e.Item.Name)
	if tree.Gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size := f.Stat.Size
	if err := s.say(fileFrame, file{e.Batch, e.Index, size}); err != nil {
		return err
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	had := n.Blocks
	if tree.BlockBytes(n.Size) != tree.BlockBytes(size) {
		had = nil
	}
	said, short := time.Now(), false
	blocks := make([]tree.Digest, 0, size/tree.BlockBytes(size)+1)
	for off := int64(0); off < size && !short; off += tree.BlockBytes(size) {
		to := min(off+tree.BlockBytes(size), size)
		sum, err := tree.BlockSum(f, off, to, *buf)
		if i := len(blocks); err == nil && (i >= len(had) || had[i] != sum) {
			err = s.block(ctx, f.File, off, to, *buf)
			said = time.Now()
		}
		short = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !short {
			return fmt.Errorf("send %q: %w", e.Item.Name, err)
		}
		blocks = append(blocks, sum)
		if time.Since(said) >= aliveEvery {
			said = time.Now()
			if err := s.send(aliveFrame, true); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	now, err := tree.EntryOf(dir, e.Item.Name)
	if err != nil && !tree.Gone(err) {
		return err
	}
	if err == nil && now.Type() == unix.S_IFREG {
		now.Group, e.Item = e.Item.Group, now
		e.OK = f.End(blocks) && !short
		e.Sum = tree.SumOf(blocks)
	}
	return nil
}

// block sends one block, its holes as such.
func (s *server) block(ctx context.Context, f *os.File, off, end int64, buf []byte) error {
	return tree.Extents(f, off, end, func(from, to int64, hole bool) error {
		head := binary.BigEndian.AppendUint64(nil, uint64(from))
		if hole {
			return s.send(holeFrame, false, head, binary.BigEndian.AppendUint64(nil, uint64(to-from)))
		}
		for from < to {
			n := min(to-from, int64(len(buf)))
			if _, err := f.ReadAt(buf[:n], from); err != nil {
				return err
			}
			for _, l := range s.limits {
				if l == nil {
					continue
				}
				if err := l.WaitN(ctx, int(n)); err != nil {
					return err
				}
			}
			if err := s.send(dataFrame, false, binary.BigEndian.AppendUint64(nil, uint64(from)), buf[:n]); err != nil {
				return err
			}
			from += n
		}
		return nil
	})
}
