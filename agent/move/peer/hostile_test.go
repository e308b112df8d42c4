package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/move/tree"
	"github.com/stead-project/stead/agent/runtime"
)

// spoken is a connection on which the other end has said all that it says.
type spoken struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (s *spoken) Read(b []byte) (int, error)      { return s.in.Read(b) }
func (s *spoken) Write(b []byte) (int, error)     { return s.out.Write(b) }
func (s *spoken) SetReadDeadline(time.Time) error { return nil }
func (s *spoken) Close() error                    { return nil }

// frame is a message as it is sent.
func frame(k kind, content []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{byte(k)}, uint32(len(content))), content...)
}

func packed(doc message) []byte {
	var p packer
	doc.pack(&p)
	return p.b
}

func framed(k kind, doc message) []byte { return frame(k, packed(doc)) }

// secret is beside the tree, and never sent.
const secret = "what is outside of the tree"

// beside makes a directory with a tree and a file beside that.
func beside(t testing.TB) (dir, top string) {
	t.Helper()
	dir = t.TempDir()
	top = filepath.Join(dir, "tree")
	if err := errors.Join(os.Mkdir(top, 0o700), os.WriteFile(filepath.Join(dir, "secret"), []byte(secret), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir, top
}

// takes has a target take what a source says.
func takes(t testing.TB, top string, said []byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	conn := &spoken{in: bytes.NewReader(said)}
	p := &puller{wire: newWire(conn), ctx: ctx, p: &part{sums: tree.NewSums(time.Now)}}
	return p.tree(runtime.MoveTree{Claim: "data", Path: top}, false)
}

// allocated is how much memory was taken from the heap so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

var everything = tree.Item{
	Name: "f\xff\n", Mode: unix.S_IFREG | 0o4755, UID: math.MaxUint32, GID: 1, Size: math.MaxInt64, Mtime: tree.Time{Sec: -7, Nsec: 999_999_999},
	Rdev: math.MaxUint64, Target: "../x", Group: 9, Xattrs: []tree.Xattr{{Name: "user.a", Value: []byte{0}}, {Name: "user.b", Value: []byte{}}},
	Sum: bytes.Repeat([]byte{1}, 32),
}

func TestMessagesSayWhatWasPacked(t *testing.T) {
	same := func(got any, err error, want any) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	b := batch{Number: 3, Entries: []tree.Item{everything, {Name: "x", Mode: unix.S_IFIFO}}}
	gotB, err := decode[batch](packed(b))
	same(gotB, err, b)
	n := needs{Batch: 3, Files: []need{{Index: 1, Size: 5, Blocks: []tree.Digest{{1}, {2}}}, {Index: 2, Blocks: []tree.Digest{}}}}
	gotN, err := decode[needs](packed(n))
	same(gotN, err, n)
	e := end{Batch: 3, Index: 1, OK: true, Item: everything, Sum: everything.Sum}
	gotE, err := decode[end](packed(e))
	same(gotE, err, e)
	w := walk{Claim: "data", Fresh: true}
	gotW, err := decode[walk](packed(w))
	same(gotW, err, w)
	f := file{Batch: 1, Index: 255, Size: math.MaxInt64}
	gotF, err := decode[file](packed(f))
	same(gotF, err, f)
	x := failure{Text: "why", Never: true}
	gotX, err := decode[failure](packed(x))
	same(gotX, err, x)
	d := enter{Depth: 4, Name: strings.Repeat("n", 255)}
	gotD, err := decode[enter](packed(d))
	same(gotD, err, d)
	if _, err := decode[walk](append(packed(w), 0)); err == nil {
		t.Error("what follows a message is passed over")
	}
}

// A message takes little more memory than its length, whatever it says that is in it.
func TestAMessageTakesNoMoreMemoryThanItsLength(t *testing.T) {
	length := func(n int64) []byte { return binary.AppendVarint(nil, n) }
	item := bytes.Repeat([]byte{0}, 12)
	attributes := slices.Concat(item[:10], length(int64(xattrsMost)))
	for name, c := range map[string]struct {
		k       kind
		content []byte
	}{
		"entries that are not there":    {batchFrame, slices.Concat(length(1), length(math.MaxInt64))},
		"many entries":                  {batchFrame, slices.Concat(length(1), length(1<<18), bytes.Repeat(item, 1<<18))},
		"attributes that are not there": {batchFrame, slices.Concat(length(1), length(1), attributes)},
		"attributes without a name":     {batchFrame, slices.Concat(length(1), length(1), attributes, make([]byte, 1<<20))},
		"a name that is not there":      {batchFrame, slices.Concat(length(1), length(1), length(255))},
		"a long name":                   {batchFrame, slices.Concat(length(1), length(1), length(1<<20), make([]byte, 1<<20))},
		"a negative length":             {batchFrame, slices.Concat(length(1), length(-1))},
		"a number that does not end":    {batchFrame, bytes.Repeat([]byte{0xff}, 1<<20)},
		"blocks that are not there":     {needsFrame, slices.Concat(length(1), length(1), length(0), length(0), length(tree.BlocksMost))},
		"files that are not there":      {needsFrame, slices.Concat(length(1), length(batchEntries))},
		"files twice":                   {needsFrame, packed(needs{Files: []need{{Index: 1}, {Index: 1}}})},
	} {
		said := frame(c.k, c.content)
		before := allocated()
		w := newWire(&spoken{in: bytes.NewReader(said)})
		_, content, err := w.receive(nil, true)
		if err == nil && c.k == batchFrame {
			_, err = decode[batch](content)
		} else if err == nil {
			_, err = decode[needs](content)
		}
		if took := allocated() - before; err == nil || took > uint64(len(c.content))+1<<20 {
			t.Errorf("%s: %d bytes took %d, error %v", name, len(c.content), took, err)
		}
	}
}

// The memory for a message is not taken before its length is known to be one that is sent.
func TestALengthThatNobodySendsTakesNoMemory(t *testing.T) {
	before := allocated()
	_, _, err := newWire(&spoken{in: bytes.NewReader([]byte{byte(batchFrame), 0x0f, 0xff, 0xff, 0xff})}).receive(nil, true)
	if took := allocated() - before; err == nil || took > 1<<20 {
		t.Errorf("it took %d bytes, error %v", took, err)
	}
}

// A source that asks a target for more and more, and never sends it, is refused: each batch keeps a directory open.
func TestASourceKeepsFewBatchesOpen(t *testing.T) {
	_, top := beside(t)
	said := framed(enterFrame, enter{Name: "."})
	for i := range int64(window + 1) {
		name := string(rune('A' + i))
		said = append(said, framed(batchFrame, batch{Number: i, Entries: []tree.Item{{Name: name, Mode: unix.S_IFREG, Size: 1}}})...)
	}
	if err := takes(t, top, said); err == nil || !strings.Contains(err.Error(), "further files") {
		t.Errorf("got %v", err)
	}
}

// Content is taken of files that were needed, once, and for them alone.
func TestContentIsTakenOfWhatWasNeeded(t *testing.T) {
	shown := slices.Concat(framed(enterFrame, enter{Name: "."}),
		framed(batchFrame, batch{Number: 1, Entries: []tree.Item{{Name: ".", Mode: unix.S_IFDIR | 0o700}, {Name: "f", Mode: unix.S_IFREG | 0o600, Size: 1}, {Name: "p", Mode: unix.S_IFIFO}, {Name: "q", Mode: unix.S_IFREG, Size: 1}}}))
	f := tree.Item{Name: "f", Mode: unix.S_IFREG | 0o600, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	data := frame(dataFrame, append(make([]byte, 8), 'x'))
	whole := slices.Concat(framed(fileFrame, file{1, 1, 1}), data, framed(endFrame, end{Batch: 1, Index: 1, OK: true, Item: f}))
	q := f
	q.Name = "q"
	rest := slices.Concat(framed(endFrame, end{Batch: 1, Index: 3, Item: q}), framed(leaveFrame, total{}), framed(doneFrame, total{}))
	for name, c := range map[string]struct {
		said []byte
		good bool
	}{
		"as it is":                  {slices.Concat(whole, rest), true},
		"an end without the file":   {slices.Concat(framed(endFrame, end{Batch: 1, Index: 1, Item: f}), rest), true},
		"no end":                    {framed(doneFrame, total{}), false},
		"of a pipe":                 {framed(fileFrame, file{1, 2, 1}), false},
		"of another batch":          {framed(fileFrame, file{2, 1, 1}), false},
		"twice":                     {slices.Concat(whole, whole), false},
		"two at once":               {slices.Concat(framed(fileFrame, file{1, 1, 1}), framed(fileFrame, file{1, 1, 1})), false},
		"content of no file":        {data, false},
		"a hole of no file":         {frame(holeFrame, make([]byte, 16)), false},
		"a hole of no length":       {slices.Concat(framed(fileFrame, file{1, 1, 1}), frame(holeFrame, make([]byte, 3))), false},
		"the end of another name":   {slices.Concat(framed(fileFrame, file{1, 1, 1}), data, framed(endFrame, end{Batch: 1, Index: 1, OK: true, Item: q}), rest), false},
		"the end of another batch":  {framed(endFrame, end{Batch: 7, Index: 1, Item: f}), false},
		"an end that is no file":    {slices.Concat(framed(fileFrame, file{1, 1, 1}), framed(endFrame, end{Batch: 1, Index: 1, Item: tree.Item{Name: "f", Mode: unix.S_IFLNK}})), false},
		"a kind that nobody knows":  {frame('?', nil), false},
		"a failure":                 {framed(errorFrame, failure{Text: "disk"}), false},
		"a message that is too old": {frame(batchFrame, []byte("gob")), false},
	} {
		dir, top := beside(t)
		err := takes(t, top, slices.Concat(shown, c.said))
		if (err == nil) != c.good {
			t.Errorf("%s: got %v", name, err)
		}
		unharmed(t, dir)
	}
}

// unharmed fails if anything but the tree was changed.
func unharmed(t testing.TB, dir string) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(dir, "secret"), &st); err != nil || st.Mode != unix.S_IFREG|0o600 || st.Nlink != 1 || int(st.Uid) != os.Geteuid() {
		t.Errorf("outside of the tree: mode %o, owner %d, %d names, %v", st.Mode, st.Uid, st.Nlink, err)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil || string(content) != secret {
		t.Errorf("outside of the tree: %q, %v", content, err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("beside the tree: %v, %v", list, err)
	}
}

// shows has a source show its tree to a target that answers so, and returns all that was sent.
func shows(t testing.TB, top string, ask walk, answers []needs) ([]byte, error) {
	t.Helper()
	conn := &spoken{in: bytes.NewReader(nil)}
	x := New(Config{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	s := &server{
		wire: newWire(conn), c: x, p: &part{sums: tree.NewSums(time.Now)}, trees: []runtime.MoveTree{{Claim: "data", Path: top}},
		answers: make(chan needs, len(answers)),
	}
	for _, n := range answers {
		s.answers <- n
	}
	close(s.answers) // a batch beyond is answered as one that was not sent
	err := s.show(t.Context(), packed(ask))
	return conn.out.Bytes(), errors.Join(err, s.out.Flush())
}

// A target gets the content of files that it was shown, and nothing else.
func TestATargetGetsNothingButFilesOfTheTree(t *testing.T) {
	dir, top := beside(t)
	if err := errors.Join(os.WriteFile(filepath.Join(top, "f"), []byte("of the tree"), 0o600), os.Symlink(filepath.Join(dir, "secret"), filepath.Join(top, "l")),
		unix.Mkfifo(filepath.Join(top, "p"), 0o600)); err != nil {
		t.Fatal(err)
	}
	data := walk{Claim: "data"}
	for name, c := range map[string]struct {
		ask     walk
		answers []needs
		good    bool
	}{
		"nothing":                   {data, []needs{{Batch: 1}}, true},
		"the file":                  {data, []needs{{Batch: 1, Files: []need{{Index: 1, Blocks: make([]tree.Digest, 3)}}}}, true},
		"the file, of another size": {data, []needs{{Batch: 1, Files: []need{{Index: 1, Size: math.MaxInt64, Blocks: make([]tree.Digest, 3)}}}}, true},
		"the directory":             {data, []needs{{Batch: 1, Files: []need{{Index: 0}}}}, false},
		"a link":                    {data, []needs{{Batch: 1, Files: []need{{Index: 2}}}}, false},
		"a pipe":                    {data, []needs{{Batch: 1, Files: []need{{Index: 3}}}}, false},
		"what was not shown":        {data, []needs{{Batch: 1, Files: []need{{Index: 4}}}}, false},
		"of another batch":          {data, []needs{{Batch: 2, Files: []need{{Index: 1}}}}, false},
		"another volume":            {walk{Claim: "../data"}, []needs{{Batch: 1}}, false},
	} {
		sent, err := shows(t, top, c.ask, c.answers)
		if (err == nil) != c.good || bytes.Contains(sent, []byte(secret)) {
			t.Errorf("%s: got %v; sent %q", name, err, sent)
		}
		if want := strings.HasPrefix(name, "the file"); bytes.Contains(sent, []byte("of the tree")) != want {
			t.Errorf("%s: the content was sent: %v", name, !want)
		}
	}
}

// Who connects and says nothing takes a place for a while; all places together are bounded.
func TestHandshakesAreBounded(t *testing.T) {
	x := copier(t)
	_, port, err := x.Key(id)
	if err != nil {
		t.Fatal(err)
	}
	at := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)}
	for range hellosMost {
		c, err := net.DialTCP("tcp", nil, &at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	for deadline := time.Now().Add(10 * time.Second); len(x.hello) < hellosMost; {
		if time.Now().After(deadline) {
			t.Fatalf("%d are in", len(x.hello))
		}
		time.Sleep(time.Millisecond)
	}
	c, err := net.DialTCP("tcp", nil, &at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(helloTime / 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one more is let in: %v", err)
	}
}
