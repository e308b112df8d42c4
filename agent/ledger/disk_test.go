package ledger

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// memory is a Disk that may be told to fail.
type memory struct {
	content                        []byte
	durable                        []byte // what a power cut leaves
	write, truncate, sync, replace error
	half                           bool // a Replace that fails has replaced the content
}

func (m *memory) Name() string          { return "memory" }
func (m *memory) Read() ([]byte, error) { return bytes.Clone(m.content), nil }
func (m *memory) Close() error          { return nil }

func (m *memory) Sync() error {
	if m.sync == nil {
		m.durable = bytes.Clone(m.content)
	}
	return m.sync
}

func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	if m.write != nil {
		m.content = append(m.content[:at], p[:len(p)/2]...)
		return len(p) / 2, m.write
	}
	m.content = append(m.content[:at], p...)
	return len(p), nil
}

func (m *memory) Truncate(size int64) error {
	if m.truncate == nil {
		m.content = m.content[:size]
	}
	return m.truncate
}

func (m *memory) Replace(content []byte) (bool, error) {
	replaced := m.replace == nil || m.half
	if replaced {
		m.content, m.durable = content, bytes.Clone(content)
	}
	return replaced, m.replace
}

func (m *memory) lines() int { return bytes.Count(m.content, []byte("\n")) }

// inMemory has a ledger with this many records, most of them history.
func inMemory(t *testing.T, records int) (*Ledger, *memory) {
	t.Helper()
	d := &memory{}
	l, err := OpenDisk(d, "b1")
	must(t, err)
	for n := range (records - 1) / 3 { // one is of the start
		token := tok(int64(n + 1))
		must(t, l.OpenToken(ident(0), token))
		must(t, l.CloseToken(ident(0), token, causes.Stopped))
		must(t, l.Stored(ident(0), token))
	}
	return l, d
}

// almost has a ledger that is compacted when the end of the token is stored.
func almost(t *testing.T) (*Ledger, *memory, spec.Token) {
	t.Helper()
	l, d := inMemory(t, compactAt-3)
	must(t, l.OpenToken(ident(0), tok(compactAt)))
	must(t, l.CloseToken(ident(0), tok(compactAt), causes.Stopped))
	l.stored = tidyAfter - 1
	return l, d, tok(compactAt)
}

func TestALedgerIsCompactedWhenMostOfItIsHistory(t *testing.T) {
	l, d, token := almost(t)
	if l.records < compactAt-tidyAfter {
		t.Errorf("%d records; want a short ledger left as it is", l.records)
	}
	must(t, l.Stored(ident(0), token))
	if d.lines() != 2 {
		t.Errorf("%d records; want the start and the newest token", d.lines())
	}
	for n := range compactAt { // all of them of lives that are open
		must(t, l.OpenToken(ident(n+1), tok(1)))
	}
	must(t, l.CloseToken(ident(1), tok(1), causes.Stopped))
	before := d.lines()
	l.stored = tidyAfter - 1
	must(t, l.Stored(ident(1), tok(1)))
	if d.lines() != before+1 {
		t.Errorf("%d records after %d; want no compaction of what is in use", d.lines(), before)
	}
}

func TestACompactionThatFailsLeavesTheLedgerAsItWas(t *testing.T) {
	l, d, token := almost(t)
	boom := errors.New("boom")
	d.replace = boom
	if err := l.Stored(ident(0), token); !errors.Is(err, boom) || errors.Is(err, ErrBroken) {
		t.Fatalf("got %v, want what went wrong, and a ledger that is not broken", err)
	}
	must(t, l.OpenToken(ident(1), tok(1)))
	l, err := OpenDisk(d, "b1")
	must(t, err)
	if e := l.Look(ident(0)); e.Newest != token || len(e.Ends) != 0 || l.Look(ident(1)).Open != tok(1) {
		t.Fatalf("got %+v and %+v, want all that was recorded", e, l.Look(ident(1)))
	}
}

func TestACompactionThatMayNotLastBreaksTheLedger(t *testing.T) {
	l, d, token := almost(t)
	d.replace, d.half = errors.New("boom"), true
	if err := l.Stored(ident(0), token); !errors.Is(err, ErrBroken) {
		t.Fatalf("got %v, want ErrBroken", err)
	}
	if err := l.OpenToken(ident(1), tok(1)); !errors.Is(err, ErrBroken) {
		t.Fatalf("got %v after it, want ErrBroken", err)
	}
}

func TestAWriteThatFailsHalfWayIsTakenBack(t *testing.T) {
	l, d := inMemory(t, 1)
	d.write = errors.New("full")
	if err := l.OpenToken(ident(0), tok(1)); !errors.Is(err, d.write) || errors.Is(err, ErrBroken) {
		t.Fatalf("got %v, want what went wrong, and a ledger that is not broken", err)
	}
	d.write = nil
	must(t, l.OpenToken(ident(0), tok(2)))
	l, err := OpenDisk(d, "b1")
	must(t, err)
	if e := l.Look(ident(0)); e.Open != tok(2) {
		t.Fatalf("got %+v, want what was written after it", e)
	}
	d.write, d.truncate = errors.New("full"), errors.New("gone")
	if err := l.OpenToken(ident(1), tok(3)); !errors.Is(err, d.write) {
		t.Fatalf("got %v, want what went wrong", err)
	}
	d.write, d.truncate = nil, nil
	if err := l.OpenToken(ident(1), tok(3)); !errors.Is(err, ErrBroken) {
		t.Fatalf("got %v after it could not be taken back, want ErrBroken", err)
	}
}

func TestTheEndOfATokenIsStoredOnce(t *testing.T) {
	l, d := inMemory(t, 1)
	must(t, l.CloseToken(ident(0), tok(2), causes.Stopped))
	must(t, l.Stored(ident(0), tok(2)))
	before := d.lines()
	must(t, l.Stored(ident(0), tok(2)))
	must(t, l.Stored(ident(1), tok(1))) // of which nothing is known
	if d.lines() != before {
		t.Errorf("%d records after %d, want no more", d.lines(), before)
	}
}

func TestWhatReturnedOutlivesAPowerCut(t *testing.T) {
	d := &memory{}
	l, err := OpenDisk(d, "b1")
	must(t, err)
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"the start", func() error { return nil }},
		{"a token is opened", func() error { return l.OpenToken(ident(0), tok(1)) }},
		{"another is opened", func() error { return l.OpenToken(ident(1), tok(2)) }},
		{"one is closed", func() error { return l.CloseToken(ident(0), tok(1), causes.Stopped) }},
		{"its end is stored, and one is refused", func() error {
			return errors.Join(l.Stored(ident(0), tok(1)), l.CloseToken(ident(3), tok(1), causes.Refused))
		}},
		{"one is refused", func() error { return l.CloseToken(ident(2), tok(3), causes.Refused) }},
	} {
		must(t, step.do())
		after, err := OpenDisk(&memory{content: bytes.Clone(d.durable)}, "b1")
		must(t, err)
		if got, want := after.Entries(), l.Entries(); !reflect.DeepEqual(got, want) || after.Starts() != l.Starts()+1 {
			t.Errorf("%s: a power cut leaves %+v and %d starts, want %+v and %d", step.what, got, after.Starts()-1, want, l.Starts())
		}
	}
	d.sync = errors.New("the disk is gone")
	if err := l.OpenToken(ident(4), tok(4)); !errors.Is(err, ErrBroken) || l.Look(ident(4)).Open == tok(4) {
		t.Errorf("a token that is not on disk counts as open: %v", err)
	}
}
