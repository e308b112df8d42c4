package peer

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"github.com/stead-project/stead/agent/move"
	"github.com/stead-project/stead/agent/move/tree"
	"github.com/stead-project/stead/agent/runtime"
)

// Round implements move.Copier.
func (c *Exchange) Round(ctx context.Context, peer move.Other, trees []runtime.MoveTree, fresh bool, told func(done, total int64)) (int64, error) {
	c.mu.Lock()
	p, err := c.of(peer.Move)
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if fresh {
		p.sums.Clear()
	}
	conf := tlsOf(p, peer.Key)
	conf.ServerName = string(peer.Move)
	dial := tls.Dialer{NetDialer: &net.Dialer{Timeout: helloTime}, Config: conf}
	hello, cancel := context.WithTimeout(ctx, 2*helloTime)
	conn, err := dial.DialContext(hello, "tcp", peer.At.String())
	cancel()
	if err != nil {
		return 0, fmt.Errorf("reach the other node: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	t := &puller{wire: newWire(conn), ctx: ctx, p: p, limit: c.limit, told: told}
	for _, one := range trees {
		if err := t.tree(one, fresh); err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if errors.Is(err, unix.ENOSPC) && one.SizeBytes > 0 {
				err = fmt.Errorf("it does not fit into %d bytes, the size of the claim, which is enforced on this node (--sized-class); apply a larger size, or choose a node that does not enforce it: %w",
					one.SizeBytes, err)
			}
			return t.copied, fmt.Errorf("copy volume %s: %w", one.Claim, never(err))
		}
	}
	for _, one := range trees {
		if err := syncAll(one.Path); err != nil {
			return t.copied, err
		}
	}
	if told != nil {
		told(t.total, t.total)
	}
	return t.copied, nil
}

// syncAll returns when all of the file system of a directory is on disk.
func syncAll(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return fmt.Errorf("put %s on disk: %w", path, err)
	}
	return nil
}

// puller is a target's end of one connection.
type puller struct {
	*wire
	ctx   context.Context
	p     *part
	limit *rate.Limiter
	told  func(done, total int64)

	maker   *tree.Shaper
	top     *tree.Item
	batches map[int64]*asked
	file    *tree.Writing
	writes  file

	copied, done, total int64
}

// asked is a batch of entries whose contents the source has not sent yet.
type asked struct {
	dir   *tree.Dir
	files map[int]wanted
}

type wanted struct {
	name string
	size int64 // as it was shown
	had  []tree.Digest
}

// tree makes one tree what it is at the source.
func (t *puller) tree(one runtime.MoveTree, fresh bool) (err error) {
	t.maker, err = tree.NewShaper(t.ctx, one.Path, t.p.sums)
	if err != nil {
		return err
	}
	t.batches, t.top = map[int64]*asked{}, nil
	defer func() {
		t.maker.Close()
		if t.file != nil {
			t.file.Close()
			t.file = nil
		}
		for _, b := range t.batches {
			b.dir.Free()
		}
	}()
	if err := t.say(walkFrame, walk{one.Claim, fresh}); err != nil {
		return err
	}
	var buf []byte
	for {
		k, content, err := t.receive(buf, false)
		buf = content
		if err != nil {
			return err
		}
		if k == doneFrame {
			if t.top == nil || len(t.batches) > 0 {
				return errors.New("the source ended before it had sent the whole tree")
			}
			return t.maker.End(t.top)
		}
		if err := t.take(k, content); err != nil {
			return err
		}
	}
}

