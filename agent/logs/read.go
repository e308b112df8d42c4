package logs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// pollEvery is how often a follower looks for more.
const pollEvery = 150 * time.Millisecond

// endLooks is how often in a row a run must look ended: a writer that was killed is
// soon followed by another.
const endLooks = 8

// Options say what Read shows.
type Options struct {
	// Tail is how many of the last lines to start with; negative: all of them.
	Tail int64
	// Follow reads until the run is over.
	Follow bool
	// Previous reads the run before the present one.
	Previous bool
	// Since leaves out older lines; zero: none. Lines of Tail are counted before.
	Since time.Time
	// Timestamps leaves the time in front of each line.
	Timestamps bool
}

// Read writes the lines of the newest run below a container's log directory to w,
// across rotated files, each with a newline and without its stream's name. With
// Follow it continues through rotations and returns nil when the run's logger has
// ended, or ctx's error. ErrNoRun: there is nothing to read.
func Read(ctx context.Context, dir string, o Options, w io.Writer) error {
	run, err := pick(dir, o.Previous)
	if err != nil {
		return err
	}
	files, err := openAll(run)
	if err != nil {
		return err
	}
	r := &reader{run: run, files: files, out: w, opts: o, since: o.Since}
	defer r.close()
	if err := r.seek(); err != nil {
		return err
	}
	for quiet := 0; ; {
		// Ended is asked before the last look, so that nothing is left behind.
		quiet++
		if !ended(run) {
			quiet = 0
		}
		over := !o.Follow || quiet == endLooks
		if err := r.drain(ctx); err != nil || over {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// pick returns the directory of the newest run or the one before.
func pick(dir string, previous bool) (string, error) {
	runs, err := Runs(dir)
	if err != nil {
		return "", err
	}
	at := len(runs) - 1
	if previous {
		at--
	}
	if at < 0 {
		return "", ErrNoRun
	}
	return filepath.Join(dir, runs[at]), nil
}

// ended reports whether the run's logger is gone. A run without a lock file has
// just started, or was never locked: a newer run ends it.
func ended(run string) bool {
	f, err := os.Open(filepath.Join(run, lockName))
	if err != nil {
		runs, err := Runs(filepath.Dir(run))
		return err != nil || len(runs) == 0 || runs[len(runs)-1] != filepath.Base(run)
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil
}

// Abandoned reports that the logger of a run had started to write, and is gone now.
func Abandoned(dir, run string) bool {
	at := filepath.Join(dir, run)
	_, err := os.Stat(filepath.Join(at, lockName))
	return err == nil && ended(at)
}

// reader reads the files of one run from oldest to newest.
type reader struct {
	run   string
	files []*source // oldest first; the first is being read
	out   io.Writer
	opts  Options
	since time.Time // zero as soon as one line was young enough
	buf   []byte
}

// source is one open log file and how far it was read.
type source struct {
	*os.File
	offset int64
}

func (r *reader) close() { closeAll(r.files) }

func closeAll(files []*source) {
	for _, f := range files {
		f.Close()
	}
}

// drain copies all that is there now, following rotations.
func (r *reader) drain(ctx context.Context) error {
	for {
		if len(r.files) == 0 || len(r.files) == 1 && r.opts.Follow {
			if err := r.more(); err != nil {
				return err
			}
		}
		if len(r.files) == 0 {
			return nil
		}
		// The writer leaves a file for good before it makes the next one, so when
		// there is a next one, this one is complete.
		if err := r.copy(ctx, r.files[0]); err != nil {
			return err
		}
		if len(r.files) == 1 {
			return nil
		}
		r.files[0].Close()
		r.files = r.files[1:]
	}
}

// more appends the files that came after the one being read. If that one is no
// longer among the files, all of them are newer.
func (r *reader) more() error {
	all, err := openAll(r.run)
	if err != nil {
		return err
	}
	newer := 0
	if len(r.files) == 1 {
		for i, f := range all {
			if same(r.files[0].File, f.File) {
				newer = i + 1
			}
		}
	}
	closeAll(all[:newer])
	r.files = append(r.files, all[newer:]...)
	return nil
}

// copy writes the complete lines that f has beyond its offset.
func (r *reader) copy(ctx context.Context, f *source) error {
	if r.buf == nil {
		r.buf = make([]byte, 2*MaxLine)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.ReadAt(r.buf, f.offset)
		if err != nil && err != io.EOF {
			return fmt.Errorf("read %s: %w", f.Name(), err)
		}
		end := bytes.LastIndexByte(r.buf[:n], '\n') + 1
		if end == 0 && n == len(r.buf) {
			end = n // not written by us
		}
		if end == 0 {
			return nil
		}
		if err := r.print(r.buf[:end]); err != nil {
			return err
		}
		f.offset += int64(end)
	}
}

// print writes lines as the options ask.
func (r *reader) print(lines []byte) error {
	var out bytes.Buffer
	for line := range bytes.Lines(lines) {
		stamp, rest, ok := bytes.Cut(line, []byte(" "))
		if _, text, cut := bytes.Cut(rest, []byte(" ")); ok && cut {
			rest = text
		}
		if !r.since.IsZero() {
			if at, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil && at.Before(r.since) {
				continue
			}
			r.since = time.Time{}
		}
		if r.opts.Timestamps {
			out.Write(stamp)
			out.WriteByte(' ')
		}
		out.Write(rest)
	}
	if _, err := r.out.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	return nil
}

// lastLook is how often LastLine looks whether the logger has written all.
const lastLook = 10 * time.Millisecond

// LastLine is the last line with any text that a run of a container wrote, without its
// time and stream; empty when there is none. The logger writes on for a moment after the
// container's end: LastLine waits for that, at most for patience.
func LastLine(ctx context.Context, dir, run string, patience time.Duration) string {
	at := filepath.Join(dir, run)
	for waited := time.Duration(0); !ended(at) && waited < patience && ctx.Err() == nil; waited += lastLook {
		select {
		case <-ctx.Done():
		case <-time.After(lastLook):
		}
	}
	files, err := openAll(at)
	if err != nil {
		return ""
	}
	var out bytes.Buffer
	r := &reader{run: at, files: files, out: &out, opts: Options{Tail: 5}}
	defer r.close()
	if r.seek() != nil || r.drain(ctx) != nil {
		return ""
	}
	for _, line := range slices.Backward(strings.Split(out.String(), "\n")) {
		if text := strings.TrimSpace(line); text != "" {
			return text
		}
	}
	return ""
}
