package etcdembed

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logs passes etcd's warnings and errors to slog. While it starts only errors
// pass: its warnings then are about choices made here (no peers, one URL).
type logs struct {
	to    *slog.Logger
	loud  *atomic.Bool
	gone  *atomic.Bool // etcd has said that its member was removed
	back  *signal      // others have more of the member's log than it has itself
	ends  *atomic.Bool // it is being closed
	given []zapcore.Field
}

// signal is given once.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func (s *signal) give() { s.once.Do(func() { close(s.c) }) }

func (s *signal) given() bool {
	select {
	case <-s.c:
		return true
	default:
		return false
	}
}

func newLogs(to *slog.Logger) *logs {
	return &logs{to: to, loud: new(atomic.Bool), gone: new(atomic.Bool), back: &signal{c: make(chan struct{})}, ends: new(atomic.Bool)}
}

func (l *logs) speakUp() { l.loud.Store(true) }

// zap is the logger for etcd. A fatal entry ends the process, as etcd expects.
func (l *logs) zap() *zap.Logger { return zap.New(l, zap.WithPanicHook(l)) }

// OnWrite implements zapcore.CheckWriteHook: an entry with which etcd panics. A member whose log is shorter than what it has
// acknowledged stops there for good, as with a panic: it votes and acknowledges no more. The process ends in order, and says why.
func (l *logs) OnWrite(entry *zapcore.CheckedEntry, _ []zapcore.Field) {
	if !strings.HasPrefix(entry.Message, shortLog) {
		panic(entry.Message)
	}
	l.back.give()
	select {}
}

// shortLog is how raft's last word begins when the leader counts on entries that the member does not have.
const shortLog = "tocommit("

// Enabled implements zapcore.Core.
func (l *logs) Enabled(level zapcore.Level) bool {
	return level >= zapcore.WarnLevel
}

// With implements zapcore.Core.
func (l *logs) With(fields []zapcore.Field) zapcore.Core {
	return &logs{to: l.to, loud: l.loud, gone: l.gone, back: l.back, ends: l.ends, given: append(slices.Clone(l.given), fields...)}
}

// Check implements zapcore.Core.
func (l *logs) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(entry.Level) {
		return to.AddCore(entry, l)
	}
	return to
}

// Write implements zapcore.Core.
func (l *logs) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range slices.Concat(l.given, fields) {
		f.AddTo(values)
	}
	var text strings.Builder
	text.WriteString(entry.Message)
	for _, key := range slices.Sorted(maps.Keys(values.Fields)) {
		fmt.Fprintf(&text, " %s=%v", key, values.Fields[key])
	}
	if strings.Contains(text.String(), removed) {
		l.gone.Store(true)
	}
	if strings.HasPrefix(entry.Message, shortLog) {
		return nil // Embedded.Why says it
	}
	if l.ends.Load() && (strings.Contains(text.String(), net.ErrClosed.Error()) || strings.Contains(text.String(), "erver closed")) {
		return nil // its listener, and what it serves, was closed, as it should be
	}
	if strings.Contains(text.String(), young) || entry.Level < zapcore.ErrorLevel && !l.loud.Load() {
		return nil
	}
	if entry.Level >= zapcore.ErrorLevel {
		l.to.Error("embedded etcd failed", "err", text.String())
	} else {
		l.to.Warn("embedded etcd warned", "err", text.String())
	}
	return nil
}

// removed is what etcd says before it stops because others have removed its member, which
// this one may not have learnt from its own log; it says so nowhere else.
const removed = "server error error=the member has been permanently removed"

// young is what etcd says, as warning and error, of a store so new that its backend
// has not been flushed once; it looks again after 4 s.
const young = "missing term information"

// Sync implements zapcore.Core.
func (l *logs) Sync() error { return nil }
