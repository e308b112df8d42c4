package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// openAll opens the files of a run, oldest first. It starts with the newest, so
// that a rotation in between shows as a file seen twice, not as one missed; and
// looks again when the newest is no longer what it was.
func openAll(run string) ([]*source, error) {
	for {
		files, err := openOnce(run)
		if err != nil || len(files) == 0 {
			return files, err
		}
		now, err := os.Stat(fileName(run, 0))
		was, err2 := files[len(files)-1].Stat()
		if err == nil && err2 == nil && os.SameFile(now, was) {
			return files, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return files, nil // between two files
		}
		closeAll(files)
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("open the log: %w", err)
		}
	}
}

func openOnce(run string) ([]*source, error) {
	var files []*source
	missing := 0
	for n := 0; missing < 2; n++ { // one gap: 0.log, while it is rotated
		f, err := os.Open(fileName(run, n))
		if errors.Is(err, fs.ErrNotExist) {
			missing++
			continue
		}
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("open the log: %w", err)
		}
		if k := len(files); k > 0 && same(files[k-1].File, f) {
			f.Close()
			continue
		}
		files = append(files, &source{File: f})
	}
	slices.Reverse(files)
	return files, nil
}

func same(a, b *os.File) bool {
	x, err1 := a.Stat()
	y, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// seek drops the files and sets the offsets that Tail and Since make needless.
func (r *reader) seek() error {
	if r.opts.Tail >= 0 {
		return r.seekTail(r.opts.Tail)
	}
	for !r.since.IsZero() && len(r.files) > 1 {
		st, err := r.files[0].Stat()
		if err != nil {
			return fmt.Errorf("seek in the log: %w", err)
		}
		if !st.ModTime().Before(r.since) {
			break
		}
		r.files[0].Close()
		r.files = r.files[1:]
	}
	return nil
}

// seekTail goes backwards through the files until it has seen so many lines.
func (r *reader) seekTail(lines int64) error {
	for i := len(r.files) - 1; i >= 0; i-- {
		f := r.files[i]
		seen, err := f.seekBack(lines)
		if err != nil {
			return fmt.Errorf("seek in the log: %w", err)
		}
		lines -= seen
		if lines > 0 {
			continue
		}
		closeAll(r.files[:i])
		r.files = r.files[i:]
		return nil
	}
	return nil
}

// seekBack sets the offset in front of the last lines and returns how many there
// are, at most so many.
func (f *source) seekBack(lines int64) (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, MaxLine)
	pos, seen := st.Size(), int64(-1) // the last newline ends the last line
	for pos > 0 {
		n := min(pos, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], pos-n); err != nil && err != io.EOF {
			return 0, err
		}
		chunk := buf[:n]
		for {
			at := bytes.LastIndexByte(chunk, '\n')
			if at < 0 {
				break
			}
			seen++
			if seen == lines {
				f.offset = pos - n + int64(at) + 1
				return lines, nil
			}
			chunk = chunk[:at]
		}
		pos -= n
	}
	f.offset = 0
	return max(seen+1, 0), nil
}
