package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/deeptree"
)

// settle gives what has the name owner, mode, attributes and time. A change of owner clears setuid and capabilities, so it
// comes first; a change of mode changes an ACL, so that comes after.
func (m *Shaper) settle(dir *os.File, name string, e *Item) error {
	have, _, err := read(dir, name)
	if err != nil {
		return err
	}
	if have.Type() != e.Type() {
		return fmt.Errorf("%q has become something else", name)
	}
	given := have.UID == e.UID && have.GID == e.GID
	if !given {
		if err := unix.Fchownat(int(dir.Fd()), name, int(e.UID), int(e.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("change the owner of %q: %w", name, err)
		}
	}
	if e.Type() != unix.S_IFLNK && (!given || have.Mode != e.Mode) {
		if err := chmod(dir, name, e.Mode); err != nil {
			return fmt.Errorf("change the mode of %q: %w", name, err)
		}
	}
	for _, x := range have.Xattrs {
		if !slices.ContainsFunc(e.Xattrs, func(y Xattr) bool { return y.Name == x.Name }) {
			if err := unix.Lremovexattr(at(dir, name), x.Name); err != nil && !errors.Is(err, unix.ENODATA) {
				return fmt.Errorf("remove attribute %s of %q: %w", x.Name, name, err)
			}
		}
	}
	for _, x := range e.Xattrs {
		if !copied(x.Name) {
			return fmt.Errorf("invalid attribute %q", x.Name)
		}
		i := slices.IndexFunc(have.Xattrs, func(y Xattr) bool { return y.Name == x.Name })
		if i >= 0 && bytes.Equal(have.Xattrs[i].Value, x.Value) && x.Name != "security.capability" && have.Mode == e.Mode {
			continue
		}
		if err := unix.Lsetxattr(at(dir, name), x.Name, x.Value, 0); err != nil {
			return fmt.Errorf("set attribute %s of %q: %w", x.Name, name, err)
		}
	}
	return setTime(dir, name, e.Mtime)
}

// chmod changes the mode of what has the name; a link is not followed, and has none.
func chmod(dir *os.File, name string, mode uint32) error {
	fd, _, err := handle(dir, name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod(fdPath(fd), mode&^unix.S_IFMT)
}

func setTime(dir *os.File, name string, t Time) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: t.Sec, Nsec: t.Nsec}}
	if err := unix.UtimesNanoAt(int(dir.Fd()), name, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("set the time of %q: %w", name, err)
	}
	return nil
}

// remove deletes what has the name, with all below it.
func (m *Shaper) remove(name string) error {
	err := unix.Unlinkat(int(m.dir.Fd()), name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = m.removeTree(name)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("delete %q: %w", name, err)
	}
	return nil
}

func (m *Shaper) removeTree(name string) error {
	dir, err := deeptree.OpenDir(m.dir.File, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := deeptree.Clear(m.ctx, dir); err != nil {
		return err
	}
	return unix.Unlinkat(int(m.dir.Fd()), name, unix.AT_REMOVEDIR)
}

// Staged are the digests of the blocks of a file here that is to become another; nil: it is empty.
func (m *Shaper) Staged(dir *os.File, name string) (blocks []Digest, size int64, err error) {
	f, st, err := openFile(dir, name, unix.O_RDONLY)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	k, ok := m.sums.find(&st)
	switch {
	case ok && k.blocks != nil:
		return k.blocks, st.Size, nil
	case st.Size == 0:
		return nil, 0, nil
	}
	blocks, err = Blocks(f, st.Size, m.ctx.Err)
	return blocks, st.Size, err
}

// Writing is a file whose content is told: in order, each block that differs whole.
type Writing struct {
	m      *Shaper
	dir    *Dir
	f      *os.File
	block  int64
	size   int64
	blocks []Digest
	h      hash.Hash
	next   int64 // where what is told goes on within a block; -1: at any
	index  int64 // of the block that is being written; -1: none
}

// Write begins to write a file to become one of this size; had are the digests of what is there.
func (m *Shaper) Write(dir *Dir, name string, size int64, had []Digest) (*Writing, error) {
	f, st, err := openFile(dir.File, name, unix.O_RDWR)
	if err != nil {
		return nil, err
	}
	m.sums.Forget(&st)
	w := &Writing{m: m, dir: dir.Use(), f: f, size: size, block: BlockBytes(size), index: -1}
	if w.block == BlockBytes(st.Size) {
		w.blocks = slices.Clone(had)
	}
	return w, nil
}

// Put writes what is told at off; a hole has no content but a length.
func (w *Writing) Put(off int64, content []byte, hole int64) error {
	n := max(int64(len(content)), hole)
	if off < 0 || n <= 0 || off > w.size-n || off/w.block != (off+n-1)/w.block {
		return fmt.Errorf("invalid part of %q", w.f.Name())
	}
	if i := off / w.block; i != w.index {
		if off%w.block != 0 {
			return fmt.Errorf("a block of %q lacks its beginning", w.f.Name())
		}
		w.index, w.h, w.next = i, sha256.New(), off
	}
	if off != w.next {
		return fmt.Errorf("a block of %q lacks a part", w.f.Name())
	}
	w.next += n
	var err error
	if hole == 0 {
		w.h.Write(content)
		_, err = w.f.WriteAt(content, off)
	} else {
		if err = zeros(w.m.ctx, w.h, hole); err == nil {
			err = w.punch(off, hole)
		}
	}
	if w.next == min((w.index+1)*w.block, w.size) {
		for int64(len(w.blocks)) <= w.index {
			w.blocks = append(w.blocks, Digest{})
		}
		w.blocks[w.index] = Digest(w.h.Sum(nil))
	}
	return err
}

var zero [64 << 10]byte

func zeros(ctx context.Context, h hash.Hash, n int64) error {
	for n > 0 && ctx.Err() == nil {
		k := min(n, int64(len(zero)))
		h.Write(zero[:k])
		n -= k
	}
	return ctx.Err()
}

// punch makes a hole, or writes zeros where the file system knows no holes.
func (w *Writing) punch(off, n int64) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(w.f.Fd()), &st); err != nil || off >= st.Size {
		return err // the end is set last
	}
	err := unix.Fallocate(int(w.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
	for at := off; errors.Is(err, unix.EOPNOTSUPP) && at < off+n; at += int64(len(zero)) {
		if _, werr := w.f.WriteAt(zero[:min(int64(len(zero)), off+n-at)], at); werr != nil {
			return werr
		}
		if at+int64(len(zero)) >= off+n {
			return nil
		}
	}
	return err
}

// End sets the end of the file and all else of it. sum is that of the content which the source read; what does not agree is
// told again with the next round.
func (w *Writing) End(e *Item, sum []byte) error {
	defer w.Close()
	if err := e.valid(); err != nil {
		return err
	}
	if err := w.f.Truncate(w.size); err != nil {
		return err
	}
	if err := w.m.settle(w.dir.File, e.Name, e); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(w.f.Fd()), &st); err != nil {
		return err
	}
	w.blocks = w.blocks[:min(int64(len(w.blocks)), (w.size+w.block-1)/w.block)]
	if sum != nil && bytes.Equal(sum, SumOf(w.blocks)) {
		w.m.sums.Put(&st, w.blocks)
	}
	return nil
}

// Close ends it without an end; what was written stays.
func (w *Writing) Close() {
	if w.f != nil {
		w.f.Close()
		w.dir.Free()
		w.f = nil
	}
}
