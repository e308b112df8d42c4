// Package ledger is a node's memory of which tokens were opened and closed here
// (SAFETY S1, S4): an append-only file of lines, each with a checksum and on disk (fsync)
// before the call returns.
//
//	<crc32, 8 hex digits> <JSON of a record, or of several that were written together>\n
//
// Records that come while others are written share the next wait for the disk, and a line: a
// crash keeps all of them or none.
//
// A token is opened before its first start and closed before its end is reported;
// a closed token, or one older than the identity's newest, can never be opened
// again. The newest token of an identity stays permanently; the end of a token is
// kept until the server has stored it, then it may be compacted away.
//
// A record that a crash cut off at the very end was never acknowledged and is
// dropped. Any other damage is refused: a ledger that forgot something must not
// decide about starts.
package ledger

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// The kinds of errors of this package; test with errors.Is.
var (
	// ErrLost: there is no ledger where one must be.
	ErrLost = errors.New("the ledger is missing")
	// ErrCorrupt: the ledger is damaged elsewhere than at its cut-off end.
	ErrCorrupt = errors.New("the ledger is damaged")
	// ErrSpent: the token was closed, or a newer one of its identity is known.
	ErrSpent = errors.New("the token may not be started any more")
	// ErrOpen: another token of the identity is still open on this node.
	ErrOpen = errors.New("another token of the identity is open")
	// ErrBroken: an earlier write failed in a way that leaves the file's state
	// unknown; nothing is accepted until the agent is restarted.
	ErrBroken = errors.New("the ledger cannot be written")
)

// compactAt is the least number of records that makes a compaction worth while.
const compactAt = 1024

// End is a closed token whose end the server has not yet stored.
type End struct {
	Token spec.Token
	Cause causes.Cause
}

// Entry is what the ledger knows of one identity.
type Entry struct {
	ID spec.Identity
	// Newest is the highest token ever opened or closed here; it never goes back.
	Newest spec.Token
	// Open is the token that may run here now; zero: none. It is always Newest, and
	// of the present boot.
	Open spec.Token
	// Ends are the closed tokens that the server has not stored yet, oldest first.
	Ends []End
}

// Spent reports whether t may never be started here (any more).
func (e Entry) Spent(t spec.Token) bool {
	return t != e.Open && t.Compare(e.Newest) <= 0
}

// Ledger is an open ledger. Its methods are safe for concurrent use; those that
// write return when the record is on disk.
type Ledger struct {
	boot spec.BootID

	writing  sync.Mutex // held while the file is written, and taken before mu
	file     Disk
	size     int64 // bytes known to be good
	together bool  // some records share a line

	mu      sync.Mutex
	records int // in the file
	starts  int64
	entries map[spec.Identity]*Entry
	boots   map[spec.Identity]spec.BootID // of the open tokens
	next    *batch                        // not written yet; nil: the next record begins one
	waiting map[spec.Identity]*batch      // of each identity of which something is not on disk yet
	lazy    []record                      // applied, and written with the next batch
	stored  int                           // calls of Stored since the ledger was tidied
	broken  error
}

// Create makes an empty ledger at path, which must not exist, and returns when it
// and its name are on disk.
func Create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("create ledger: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("create ledger: %w", err)
	}
	return syncName(path)
}

// Open reads the ledger at path, drops a cut-off last record, counts this start,
// and closes every token that was opened in another boot (cause Reboot). It fails
// with ErrLost or ErrCorrupt. One process may have it open: the caller holds the
// lock of the agent's root.
func Open(path string, boot spec.BootID) (*Ledger, error) {
	f, err := openHostFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s: which tokens were started on this node is unknown, so this machine must join as a new node", ErrLost, path)
	}
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	return OpenDisk(f, boot)
}

