package tree

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"os"

	"golang.org/x/sys/unix"
)

// summer is a Visitor that sums all that a tree is.
type summer struct {
	ctx   context.Context
	sums  *Sums
	fresh bool
	h     hash.Hash
	count int64
}

// Sum is the sum of a tree to which nobody writes: of paths, types, owners, modes, times of change, sizes, attributes, contents,
// targets of links, devices, and which names are one file; 64 hex digits. fresh: each file is read, also if it has not changed
// since it was.
func Sum(ctx context.Context, top string, sums *Sums, fresh bool) (string, error) {
	s := &summer{ctx: ctx, sums: sums, fresh: fresh, h: sha256.New()}
	if err := Walk(ctx, top, s); err != nil {
		return "", fmt.Errorf("sum %s: %w", top, err)
	}
	return hex.EncodeToString(s.h.Sum(nil)), nil
}

func (s *summer) put(values ...uint64) {
	for _, v := range values {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], v)
		s.h.Write(b[:])
	}
}

func (s *summer) text(t string) {
	s.put(uint64(len(t)))
	s.h.Write([]byte(t))
}

// Enter puts the way to a directory: how deep it is below those before it, and its name.
func (s *summer) Enter(_ *os.File, depth int, name string) error {
	s.put('>', uint64(depth))
	s.text(name)
	return nil
}

// Leave puts the end of a list.
func (s *summer) Leave() error { s.put('<'); return nil }

// Item puts all of an entry.
func (s *summer) Item(dir *os.File, e *Item, st *unix.Stat_t) error {
	s.count++
	group := e.Group
	if group == s.count { // whether it has other names in the tree these say
		group = 0
	}
	s.put('.')
	s.text(e.Name)
	s.put(uint64(e.Mode), uint64(e.UID), uint64(e.GID), uint64(e.Size), uint64(e.Mtime.Sec), uint64(e.Mtime.Nsec), e.Rdev, uint64(group), uint64(len(e.Xattrs)))
	s.text(e.Target)
	for _, x := range e.Xattrs {
		s.text(x.Name)
		s.text(string(x.Value))
	}
	if e.Type() != unix.S_IFREG {
		return nil
	}
	sum, err := s.content(dir, e.Name, st)
	s.h.Write(sum)
	return err
}

func (s *summer) content(dir *os.File, name string, st *unix.Stat_t) ([]byte, error) {
	if sum := s.sums.Find(st); sum != nil && !s.fresh {
		return sum, nil
	}
	f, err := s.sums.Read(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	blocks, err := Blocks(f, f.Stat.Size, s.ctx.Err)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", name, err)
	}
	if !f.End(blocks) {
		return nil, fmt.Errorf("%q is written to", name)
	}
	s.sums.Put(&f.Stat, blocks) // also of what has just changed: nobody writes to it
	return SumOf(blocks), nil
}
