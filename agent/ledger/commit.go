package ledger

import (
	"errors"
	"fmt"

	"github.com/stead-project/stead/spec"
)

// batch is records that go to the disk together: those that came while the one before was
// written.
type batch struct {
	records []record
	done    chan struct{} // closed when they are on disk and applied, or failed
	err     error         // why; read when done is closed
}

// tidyAfter is how many ends are stored before what waits is written and the ledger is
// compacted if it should be.
const tidyAfter = 64

// lockFor locks the ledger when nothing of the identity is being written: what is decided
// about it next relies on that.
func (l *Ledger) lockFor(id spec.Identity) {
	l.mu.Lock()
	for b := l.waiting[id]; b != nil; b = l.waiting[id] {
		l.mu.Unlock()
		<-b.done
		l.mu.Lock()
	}
}

// append has a record written, waits for the disk and applies it. The caller holds the
// lock, which others may have meanwhile. Records that come while others are written share
// the next wait for the disk. After a failed write the file is cut back to what it was; when
// that or the wait for the disk fails, the ledger is broken for good.
func (l *Ledger) append(r record) error {
	if l.broken != nil {
		return l.broken
	}
	b := l.next
	if b != nil {
		b.records = append(b.records, r)
		l.waiting[r.ID] = b
		l.mu.Unlock()
		<-b.done
		l.mu.Lock()
		return b.err
	}
	b = &batch{records: []record{r}, done: make(chan struct{})}
	l.next, l.waiting[r.ID] = b, b
	l.mu.Unlock()
	l.writing.Lock()
	l.mu.Lock()
	l.next = nil // the next record begins another
	l.write(b)
	l.writing.Unlock()
	close(b.done)
	return b.err
}

// write puts a batch on disk, after what waited to be written with it, and applies it. The
// caller holds both locks; others may have that of the state while the disk works.
func (l *Ledger) write(b *batch) {
	b.err = l.broken
	if b.err == nil {
		lazy := len(l.lazy)
		recs := append(l.lazy[:lazy:lazy], b.records...)
		l.mu.Unlock()
		size, err := l.toDisk(recs)
		l.mu.Lock()
		b.err = err
		switch {
		case err == nil:
			l.size += size
			l.records += len(recs)
			l.together = l.together || len(recs) > 1
			l.lazy = l.lazy[lazy:]
			for _, r := range b.records {
				l.apply(r)
			}
		case errors.Is(err, ErrBroken):
			l.broken = err
		}
	}
	for _, r := range b.records {
		delete(l.waiting, r.ID)
	}
}

// toDisk writes records at the end and returns when they are on disk. With ErrBroken it is not
// known what the file holds. The caller holds the lock of writing.
func (l *Ledger) toDisk(recs []record) (size int64, err error) {
	var content any = recs
	if len(recs) == 1 {
		content = recs[0]
	}
	buf, err := encodeLine(content)
	if err != nil {
		return 0, err
	}
	if _, err := l.file.WriteAt(buf, l.size); err != nil {
		if cut := l.file.Truncate(l.size); cut != nil {
			return 0, fmt.Errorf("write ledger: %w; %w: %w", err, ErrBroken, cut)
		}
		return 0, fmt.Errorf("write ledger: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return int64(len(buf)), nil
}

// flush writes what waits to be written with something else. The caller holds both locks.
func (l *Ledger) flush() error {
	if len(l.lazy) == 0 {
		return nil
	}
	var none batch
	l.write(&none)
	return none.err
}

// compact rewrites the file when most of it is history. A failure leaves the old file in use.
// The caller holds both locks.
func (l *Ledger) compact() error {
	if l.broken != nil || l.records < compactAt {
		return nil
	}
	live := l.snapshot()
	if l.records < 4*len(live) {
		return nil
	}
	return l.rewrite(live)
}

// rewrite puts records in the place of all that is in the file.
func (l *Ledger) rewrite(live []record) error {
	buf, err := encode(live)
	if err != nil {
		return err
	}
	replaced, err := l.file.Replace(buf)
	if replaced { // from here on the new content is the ledger, whatever fails
		l.size, l.records, l.lazy, l.together = int64(len(buf)), len(live), nil, false
	}
	switch {
	case err == nil:
		return nil
	case replaced:
		l.broken = fmt.Errorf("%w: %w", ErrBroken, err)
		return l.broken
	}
	return fmt.Errorf("compact ledger: %w", err)
}
