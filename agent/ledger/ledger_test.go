package ledger

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

func tok(n int64) spec.Token { return spec.Token{Epoch: 1, Number: n} }

func ident(n int) spec.Identity { return spec.Identity{Namespace: "default", Set: "db", Ordinal: n} }

func fresh(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger")
	must(t, Create(path))
	return path
}

func open(t *testing.T, path string, boot spec.BootID) *Ledger {
	t.Helper()
	l, err := Open(path, boot)
	must(t, err)
	t.Cleanup(func() { _ = l.file.Close() })
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestATokenIsOpenedAtMostOnce(t *testing.T) {
	path := fresh(t)
	l := open(t, path, "b1")
	id := ident(0)
	must(t, l.OpenToken(id, tok(5)))
	must(t, l.OpenToken(id, tok(5)))
	if err := l.OpenToken(id, tok(6)); !errors.Is(err, ErrOpen) {
		t.Fatalf("second open token: got %v, want ErrOpen", err)
	}
	must(t, l.CloseToken(id, tok(5), causes.Stopped))
	l = open(t, path, "b1")
	for _, n := range []int64{5, 4, 1} {
		if err := l.OpenToken(id, tok(n)); !errors.Is(err, ErrSpent) {
			t.Fatalf("open %d after 5 was closed: got %v, want ErrSpent", n, err)
		}
	}
	must(t, l.Stored(id, tok(5)))
	must(t, l.Close())
	l = open(t, path, "b1")
	if err := l.OpenToken(id, tok(5)); !errors.Is(err, ErrSpent) {
		t.Fatalf("open 5 after its end was stored: got %v, want ErrSpent", err)
	}
	must(t, l.OpenToken(id, tok(6)))
	if e := open(t, path, "b1").Look(id); e.Open != tok(6) || e.Newest != tok(6) || len(e.Ends) != 0 {
		t.Fatalf("after reopening: got %+v", e)
	}
}

func TestATokenThatWasRefusedIsNeverOpened(t *testing.T) {
	l := open(t, fresh(t), "b1")
	must(t, l.CloseToken(ident(0), tok(5), causes.Refused))
	if err := l.OpenToken(ident(0), tok(5)); !errors.Is(err, ErrSpent) {
		t.Fatalf("got %v, want ErrSpent", err)
	}
	want := []End{{tok(5), causes.Refused}}
	if e := l.Look(ident(0)); !slices.Equal(e.Ends, want) {
		t.Fatalf("ends: got %v, want %v", e.Ends, want)
	}
	must(t, l.CloseToken(ident(0), tok(6), causes.Refused)) // nor the next, while none is open
	if err := l.OpenToken(ident(0), tok(6)); !errors.Is(err, ErrSpent) {
		t.Fatalf("the next: got %v, want ErrSpent", err)
	}
}

func TestAnotherBootClosesAllOpenTokens(t *testing.T) {
	path := fresh(t)
	l := open(t, path, "b1")
	must(t, l.OpenToken(ident(0), tok(5)))
	must(t, l.OpenToken(ident(1), tok(6)))
	must(t, l.CloseToken(ident(1), tok(6), causes.Stopped))
	l = open(t, path, "b1")
	if e := l.Look(ident(0)); e.Open != tok(5) {
		t.Fatalf("same boot: got %+v, want it open", e)
	}
	for range 2 { // also when the agent is restarted again before it could report
		l = open(t, path, "b2")
		want := []End{{tok(5), causes.Reboot}}
		if e := l.Look(ident(0)); !e.Open.IsZero() || !slices.Equal(e.Ends, want) {
			t.Fatalf("other boot: got %+v, want ends %v", e, want)
		}
	}
	want := []End{{tok(6), causes.Stopped}}
	if e := l.Look(ident(1)); !slices.Equal(e.Ends, want) {
		t.Fatalf("a token closed before: got %+v, want ends %v", e, want)
	}
}

func TestStartsAreCounted(t *testing.T) {
	path := fresh(t)
	for want := int64(1); want < 4; want++ {
		if got := open(t, path, "b1").Starts(); got != want {
			t.Fatalf("got %d starts, want %d", got, want)
		}
	}
}

func TestACutOffLastRecordIsDropped(t *testing.T) {
	d := &memory{}
	reopen := func() *Ledger {
		l, err := OpenDisk(d, "b1")
		must(t, err)
		return l
	}
	l := reopen()
	must(t, l.OpenToken(ident(0), tok(5)))
	before := len(d.content)
	must(t, l.OpenToken(ident(1), tok(6)))
	whole := bytes.Clone(d.content)
	for cut := before; cut < len(whole); cut++ {
		for name, content := range map[string][]byte{
			"cut":    whole[:cut],
			"zeros":  append(slices.Clone(whole[:cut]), make([]byte, len(whole)-cut)...),
			"a hole": slices.Concat(whole[:cut], []byte{0}, bytes.Repeat([]byte("x"), 4096), []byte("\n")),
		} {
			d.content = bytes.Clone(content)
			l := reopen()
			if l.Look(ident(0)).Open != tok(5) || !l.Look(ident(1)).Open.IsZero() {
				t.Fatalf("%s at %d: got %+v", name, cut, l.Entries())
			}
			must(t, l.OpenToken(ident(1), tok(7)))
			if e := reopen().Look(ident(1)); e.Open != tok(7) {
				t.Fatalf("%s at %d: written after it: got %+v", name, cut, e)
			}
		}
	}
}

func TestACutOffLastRecordIsDroppedFromTheHostsFile(t *testing.T) {
	path := fresh(t)
	must(t, open(t, path, "b1").OpenToken(ident(0), tok(5)))
	hole := slices.Concat(bytesOf(t, path), []byte{0}, bytes.Repeat([]byte("x"), 4096), []byte("\n"))
	must(t, os.WriteFile(path, hole, 0o600))
	for range 2 {
		if e := open(t, path, "b1").Look(ident(0)); e.Open != tok(5) {
			t.Fatalf("got %+v, want what was whole", e)
		}
	}
}

func TestDamageElsewhereIsRefused(t *testing.T) {
	d := &memory{}
	l, err := OpenDisk(d, "b1")
	must(t, err)
	for n := range 4 {
		must(t, l.OpenToken(ident(n), tok(int64(n+1))))
	}
	whole := d.content
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for at := range whole {
		bad := slices.Clone(whole)
		bad[at] ^= 0x55
		_, err := OpenDisk(&memory{content: slices.Clone(bad)}, "b1")
		// Without its newline the last record looks cut off; everything else is damage.
		if at != len(whole)-1 && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d (last record begins at %d) damaged: got %v, want ErrCorrupt", at, last, err)
		}
		bad[at] = 0 // as a block that was never written, but a whole record follows it
		if _, err := OpenDisk(&memory{content: bad}, "b1"); at < last-1 && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d (last record begins at %d) zero: got %v, want ErrCorrupt", at, last, err)
		}
	}
}

