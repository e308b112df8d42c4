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

// encode puts each record on a line of its own.
func encode(recs []record) (lines []byte, err error) {
	for _, r := range recs {
		line, err := encodeLine(r)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line...)
	}
	return lines, nil
}

// encodeLine is the line of a record, or of several that are written together: a crash keeps
// all of them or none.
func encodeLine(content any) ([]byte, error) {
	doc, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode ledger record: %w", err)
	}
	return fmt.Appendf(nil, "%s%s\n", sum(doc), doc), nil
}

// sum is what comes before a document on its line.
func sum(doc []byte) string { return fmt.Sprintf("%08x ", crc32.ChecksumIEEE(doc)) }

func decode(line []byte) ([]record, bool) {
	const head = len("01234567 ")
	if len(line) < head || string(line[:head]) != sum(line[head:]) {
		return nil, false
	}
	doc := line[head:]
	if bytes.HasPrefix(doc, []byte("[")) {
		var recs []record
		return recs, json.Unmarshal(doc, &recs) == nil
	}
	recs := make([]record, 1)
	return recs, json.Unmarshal(doc, &recs[0]) == nil
}

// read returns the records of the file and the length of its good part. Only the
// last line may be bad, and only in a way that a crash leaves behind: without
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
		found, ok := decode(line)
		if whole && ok {
			recs = append(recs, found...)
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