// OpenDisk is Open with the ledger on d, which is there and is the ledger's from now
// on: it is closed with it, or at once when this fails.
func OpenDisk(d Disk, boot spec.BootID) (*Ledger, error) {
	if boot == "" {
		return nil, errors.Join(errors.New("open ledger: the boot id is empty"), d.Close())
	}
	l := &Ledger{boot: boot, file: d, entries: map[spec.Identity]*Entry{}, boots: map[spec.Identity]spec.BootID{}, waiting: map[spec.Identity]*batch{}}
	if err := l.load(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return l, nil
}

// load replays the file and brings it up to this boot.
func (l *Ledger) load() error {
	good, recs, err := read(l.file)
	if err != nil {
		return err
	}
	for _, r := range recs {
		l.apply(r)
	}
	l.size, l.records = good, len(recs)
	if err := l.file.Truncate(good); err != nil {
		return fmt.Errorf("open ledger: drop the cut-off record: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(record{Op: opStart, Starts: l.starts + 1, Boot: l.boot})
}

// Close closes the file; what must last is on disk already. It leaves one record a line, which
// an agent of an earlier version can read as well.
func (l *Ledger) Close() (err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		err = l.flush()
	}
	if l.broken == nil && l.together {
		err = errors.Join(err, l.rewrite(l.snapshot()))
	}
	l.broken = ErrBroken
	return errors.Join(err, l.file.Close())
}

// Starts counts how often the ledger was opened, this time included.
func (l *Ledger) Starts() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.starts
}

// Look returns what is known of an identity; the zero Entry but for ID if nothing.
func (l *Ledger) Look(id spec.Identity) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.entries[id]
	if !ok {
		return Entry{ID: id}
	}
	return e.clone()
}

func (e Entry) clone() Entry {
	e.Ends = slices.Clone(e.Ends)
	return e
}

// Entries returns all identities ever known here, sorted.
func (l *Ledger) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sorted()
}

func (l *Ledger) sorted() []Entry {
	out := make([]Entry, 0, len(l.entries))
	for _, e := range l.entries {
		out = append(out, e.clone())
	}
	slices.SortFunc(out, func(a, b Entry) int { return a.ID.Compare(b.ID) })
	return out
}

// OpenToken records that token may be started on this node from now on. Repeating
// it is no error. ErrSpent: it was closed or is older than one known here.
// ErrOpen: another token of the identity must be closed first.
func (l *Ledger) OpenToken(id spec.Identity, token spec.Token) error {
	l.lockFor(id)
	defer l.mu.Unlock()
	if e, ok := l.entries[id]; ok {
		switch {
		case e.Open == token:
			return nil
		case e.Spent(token):
			return fmt.Errorf("open token %s of %s: %w (newest %s)", token, id, ErrSpent, e.Newest)
		case !e.Open.IsZero():
			return fmt.Errorf("open token %s of %s: %w (%s)", token, id, ErrOpen, e.Open)
		}
	}
	if token.IsZero() {
		return fmt.Errorf("open token of %s: the token is zero", id)
	}
	return l.append(record{Op: opOpen, ID: id, Token: token, Boot: l.boot})
}

// CloseToken records that token is over (or, if it was never opened, that it will
// never be started here). Repeating it is no error and keeps the first cause.
func (l *Ledger) CloseToken(id spec.Identity, token spec.Token, cause causes.Cause) error {
	l.lockFor(id)
	defer l.mu.Unlock()
	if e, ok := l.entries[id]; ok {
		if e.Spent(token) {
			return nil
		}
		if !e.Open.IsZero() && e.Open != token {
			return fmt.Errorf("close token %s of %s: %w (%s)", token, id, ErrOpen, e.Open)
		}
	}
	if token.IsZero() {
		return fmt.Errorf("close token of %s: the token is zero", id)
	}
	return l.append(record{Op: opClose, ID: id, Token: token, Cause: cause})
}

// Stored records that the server has stored the end of token; it stays spent. That need not
// outlive a power cut, after which the end is reported again: it goes to the disk with the next
// record that must, or when the ledger is closed.
func (l *Ledger) Stored(id spec.Identity, token spec.Token) error {
	if !l.isEnd(id, token) {
		return nil
	}
	l.mu.Lock()
	if l.broken != nil {
		defer l.mu.Unlock()
		return l.broken
	}
	r := record{Op: opStored, ID: id, Token: token}
	l.apply(r)
	l.lazy = append(l.lazy, r)
	l.stored++
	due := l.stored >= tidyAfter
	l.mu.Unlock()
	if !due {
		return nil
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stored = 0
	return errors.Join(l.flush(), l.compact())
}

// isEnd reports that the end of the token is kept.
func (l *Ledger) isEnd(id spec.Identity, token spec.Token) bool {
	return slices.ContainsFunc(l.Look(id).Ends, func(x End) bool { return x.Token == token })
}