func TestAMissingLedgerIsNeverMadeSilently(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	if _, err := Open(path, "b1"); !errors.Is(err, ErrLost) {
		t.Fatalf("got %v, want ErrLost", err)
	}
	must(t, Create(path))
	if err := Create(path); err == nil {
		t.Fatal("Create over an existing ledger: want an error")
	}
}

func TestCompactionForgetsOnlyWhatIsStored(t *testing.T) {
	path := fresh(t)
	l := open(t, path, "b1")
	must(t, l.OpenToken(ident(7), tok(1)))
	must(t, l.CloseToken(ident(8), tok(2), causes.Stopped))
	n := int64(10)
	for ; n < 10+compactAt; n++ {
		must(t, l.OpenToken(ident(0), tok(n)))
		must(t, l.CloseToken(ident(0), tok(n), causes.Stopped))
		must(t, l.Stored(ident(0), tok(n)))
	}
	if lines := strings.Count(string(bytesOf(t, path)), "\n"); lines >= compactAt {
		t.Fatalf("the file has %d records: never compacted", lines)
	}
	for _, l := range []*Ledger{l, open(t, path, "b1")} {
		if err := l.OpenToken(ident(0), tok(n-1)); !errors.Is(err, ErrSpent) {
			t.Fatalf("a stored token: got %v, want ErrSpent", err)
		}
		if e := l.Look(ident(7)); e.Open != tok(1) {
			t.Fatalf("an open token: got %+v", e)
		}
		want := []End{{tok(2), causes.Stopped}}
		if e := l.Look(ident(8)); !slices.Equal(e.Ends, want) {
			t.Fatalf("an end that is not stored: got %+v, want ends %v", e, want)
		}
	}
	if e := open(t, path, "b2").Look(ident(7)); !e.Open.IsZero() {
		t.Fatalf("another boot after a compaction: got %+v, want it closed", e)
	}
}

func TestNothingIsAcknowledgedAfterAFailedWrite(t *testing.T) {
	l := open(t, fresh(t), "b1")
	must(t, l.OpenToken(ident(0), tok(5)))
	must(t, l.file.Close())
	if err := l.OpenToken(ident(1), tok(6)); err == nil {
		t.Fatal("write to a closed file: want an error")
	}
	if e := l.Look(ident(1)); !e.Open.IsZero() {
		t.Fatalf("a token whose record was not written: got %+v, want nothing", e)
	}
	if err := l.OpenToken(ident(1), tok(6)); !errors.Is(err, ErrBroken) {
		t.Fatalf("got %v, want ErrBroken", err)
	}
}

func TestRoomForWhatFollowsIsHeldOnTheDisk(t *testing.T) {
	path := fresh(t)
	probe, err := os.Create(filepath.Join(t.TempDir(), "probe"))
	must(t, err)
	defer probe.Close()
	if err := unix.Fallocate(int(probe.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, 1); err != nil {
		t.Skip("needs a filesystem that can hold blocks:", err)
	}
	for range 2 { // also by the agent after
		l := open(t, path, "b1")
		file := l.file.(*hostFile)
		ahead := file.held
		for n := range 100 {
			must(t, l.OpenToken(ident(n), tok(5)))
			if file.held != ahead || ahead == 0 {
				t.Fatalf("held up to %d, then %d; want it held once for many records", ahead, file.held)
			}
			var st syscall.Stat_t
			must(t, syscall.Stat(path, &st))
			if held := st.Blocks * 512; held < st.Size+holdBytes/2 {
				t.Fatalf("%d bytes are held for %d", held, st.Size)
			}
		}
		must(t, l.Close())
	}
}

func bytesOf(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}
