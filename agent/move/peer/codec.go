package peer

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/move/tree"
	"github.com/stead-project/stead/spec"
)

// What frames hold is written as varints, and as bytes with their length before them. What the other end sends is never
// trusted: no list is taken that is longer than what an honest end sends, nor one that the frame has no bytes for, so that a
// frame takes little more memory than its own length.

// message is what a frame holds.
type message interface{ pack(*packer) }

// unpackable is a pointer to a T.
type unpackable[T any] interface {
	*T
	unpack(*unpacker)
}

type packer struct{ b []byte }

func (p *packer) number(v int64) { p.b = binary.AppendVarint(p.b, v) }
func (p *packer) count(n int)    { p.number(int64(n)) }
func (p *packer) text(t string)  { p.count(len(t)); p.b = append(p.b, t...) }
func (p *packer) bytes(b []byte) { p.count(len(b)); p.b = append(p.b, b...) }

func (p *packer) claim(is bool) {
	var v int64
	if is {
		v = 1
	}
	p.number(v)
}

// unpacker takes what a packer wrote; after the first thing that is not so all is zero.
type unpacker struct {
	b   []byte
	bad bool
}

func (u *unpacker) number() int64 {
	v, n := binary.Varint(u.b)
	if n <= 0 || u.bad {
		u.bad = true
		return 0
	}
	u.b = u.b[n:]
	return v
}

// within is a number from 0 to most.
func (u *unpacker) within(most int64) int64 {
	v := u.number()
	if v < 0 || v > most {
		u.bad = true
		return 0
	}
	return v
}

// count is how many follow, of least bytes each, at most so many.
func (u *unpacker) count(most, least int) int {
	n := int(u.within(int64(most)))
	if n > len(u.b)/least {
		u.bad = true
		return 0
	}
	return n
}

// bytes are valid as long as the frame is.
func (u *unpacker) bytes(most int) []byte {
	n := u.count(most, 1)
	taken := u.b[:n:n]
	u.b = u.b[n:]
	return taken
}

func (u *unpacker) text(most int) string { return string(u.bytes(most)) }
func (u *unpacker) claim() bool          { return u.within(1) == 1 }

func decode[T any, P unpackable[T]](content []byte) (doc T, err error) {
	u := &unpacker{b: content}
	P(&doc).unpack(u)
	if u.bad || len(u.b) > 0 {
		return doc, errors.New("a message that no agent of this version sends; both must be of one version")
	}
	return doc, nil
}

// textMost bounds names and what is said of errors.
const textMost = 4 << 10

func (w walk) pack(p *packer) { p.text(string(w.Claim)); p.claim(w.Fresh) }
func (w *walk) unpack(u *unpacker) {
	w.Claim, w.Fresh = spec.ClaimName(u.text(textMost)), u.claim()
}

func (t total) pack(p *packer)      { p.number(t.Bytes) }
func (t *total) unpack(u *unpacker) { t.Bytes = u.within(math.MaxInt64) }

func (e enter) pack(p *packer) { p.count(e.Depth); p.text(e.Name) }
func (e *enter) unpack(u *unpacker) {
	e.Depth, e.Name = int(u.within(math.MaxInt32)), u.text(unix.NAME_MAX)
}

func (f failure) pack(p *packer)      { p.text(f.Text[:min(len(f.Text), textMost)]); p.claim(f.Never) }
func (f *failure) unpack(u *unpacker) { f.Text, f.Never = u.text(textMost), u.claim() }

func (f file) pack(p *packer) { p.number(f.Batch); p.count(f.Index); p.number(f.Size) }
func (f *file) unpack(u *unpacker) {
	f.Batch, f.Index, f.Size = u.number(), int(u.within(batchEntries)), u.within(math.MaxInt64)
}

func (e end) pack(p *packer) {
	p.number(e.Batch)
	p.count(e.Index)
	p.claim(e.OK)
	packItem(p, &e.Item)
	p.bytes(e.Sum)
}

