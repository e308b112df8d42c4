package tree

import (
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Digest is a SHA-256. The sum of a file's content is that of the digests of its blocks, each of BlockBytes of its size.
type Digest [sha256.Size]byte

const (
	leastBlock = 1 << 20
	// BlocksMost is how many blocks a file has at most.
	BlocksMost = 1 << 15
	// cachedMost bounds the files whose sums are remembered, about 120 bytes each; others are read again.
	cachedMost = 1 << 20
	// racy is how much older than the reading of a file its last change must be, or its sum is not believed later: two changes within
	// one tick of the kernel's clock have one time, and what a disk takes long to write bears the time at which it was asked.
	racy = 10 * time.Second
)

// BlockBytes is the size of the blocks of a file.
func BlockBytes(size int64) int64 {
	block := int64(leastBlock)
	for size/block >= BlocksMost {
		block *= 2
	}
	return block
}

// SumOf is the sum of a content of these blocks.
func SumOf(blocks []Digest) []byte {
	h := sha256.New()
	for i := range blocks {
		h.Write(blocks[i][:])
	}
	return h.Sum(nil)
}

type fileID struct{ dev, ino uint64 }

// known is what was read of a file when it had these times.
type known struct {
	size, mtime, ctime int64
	sum                Digest
	blocks             []Digest // if there are several
}

// Sums remembers the sums of files that have not changed since. Safe for concurrent use.
type Sums struct {
	now  func() time.Time // the clock of the file systems
	most int              // cachedMost

	mu    sync.Mutex
	files map[fileID]known
}

// NewSums returns an empty one.
func NewSums(now func() time.Time) *Sums {
	return &Sums{now: now, most: cachedMost, files: map[fileID]known{}}
}

// Clear forgets all.
func (s *Sums) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.files)
}

func (s *Sums) find(st *unix.Stat_t) (known, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.files[fileID{st.Dev, st.Ino}]
	return k, ok && k.size == st.Size && k.mtime == st.Mtim.Nano() && k.ctime == st.Ctim.Nano()
}

// Find is the sum of a file; nil: not known.
func (s *Sums) Find(st *unix.Stat_t) []byte {
	if k, ok := s.find(st); ok {
		return k.sum[:]
	}
	return nil
}

// Put remembers the blocks of a file that is as st says and that nobody else writes to.
func (s *Sums) Put(st *unix.Stat_t, blocks []Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fileID{st.Dev, st.Ino}
	if _, had := s.files[id]; !had && len(s.files) >= s.most {
		return
	}
	k := known{size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), sum: Digest(SumOf(blocks))}
	if len(blocks) > 1 {
		k.blocks = blocks
	}
	s.files[id] = k
}

// Forget forgets a file that is about to be written to.
func (s *Sums) Forget(st *unix.Stat_t) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, fileID{st.Dev, st.Ino})
}

// Reading is a file that is read whole while others may write to it.
type Reading struct {
	*os.File
	Stat  unix.Stat_t
	sums  *Sums
	began time.Time
	// Known are the digests of its blocks as they are, if they are known and it has several.
	Known []Digest
	// steady: changes through a mapping leave a new time, too, if what was written before is on its way to disk.
	steady bool
}

// Read opens a file to be read.
func (s *Sums) Read(dir *os.File, name string) (*Reading, error) {
	f, st, err := openFile(dir, name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	r := &Reading{File: f, sums: s, began: s.now(), Stat: st}
	if k, ok := s.find(&st); ok {
		r.Known = k.blocks
	}
	r.steady = r.Known != nil || steady(f)
	return r, nil
}

// steady writes back what is dirty of a file. A page that is clean is write-protected: whoever writes to it through a mapping
// faults, and the file gets a new time. One that is dirty already can be changed without a trace. Of file systems where
// that is not known to be so nothing is believed.
func steady(f *os.File) bool {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return false
	}
	switch int64(fs.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
	default:
		return false
	}
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	return unix.SyncFileRange(int(f.Fd()), 0, 0, all) == nil
}

// End remembers the blocks that were read, if the file was not changed since it was opened, nor just before. same: it was not
// changed meanwhile, as far as its times say.
func (r *Reading) End(blocks []Digest) (same bool) {
	var now unix.Stat_t
	if err := unix.Fstat(int(r.Fd()), &now); err != nil {
		return false
	}
	same = now.Size == r.Stat.Size && now.Mtim == r.Stat.Mtim && now.Ctim == r.Stat.Ctim
	changed := time.Unix(now.Ctim.Unix())
	if same && r.steady && r.began.Sub(changed) >= racy {
		r.sums.Put(&now, blocks)
	}
	return same
}

// BlockSum reads a file from off to end with the help of buf. io.ErrUnexpectedEOF: it ends before.
func BlockSum(f io.ReaderAt, off, end int64, buf []byte) (Digest, error) {
	h := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{io.NewSectionReader(f, off, end-off)}, buf)
	if err == nil && n < end-off {
		err = io.ErrUnexpectedEOF
	}
	return Digest(h.Sum(nil)), err
}

// Blocks reads a file of this size and returns the digests of its blocks. each is called after each block.
func Blocks(f io.ReaderAt, size int64, each func() error) ([]Digest, error) {
	block := BlockBytes(size)
	buf := make([]byte, min(max(size, 1), 256<<10))
	list := make([]Digest, 0, (size+block-1)/block)
	for off := int64(0); off < size; off += block {
		sum, err := BlockSum(f, off, min(off+block, size), buf)
		if err == nil {
			err = each()
		}
		if err != nil {
			return nil, err
		}
		list = append(list, sum)
	}
	return list, nil
}

// Extents calls do for each part of a file from off to end: with data, or a hole.
func Extents(f *os.File, off, end int64, do func(off, end int64, hole bool) error) error {
	for off < end {
		data, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
		switch {
		case errors.Is(err, unix.ENXIO): // none is left
			data = end
		case err != nil:
			data = off
		}
		data = min(max(data, off), end)
		if data > off {
			if err := do(off, data, true); err != nil {
				return err
			}
		}
		hole, err := unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE)
		if err != nil || hole <= data {
			hole = end
		}
		off = min(hole, end)
		if off > data {
			if err := do(data, off, false); err != nil {
				return err
			}
		}
	}
	return nil
}
