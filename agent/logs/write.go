package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Writer writes the log of one run. It never fails: what cannot be written is
// dropped and counted, and a line reports the loss once writing works again,
// because a logger that gives up kills its container with SIGPIPE. Safe for
// concurrent use.
type Writer struct {
	cfg  Config
	dir  string
	mu   sync.Mutex
	file *os.File // nil: to be opened
	lock *os.File // held as long as the writer lives
	size int64
	buf  bytes.Buffer
	held int64 // lines in buf
	lost int64 // lines dropped since the last success
	why  error
}

// NewWriter makes the run's directory, removes the runs that are too old and
// starts writing. What fails is tried again later.
func NewWriter(cfg Config) *Writer {
	w := &Writer{cfg: cfg, dir: filepath.Join(cfg.Dir, cfg.Run)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.why = w.open()
	w.prune()
	return w
}

// Copy writes all lines of r as lines of stream (stdout or stderr), until r ends.
// A last line without newline is written too. It returns what r failed with; nil
// at its end.
func (w *Writer) Copy(stream string, r io.Reader) error {
	buf := make([]byte, MaxLine)
	fill := 0
	for {
		n, err := r.Read(buf[fill:])
		fill += n
		rest := w.write(stream, buf[:fill], err != nil)
		fill = copy(buf, rest)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", stream, err)
		}
	}
}

// Note writes a line of the logger's own.
func (w *Writer) Note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line(time.Now().UTC(), "stderr", []byte("stead-node logger: "+text))
	w.flush()
}

// Close ends the run: readers that follow it see its end.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	w.file.Close() // of nil it does nothing
	w.lock.Close()
	w.file, w.lock = nil, nil
}

// write writes the complete lines of text and returns the rest; a rest that is as
// long as a line may get, or final, is written as a line, too.
func (w *Writer) write(stream string, text []byte, final bool) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now().UTC()
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			break
		}
		w.line(now, stream, text[:end])
		text = text[end+1:]
	}
	if len(text) == MaxLine || final && len(text) > 0 {
		w.line(now, stream, text)
		text = nil
	}
	w.flush()
	return text
}

// line adds one line to the batch, into a new file if this one is full.
func (w *Writer) line(at time.Time, stream string, text []byte) {
	need := int64(len(text) + len(time.RFC3339Nano) + len(stream) + 3)
	if have := w.size + int64(w.buf.Len()); have > 0 && have+need > w.cfg.FileBytes {
		w.flush()
		w.rotate()
	}
	w.buf.Write(at.AppendFormat(w.buf.AvailableBuffer(), time.RFC3339Nano))
	w.buf.WriteByte(' ')
	w.buf.WriteString(stream)
	w.buf.WriteByte(' ')
	w.buf.Write(text)
	w.buf.WriteByte('\n')
	w.held++
}

// flush writes the batch or drops it, and reports an earlier loss.
func (w *Writer) flush() {
	if w.held == 0 && w.lost == 0 {
		return
	}
	if err := w.put(); err != nil {
		w.lost += w.held
		w.why = err
	}
	w.buf.Reset()
	w.held = 0
}

func (w *Writer) put() error {
	if err := w.open(); err != nil {
		return err
	}
	out := w.buf.Bytes()
	if w.lost > 0 {
		out = append(fmt.Appendf(nil, "%s stderr stead-node logger: %d lines lost: %v\n",
			time.Now().UTC().Format(time.RFC3339Nano), w.lost, oneLine(w.why)), out...)
	}
	if _, err := w.file.Write(out); err != nil {
		// Half a line would spoil the next one.
		if cut := w.file.Truncate(w.size); cut != nil {
			err = errors.Join(err, cut)
		}
		return err
	}
	w.size += int64(len(out))
	w.lost, w.why = 0, nil
	return nil
}

func oneLine(err error) string {
	if err == nil {
		return "unknown"
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// rotate makes 0.log 1.log and so on, and drops the oldest.
func (w *Writer) rotate() {
	if w.file == nil {
		return // it could not be opened: nothing to rotate
	}
	w.file.Close()
	w.file, w.size = nil, 0
	for n := w.cfg.Files - 1; n > 0; n-- {
		// A gap after an earlier failure is no harm.
		if err := os.Rename(fileName(w.dir, n-1), fileName(w.dir, n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.why = err
		}
	}
	if w.cfg.Files == 1 {
		w.why = os.Remove(fileName(w.dir, 0))
	}
}

// open opens 0.log for appending, unless it is open, and takes the run's lock.
func (w *Writer) open() error {
	if w.file != nil {
		return nil
	}
	if err := os.MkdirAll(w.dir, 0o750); err != nil {
		return err
	}
	if w.lock == nil {
		lock, err := takeLock(w.dir)
		if err != nil {
			return err
		}
		w.lock = lock
	}
	f, err := os.OpenFile(fileName(w.dir, 0), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	size, err := endLine(f)
	if err != nil {
		f.Close()
		return err
	}
	w.file, w.size = f, size
	return nil
}

// endLine ends a line that a writer before this one left unfinished, and returns the
// file's size.
func endLine(f *os.File) (int64, error) {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return 0, err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, st.Size()-1); err != nil || last[0] == '\n' {
		return st.Size(), err
	}
	_, err = f.Write([]byte("\n"))
	return st.Size() + 1, err
}

// takeLock makes a lock file that is held from the moment it can be seen.
func takeLock(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".lock-")
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, lockName))
	}
	if err != nil {
		os.Remove(f.Name())
		f.Close()
		return nil, err
	}
	return f, nil
}

// prune removes all but the newest runs, and never its own.
func (w *Writer) prune() {
	runs, err := Runs(w.cfg.Dir)
	if err != nil || len(runs) <= keepRuns {
		return
	}
	for _, run := range runs[:len(runs)-keepRuns] {
		if run != w.cfg.Run {
			// What cannot be removed now is tried at the next run.
			_ = os.RemoveAll(filepath.Join(w.cfg.Dir, run))
		}
	}
}