func (e *end) unpack(u *unpacker) {
	e.Batch, e.Index, e.OK = u.number(), int(u.within(batchEntries)), u.claim()
	unpackItem(u, &e.Item)
	e.Sum = sum(u)
}

func (b batch) pack(p *packer) {
	p.number(b.Number)
	p.count(len(b.Entries))
	for i := range b.Entries {
		packItem(p, &b.Entries[i])
	}
}

func (b *batch) unpack(u *unpacker) {
	b.Number = u.number()
	b.Entries = make([]tree.Item, u.count(batchEntries, itemLeast))
	for i := range b.Entries {
		unpackItem(u, &b.Entries[i])
	}
}

func (n needs) pack(p *packer) {
	p.number(n.Batch)
	p.count(len(n.Files))
	for _, f := range n.Files {
		p.count(f.Index)
		p.number(f.Size)
		p.count(len(f.Blocks))
		for i := range f.Blocks {
			p.b = append(p.b, f.Blocks[i][:]...)
		}
	}
}

func (n *needs) unpack(u *unpacker) {
	n.Batch = u.number()
	n.Files = make([]need, u.count(batchEntries, 3))
	last := -1
	for i := range n.Files {
		f := &n.Files[i]
		f.Index, f.Size = int(u.within(batchEntries)), u.within(math.MaxInt64)
		f.Blocks = make([]tree.Digest, u.count(tree.BlocksMost, len(tree.Digest{})))
		for j := range f.Blocks {
			u.b = u.b[copy(f.Blocks[j][:], u.b):]
		}
		u.bad, last = u.bad || f.Index <= last, f.Index
	}
}

// itemLeast is less than what any entry takes.
const itemLeast = 12

func packItem(p *packer, e *tree.Item) {
	p.text(e.Name)
	for _, v := range []int64{int64(e.Mode), int64(e.UID), int64(e.GID), e.Size, e.Mtime.Sec, e.Mtime.Nsec} {
		p.number(v)
	}
	p.number(int64(e.Rdev))
	p.text(e.Target)
	p.number(e.Group)
	p.count(len(e.Xattrs))
	for _, x := range e.Xattrs {
		p.text(x.Name)
		p.bytes(x.Value)
	}
	p.bytes(e.Sum)
}

func unpackItem(u *unpacker, e *tree.Item) {
	e.Name = u.text(unix.NAME_MAX)
	e.Mode, e.UID, e.GID = uint32(u.within(math.MaxUint32)), uint32(u.within(math.MaxUint32)), uint32(u.within(math.MaxUint32))
	e.Size = u.within(math.MaxInt64)
	e.Mtime = tree.Time{Sec: u.number(), Nsec: u.within(999_999_999)}
	e.Rdev = uint64(u.number())
	e.Target = u.text(unix.PathMax)
	e.Group = u.within(math.MaxInt64)
	if n := u.count(xattrsMost, len(xattrLeast)+2); n > 0 {
		e.Xattrs = make([]tree.Xattr, n)
	}
	for i := range e.Xattrs {
		x := tree.Xattr{Name: u.text(unix.NAME_MAX), Value: slices.Clone(u.bytes(64 << 10))}
		u.bad = u.bad || len(x.Name) < len(xattrLeast)
		e.Xattrs[i] = x
	}
	e.Sum = sum(u)
}

// xattrsMost is how many extended attributes a file can have: their names take 64 KiB at most.
const (
	xattrLeast = "user.x"
	xattrsMost = 64 << 10 / (len(xattrLeast) + 1)
)

// sum is that of a content, or nil.
func sum(u *unpacker) []byte {
	b := u.bytes(len(tree.Digest{}))
	switch len(b) {
	case 0:
		return nil
	case len(tree.Digest{}):
		return slices.Clone(b)
	}
	u.bad = true
	return nil
}