// take takes one frame.
func (t *puller) take(k kind, content []byte) error {
	switch k {
	case aliveFrame:
		return nil
	case totalFrame:
		n, err := decode[total](content)
		t.total = n.Bytes
		return err
	case enterFrame:
		e, err := decode[enter](content)
		if err != nil {
			return err
		}
		return t.maker.Enter(e.Depth, e.Name)
	case leaveFrame:
		return t.maker.Leave()
	case batchFrame:
		return t.batch(content)
	case fileFrame:
		return t.begin(content)
	case dataFrame:
		return t.data(content)
	case holeFrame:
		if len(content) != 16 || t.file == nil {
			return errors.New("a hole of no file")
		}
		return t.file.Put(int64(binary.BigEndian.Uint64(content)), nil, int64(binary.BigEndian.Uint64(content[8:])))
	case endFrame:
		return t.end(content)
	case errorFrame:
		f, err := decode[failure](content)
		switch {
		case err != nil:
			return err
		case f.Never:
			return fmt.Errorf("%w: the source says: %s", move.ErrNever, f.Text)
		}
		return fmt.Errorf("the source says: %s", f.Text)
	}
	return fmt.Errorf("unknown message %q", k)
}

// batch makes entries, and says which contents are needed.
func (t *puller) batch(content []byte) error {
	b, err := decode[batch](content)
	if err != nil {
		return err
	}
	a := &asked{files: map[int]wanted{}}
	answer := needs{Batch: b.Number}
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Name == "." && i == 0 && t.top == nil {
			t.top = e
			continue
		}
		needed, err := t.maker.Item(e)
		if err != nil {
			return err
		}
		if !needed {
			t.progress(e.Size)
			continue
		}
		blocks, size, err := t.maker.Staged(t.maker.Dir().File, e.Name)
		if err != nil {
			return err
		}
		a.files[i] = wanted{e.Name, e.Size, blocks}
		answer.Files = append(answer.Files, need{i, size, useful(blocks, size, e.Size)})
	}
	if len(t.batches) >= window {
		return errors.New("the source sends further files before it has sent those that it was asked for")
	}
	if len(a.files) > 0 {
		a.dir = t.maker.Dir().Use()
		t.batches[b.Number] = a
	}
	return t.say(needsFrame, answer)
}

// useful are the digests of what a file has here that can be those of the file to be sent: a message bounds them by that.
func useful(blocks []tree.Digest, size, shown int64) []tree.Digest {
	block := tree.BlockBytes(shown)
	if tree.BlockBytes(size) != block {
		return nil
	}
	return blocks[:min(int64(len(blocks)), (shown+block-1)/block)]
}

func (t *puller) progress(n int64) {
	t.done += n
	if t.told != nil {
		t.told(min(t.done, t.total), t.total)
	}
}

func (t *puller) begin(content []byte) (err error) {
	f, err := decode[file](content)
	if err != nil {
		return err
	}
	b := t.batches[f.Batch]
	if b == nil || t.file != nil || f.Size < 0 {
		return errors.New("a file is told that was not needed")
	}
	w, ok := b.files[f.Index]
	if !ok {
		return errors.New("a file is told that was not needed")
	}
	t.writes = f
	t.file, err = t.maker.Write(b.dir, w.name, f.Size, w.had)
	return err
}

func (t *puller) data(content []byte) error {
	if len(content) < 9 || t.file == nil {
		return errors.New("content of no file")
	}
	n := len(content) - 8
	if t.limit != nil {
		if err := t.limit.WaitN(t.ctx, min(n, dataBytes)); err != nil {
			return err
		}
	}
	t.copied += int64(n)
	return t.file.Put(int64(binary.BigEndian.Uint64(content)), content[8:], 0)
}

func (t *puller) end(content []byte) error {
	e, err := decode[end](content)
	if err != nil {
		return err
	}
	b := t.batches[e.Batch]
	if b == nil {
		return errors.New("the end of a file that was not needed")
	}
	w, ok := b.files[e.Index]
	if !ok || e.Item.Name != w.name || e.Item.Type() != unix.S_IFREG {
		return errors.New("the end of a file that was not needed")
	}
	delete(b.files, e.Index)
	if t.file != nil {
		if t.writes.Batch != e.Batch || t.writes.Index != e.Index {
			return errors.New("the end of another file")
		}
		sum := e.Sum
		if !e.OK {
			sum = nil
		}
		err = t.file.End(&e.Item, sum)
		t.file = nil
	}
	t.progress(w.size)
	if len(b.files) == 0 {
		b.dir.Free()
		delete(t.batches, e.Batch)
	}
	return err
}
