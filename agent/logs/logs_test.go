package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func config(t *testing.T, run string, fileBytes int64, files int) Config {
	t.Helper()
	c, err := ParseConfig(Config{Dir: t.TempDir(), Run: run, FileBytes: fileBytes, Files: files}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func write(t *testing.T, c Config, text string) {
	t.Helper()
	w := NewWriter(c)
	if err := w.Copy("stdout", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	w.Close()
}

func read(t *testing.T, dir string, o Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := Read(t.Context(), dir, o, &out); err != nil {
		t.Fatalf("Read: %v", err)
	}
	return out.String()
}

func numbers(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "line %06d\n", i)
	}
	return b.String()
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{
		{Dir: "relative", Run: "1.2.3"}, {Dir: "/x", Run: "1.2"}, {Dir: "/x", Run: "01.2.3"}, {Dir: "/x", Run: "a.2.3"},
	} {
		if _, err := ParseConfig(c.Encode()); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	got, err := ParseConfig(Config{Dir: "/x", Run: "1.2.3"}.Encode())
	want := Config{Dir: "/x", Run: "1.2.3", FileBytes: 10 << 20, Files: 5}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestLinesComeBackAsWritten(t *testing.T) {
	c := config(t, "1.2.0", 0, 0)
	long := strings.Repeat("x", MaxLine+10)
	write(t, c, "one\n\n"+long+"\nlast")
	want := "one\n\n" + long[:MaxLine] + "\n" + long[MaxLine:] + "\nlast\n"
	if got := read(t, c.Dir, Options{Tail: -1}); got != want {
		t.Errorf("got %d bytes %.80q…, want %d bytes", len(got), got, len(want))
	}
	stamped := read(t, c.Dir, Options{Tail: 1, Timestamps: true})
	at, err := time.Parse(time.RFC3339Nano, strings.Fields(stamped)[0])
	if err != nil || time.Since(at) > time.Minute || !strings.HasSuffix(stamped, "Z last\n") {
		t.Errorf("with timestamps: %q, %v", stamped, err)
	}
}

// TestLinesSplitAnywhere feeds one byte at a time.
func TestLinesSplitAnywhere(t *testing.T) {
	c := config(t, "1.2.0", 0, 0)
	w := NewWriter(c)
	r, in := io.Pipe()
	go func() {
		for _, b := range []byte("ab\ncd\n\ne") {
			in.Write([]byte{b})
		}
		in.Close()
	}()
	if err := w.Copy("stderr", r); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got := read(t, c.Dir, Options{Tail: -1}); got != "ab\ncd\n\ne\n" {
		t.Errorf("got %q", got)
	}
}

func TestRotationBoundsDiskAndKeepsTheNewest(t *testing.T) {
	c := config(t, "1.2.0", 4096, 3)
	write(t, c, numbers(0, 1000))
	names, err := filepath.Glob(filepath.Join(c.Dir, "1.2.0", "*.log"))
	if err != nil || len(names) != 3 {
		t.Fatalf("files %v, %v; want 3", names, err)
	}
	for _, n := range names {
		if st, err := os.Stat(n); err != nil || st.Size() > 4096 || st.Size() == 0 {
			t.Errorf("%s: %v bytes, %v; want 1..4096", n, st.Size(), err)
		}
	}
	got := read(t, c.Dir, Options{Tail: -1})
	first := strings.Count(got, "\n")
	if want := numbers(1000-first, 1000); got != want || first < 100 {
		t.Errorf("%d lines kept, not the newest in order", first)
	}
}

func TestTailCrossesFiles(t *testing.T) {
	c := config(t, "1.2.0", 4096, 20)
	write(t, c, numbers(0, 500))
	for _, n := range []int{0, 1, 7, 150, 499, 500, 501} {
		want := numbers(max(0, 500-n), 500)
		if got := read(t, c.Dir, Options{Tail: int64(n)}); got != want {
			t.Errorf("tail %d: got %d lines, want %d", n, strings.Count(got, "\n"), strings.Count(want, "\n"))
		}
	}
}

func TestSinceLeavesOutOlderLines(t *testing.T) {
	c := config(t, "1.2.0", 0, 0)
	w := NewWriter(c)
	w.Copy("stdout", strings.NewReader("old\n"))
	time.Sleep(2 * time.Millisecond) // the clock must move on, no more
	mark := time.Now()
	w.Copy("stdout", strings.NewReader("new\n"))
	w.Close()
	if got := read(t, c.Dir, Options{Tail: -1, Since: mark}); got != "new\n" {
		t.Errorf("got %q, want the new line", got)
	}
	if got := read(t, c.Dir, Options{Tail: -1, Since: time.Now()}); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestPreviousRunAndPruning(t *testing.T) {
	c := config(t, "1.9.0", 0, 0)
	var err error
	err = Read(t.Context(), c.Dir, Options{}, io.Discard)
	if !errors.Is(err, ErrNoRun) {
		t.Errorf("before the first run: %v, want ErrNoRun", err)
	}
	write(t, c, "first\n")
	err = Read(t.Context(), c.Dir, Options{Previous: true}, io.Discard)
	if !errors.Is(err, ErrNoRun) {
		t.Errorf("previous of one run: %v, want ErrNoRun", err)
	}
	for _, run := range []string{"1.9.1", "1.10.0"} { // 10 comes after 9
		c.Run = run
		write(t, c, run+"\n")
	}
	if got := read(t, c.Dir, Options{Tail: -1}); got != "1.10.0\n" {
		t.Errorf("present run: %q", got)
	}
	if got := read(t, c.Dir, Options{Tail: -1, Previous: true}); got != "1.9.1\n" {
		t.Errorf("previous run: %q", got)
	}
	runs, err := Runs(c.Dir)
	if err != nil || !slices.Equal(runs, []string{"1.9.1", "1.10.0"}) {
		t.Errorf("runs %v, %v; want the newest two", runs, err)
	}
}

// watched is a writer whose content can be waited for.
type watched struct {
	mu   sync.Mutex
	more sync.Cond
	buf  bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.more.Broadcast()
	return w.buf.Write(p)
}

func (w *watched) until(lines int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for bytes.Count(w.buf.Bytes(), []byte("\n")) < lines {
		w.more.Wait()
	}
}

func TestFollowGoesThroughRotationsToTheEndOfTheRun(t *testing.T) {
	c := config(t, "1.2.0", 2048, 50)
	w := NewWriter(c)
	w.Copy("stdout", strings.NewReader(numbers(0, 100)))
	out := &watched{}
	out.more.L = &out.mu
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { done <- Read(ctx, c.Dir, Options{Tail: 10, Follow: true}, out) }()
	out.until(10)
	w.Copy("stdout", strings.NewReader(numbers(100, 300)))
	out.until(210)
	w.Copy("stdout", strings.NewReader(numbers(300, 310)))
	w.Close()
	if err := <-done; err != nil {
		t.Fatalf("Read ended with %v, want nil at the end of the run", err)
	}
	if got, want := out.buf.String(), numbers(90, 310); got != want {
		t.Errorf("got %d lines, want %d", strings.Count(got, "\n"), strings.Count(want, "\n"))
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	c := config(t, "1.2.0", 0, 0)
	w := NewWriter(c)
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Read(ctx, c.Dir, Options{Follow: true}, io.Discard) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestLossIsToldOnceWritingWorksAgain(t *testing.T) {
	c := config(t, "1.2.0", 0, 0)
	w := NewWriter(c)
	w.Copy("stdout", strings.NewReader("before\n"))
	w.mu.Lock()
	w.file.Close() // every write fails from here
	w.mu.Unlock()
	w.Copy("stdout", strings.NewReader("a\nb\n"))
	w.mu.Lock()
	w.file = nil // and works from here
	w.mu.Unlock()
	w.Copy("stdout", strings.NewReader("after\n"))
	w.Close()
	got := strings.Split(read(t, c.Dir, Options{Tail: -1}), "\n")
	if len(got) != 4 || got[0] != "before" || !strings.Contains(got[1], "2 lines lost") || got[2] != "after" {
		t.Errorf("got %q", got)
	}
}

func TestAWriterGoesOnWhereAnotherWasKilled(t *testing.T) {
	c := config(t, "1.2.0", 0, 0)
	killed := NewWriter(c)
	killed.Copy("stdout", strings.NewReader("one\n"))
	out := &watched{}
	out.more.L = &out.mu
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { done <- Read(ctx, c.Dir, Options{Tail: -1, Follow: true}, out) }()
	out.until(1)
	if _, err := killed.file.Write([]byte("2026-01-01T00:00:00Z stdout half a li")); err != nil {
		t.Fatal(err)
	}
	killed.Close() // as its death does, this lets go of the lock
	next := NewWriter(c)
	next.Note("began anew")
	next.Copy("stdout", strings.NewReader("two\n"))
	next.Close()
	if err := <-done; err != nil {
		t.Fatalf("Read ended with %v, want nil at the end of the run", err)
	}
	if got, want := out.buf.String(), "one\nhalf a li\nstead-node logger: began anew\ntwo\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheLastLineOfARunIsFoundAlsoWhileItsLoggerStillWrites(t *testing.T) {
	c := config(t, "1.2.3", 1<<20, 2)
	for name, want := range map[string]string{
		"":                          "",
		"\n  \n":                    "",
		"one\nsh: foo: not found\n": "sh: foo: not found",
		"panic: no key\n\n \n":      "panic: no key",
		"without a newline":         "without a newline",
	} {
		c.Dir = t.TempDir()
		if name != "" {
			write(t, c, name)
		}
		if got := LastLine(t.Context(), c.Dir, c.Run, 0); got != want {
			t.Errorf("of %q: %q, want %q", name, got, want)
		}
	}

	c.Dir = t.TempDir()
	w := NewWriter(c)
	if err := w.Copy("stdout", strings.NewReader("the first\n")); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() { got <- LastLine(t.Context(), c.Dir, c.Run, time.Minute) }()
	if err := w.Copy("stdout", strings.NewReader("the last\n")); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if line := <-got; line != "the last" {
		t.Errorf("got %q before the logger ended", line)
	}
}
