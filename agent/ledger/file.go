package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// The operations of records.
const (
	opStart  = "start"  // the ledger was opened for the Starts-th time, in this Boot: open tokens of other boots end here
	opNewest = "newest" // compaction: the newest token of an identity
	opOpen   = "open"
	opClose  = "close"
	opStored = "stored"
)

type record struct {
	Op     string        `json:"op"`
	ID     spec.Identity `json:"id,omitzero"`
	Token  spec.Token    `json:"token,omitzero"`
	Boot   spec.BootID   `json:"boot,omitempty"`
	Cause  causes.Cause  `json:"cause,omitempty"`
	Starts int64         `json:"starts,omitempty"`
}

func encode(recs []record) (lines []byte, err error) {
	for _, r := range recs {
		doc, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encode ledger record: %w", err)
		}
		lines = fmt.Appendf(lines, "%s%s\n", sum(doc), doc)
	}
	return lines, nil
}

// sum is what comes before a document on its line.
func sum(doc []byte) string { return fmt.Sprintf("%08x ", crc32.ChecksumIEEE(doc)) }

func decode(line []byte) (record, bool) {
	var r record
	const head = len("01234567 ")
	if len(line) < head || string(line[:head]) != sum(line[head:]) {
		return r, false
	}
	return r, json.Unmarshal(line[head:], &r) == nil
}

// read returns the records of the file and the length of its good part. Only the
// last record may be bad, and only in a way that a crash leaves behind: without
// its newline, or with blocks that were never written (zeros).
func read(d Disk) (int64, []record, error) {
	all, err := d.Read()
	if err != nil {
		return 0, nil, fmt.Errorf("read ledger: %w", err)
	}
	var recs []record
	good := 0
	for n := 1; good < len(all); n++ {
		line, rest, whole := bytes.Cut(all[good:], []byte("\n"))
		r, ok := decode(line)
		if whole && ok {
			recs = append(recs, r)
			good += len(line) + 1
			continue
		}
		if len(rest) == 0 && (!whole || bytes.IndexByte(line, 0) >= 0) {
			break
		}
		return 0, nil, fmt.Errorf("%w: %s: record %d: nothing can be started safely; restore the file, or let this machine join as a new node", ErrCorrupt, d.Name(), n)
	}
	return int64(good), recs, nil
}

// apply is the meaning of a record; the caller holds the lock.
func (l *Ledger) apply(r record) {
	if r.Op == opStart {
		l.starts = max(l.starts, r.Starts)
		l.reboot(r.Boot)
		return
	}
	e, ok := l.entries[r.ID]
	if !ok {
		e = &Entry{ID: r.ID}
		l.entries[r.ID] = e
	}
	if r.Token.Compare(e.Newest) > 0 {
		e.Newest = r.Token
	}
	switch r.Op {
	case opOpen:
		e.Open = r.Token
		l.boots[r.ID] = r.Boot
	case opClose:
		if e.Open == r.Token {
			e.Open = spec.Token{}
			delete(l.boots, r.ID)
		}
		e.Ends = append(e.Ends, End{r.Token, r.Cause})
	case opStored:
		e.Ends = slices.DeleteFunc(e.Ends, func(x End) bool { return x.Token == r.Token })
	}
}

// reboot closes the tokens that were opened in another boot than the present one.
func (l *Ledger) reboot(now spec.BootID) {
	for id, boot := range l.boots {
		if boot != now {
			l.apply(record{Op: opClose, ID: id, Token: l.entries[id].Open, Cause: causes.Reboot})
		}
	}
}

// append writes records, waits for the disk and applies them; the caller holds
// the lock. After a failed write the file is cut back to what it was; when that
// or the wait for the disk fails, the ledger is broken for good.
func (l *Ledger) append(recs ...record) error {
	if l.broken != nil {
		return l.broken
	}
	buf, err := encode(recs)
	if err != nil {
		return err
	}
	if _, err := l.file.WriteAt(buf, l.size); err != nil {
		if cut := l.file.Truncate(l.size); cut != nil {
			l.broken = fmt.Errorf("%w: %w", ErrBroken, cut)
		}
		return fmt.Errorf("write ledger: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		l.broken = fmt.Errorf("%w: %w", ErrBroken, err)
		return l.broken
	}
	l.size += int64(len(buf))
	l.records += len(recs)
	for _, r := range recs {
		l.apply(r)
	}
	return nil
}

// compact rewrites the file when most of it is history; the caller holds the lock.
// A failure leaves the old file in use.
func (l *Ledger) compact() error {
	live := l.snapshot()
	if l.records < compactAt || l.records < 4*len(live) {
		return nil
	}
	buf, err := encode(live)
	if err != nil {
		return err
	}
	replaced, err := l.file.Replace(buf)
	if replaced { // from here on the new content is the ledger, whatever fails
		l.size, l.records = int64(len(buf)), len(live)
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

// snapshot is the shortest list of records that means the present state.
func (l *Ledger) snapshot() []record {
	recs := []record{{Op: opStart, Starts: l.starts, Boot: l.boot}}
	for _, e := range l.sorted() {
		recs = append(recs, record{Op: opNewest, ID: e.ID, Token: e.Newest})
		for _, x := range e.Ends {
			recs = append(recs, record{Op: opClose, ID: e.ID, Token: x.Token, Cause: x.Cause})
		}
		if !e.Open.IsZero() {
			recs = append(recs, record{Op: opOpen, ID: e.ID, Token: e.Open, Boot: l.boot})
		}
	}
	return recs
}
