package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stead-project/stead/internal/backoff"
)

const (
	// DefaultBytes is how much is kept unless Config says other.
	DefaultBytes = 128 << 20
	// MinBytes is the least that may be kept.
	MinBytes = 1 << 20
	// files are how many there are at most; the oldest goes when the newest is full.
	files = 8
	// syncEvery is how long an entry may be on its way to the disk.
	syncEvery = time.Second
	// waiting is how many entries may wait for somebody who follows.
	waiting = 1024
)

// ErrSlow: entries came faster than they were read.
var ErrSlow = errors.New("entries came faster than they were read; read again from the last one")

// Config is where entries are kept.
type Config struct {
	Dir string
	// Bytes bounds all files together; at least MinBytes.
	Bytes  int64
	Server string
	Logger *slog.Logger
}

// Trail is the files of one server: audit.log, and audit.log.1 to .7, from newer to older.
type Trail struct {
	cfg  Config
	lost atomic.Int64

	mu        sync.Mutex
	file      *os.File
	size      int64
	unsynced  bool
	failing   bool
	followers map[chan []byte]struct{}
}

// Open continues the files in a directory, which is made with mode 0700.
func Open(cfg Config) (*Trail, error) {
	if cfg.Bytes < MinBytes {
		return nil, fmt.Errorf("audit log of %d bytes: at least %d", cfg.Bytes, MinBytes)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l := &Trail{cfg: cfg, followers: map[chan []byte]struct{}{}}
	return l, l.open()
}

func (l *Trail) path(i int) string {
	if i == 0 {
		return filepath.Join(l.cfg.Dir, "audit.log")
	}
	return filepath.Join(l.cfg.Dir, "audit.log."+strconv.Itoa(i))
}

// open continues the newest file. A line that a power failure broke off is ended, so that the next is one of its own.
func (l *Trail) open() error {
	f, err := os.OpenFile(l.path(0), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	last := []byte{'\n'}
	if err == nil && size > 0 {
		_, err = f.ReadAt(last, size-1)
	}
	if err == nil && last[0] != '\n' {
		_, err = f.Write([]byte{'\n'})
		size++
	}
	if err != nil {
		return errors.Join(fmt.Errorf("audit log: %w", err), f.Close())
	}
	l.file, l.size = f, size
	return nil
}

// Lost is how many entries could not be written since the start.
func (l *Trail) Lost() int64 { return l.lost.Load() }

// Write keeps an entry. It never fails a call: what cannot be written is counted, and the log of the server says so.
func (l *Trail) Write(e Line) {
	e.At, e.Server = time.Now().UTC(), l.cfg.Server
	e.bound()
	line, err := json.Marshal(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		err = l.write(append(line, '\n'))
	}
	if err == nil {
		l.failing = false
		return
	}
	l.lost.Add(1)
	if !l.failing {
		l.failing = true
		l.cfg.Logger.Error("audit log not written: entries are lost until there is room", "err", err)
	}
}

func (l *Trail) write(line []byte) error {
	if l.file == nil || l.size+int64(len(line)) > l.cfg.Bytes/files {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	if err != nil {
		_ = l.file.Truncate(l.size - int64(n)) // a part of a line
		l.size -= int64(n)
		return err
	}
	l.unsynced = true
	for to := range l.followers {
		select {
		case to <- line:
		default:
			delete(l.followers, to)
			close(to)
		}
	}
	return nil
}

func (l *Trail) rotate() error {
	if l.file != nil {
		err := errors.Join(l.file.Sync(), l.file.Close())
		l.file = nil
		if err != nil {
			return err
		}
	}
	for i := files - 1; i > 0; i-- {
		if err := os.Rename(l.path(i-1), l.path(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.open()
}

// Run brings what is written to the disk, until ctx ends; then it closes the file.
func (l *Trail) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		backoff.Sleep(ctx, syncEvery)
		l.mu.Lock()
		if l.unsynced && l.file != nil {
			if err := l.file.Sync(); err != nil {
				l.cfg.Logger.Error("audit log not synced", "err", err)
			}
			l.unsynced = false
		}
		l.mu.Unlock()
	}
	return nil
}

// Read sends each line from since on, oldest first, without its end; with follow it calls synced then, and goes on with what comes
// until ctx ends. Errors: ErrSlow, those of send.
func (l *Trail) Read(ctx context.Context, since time.Time, follow bool, synced func() error, send func(at time.Time, line []byte) error) error {
	there, next, err := l.begin(follow)
	defer func() {
		for _, f := range there {
			_ = f.Close() // it was read only
		}
		l.unfollow(next)
	}()
	if err != nil {
		return err
	}
	pass := func(line []byte) error {
		var e Line
		if json.Unmarshal(line, &e) != nil || e.At.Before(since) {
			return nil
		}
		return send(e.At, line)
	}
	for _, f := range there {
		lines := bufio.NewScanner(f)
		for lines.Buffer(nil, MinBytes/files); lines.Scan(); {
			if err := pass(bytes.Clone(lines.Bytes())); err != nil || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
		}
	}
	if !follow {
		return nil
	}
	if err := synced(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, open := <-next:
			if !open {
				return ErrSlow
			}
			if err := pass(bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
				return err
			}
		}
	}
}

// reading is a file up to where it came when it was opened.
type reading struct {
	io.Reader
	io.Closer
}

// begin opens the files, oldest first, and has next get what is written after that.
func (l *Trail) begin(follow bool) (there []reading, next chan []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := files - 1; i >= 0; i-- {
		f, err := os.Open(l.path(i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return there, nil, err
		}
		info, err := f.Stat()
		if err != nil {
			return append(there, reading{f, f}), nil, err
		}
		there = append(there, reading{io.LimitReader(f, info.Size()), f})
	}
	if follow {
		next = make(chan []byte, waiting)
		l.followers[next] = struct{}{}
	}
	return there, next, nil
}

func (l *Trail) unfollow(next chan []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.followers, next)
}
