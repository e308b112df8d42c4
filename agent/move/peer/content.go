package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/move/tree"
)

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
		if o.Entries[f.Index].Type() != unix.S_IFREG {
			return fmt.Errorf("invalid need: entry %d must be a file", f.Index)
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
		var sum tree.Digest
		if f.Known != nil {
			sum = f.Known[len(blocks)]
		} else {
			sum, err = tree.BlockSum(f, off, to, *buf)
		}
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
