package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func open(t *testing.T, dir string) *Trail {
	t.Helper()
	l, err := Open(Config{Dir: dir, Bytes: MinBytes, Server: "s1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// details are those of all entries from since on.
func details(t *testing.T, l *Trail, since time.Time) (all []string) {
	t.Helper()
	err := l.Read(t.Context(), since, false, nil, func(_ time.Time, line []byte) error {
		var e Line
		if err := json.Unmarshal(line, &e); err != nil {
			t.Errorf("a line that is none: %q", line)
		}
		all = append(all, e.Detail)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEntriesOutliveARestartAndABrokenLine(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	l.Write(Line{Detail: "first"})
	f, err := os.OpenFile(filepath.Join(dir, "audit.log"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"at":"2026-01-0`); err != nil { // the power failed
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir)
	l.Write(Line{Detail: "second"})
	if got := details(t, l, time.Time{}); strings.Join(got, " ") != "first second" {
		t.Errorf("got %q", got)
	}
	if got := details(t, l, time.Now().Add(time.Hour)); len(got) != 0 {
		t.Errorf("of the future there are %q", got)
	}
	for _, path := range []string{dir, filepath.Join(dir, "audit.log")} {
		if info, err := os.Stat(path); err != nil || path != dir && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
}

// TestTheOldestEntriesGoFirst: what is kept stays below the bound, and is the newest, without a gap.
func TestTheOldestEntriesGoFirst(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	const all = 20_000
	for i := range all {
		l.Write(Line{Detail: fmt.Sprint(i)})
	}
	var size int64
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != files {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	got := details(t, l, time.Time{})
	if size > MinBytes || size < MinBytes/2 || l.Lost() != 0 {
		t.Errorf("%d bytes are kept, %d entries lost", size, l.Lost())
	}
	for i, d := range got {
		if want := fmt.Sprint(all - len(got) + i); d != want {
			t.Fatalf("entry %d of %d is %s, want %s", i, len(got), d, want)
		}
	}
	if len(got) < 1000 {
		t.Errorf("only %d entries are kept", len(got))
	}
}

// TestAnEntryIsBounded: whatever somebody calls an object, his entry is one short line.
func TestAnEntryIsBounded(t *testing.T) {
	l := open(t, t.TempDir())
	long := strings.Repeat("\x1b[2J\n<é", 10_000)
	var objects []string
	for range 1000 {
		objects = append(objects, long)
	}
	l.Write(Line{Who: long, User: long, From: long, Verb: long, Objects: objects, Detail: long, Error: long})
	count := 0
	err := l.Read(t.Context(), time.Time{}, false, nil, func(_ time.Time, line []byte) error {
		count++
		var e Line
		if err := json.Unmarshal(line, &e); err != nil || len(line) > MinBytes/files || strings.ContainsAny(e.Detail, "\x1b\n") || e.Objects[maxObjects] != "and 936 more" {
			t.Errorf("%d bytes: %v", len(line), err)
		}
		return nil
	})
	if err != nil || count != 1 || l.Lost() != 0 {
		t.Errorf("%d entries, %d lost, %v", count, l.Lost(), err)
	}
}

// TestWhatCannotBeWrittenIsCounted: nothing waits for it, and there are entries again once there is room.
func TestWhatCannotBeWrittenIsCounted(t *testing.T) {
	l := open(t, t.TempDir())
	good := l.file
	var err error
	if l.file, err = os.Open("/dev/null"); err != nil { // it takes nothing
		t.Fatal(err)
	}
	l.Write(Line{Detail: "lost"})
	l.Write(Line{Detail: "lost"})
	l.file = good
	l.Write(Line{Detail: "kept"})
	if got := details(t, l, time.Time{}); l.Lost() != 2 || strings.Join(got, " ") != "kept" {
		t.Errorf("%d lost, got %q", l.Lost(), got)
	}
}

// TestWhoFollowsMissesNothing: neither between what is there and what comes, nor when files are full meanwhile.
func TestWhoFollowsMissesNothing(t *testing.T) {
	l := open(t, t.TempDir())
	const all = 5000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writing sync.WaitGroup
	defer writing.Wait()
	turn := make(chan struct{}, waiting/2) // nobody is slow
	writing.Go(func() {
		for i := range all {
			select {
			case turn <- struct{}{}:
			case <-ctx.Done():
				return
			}
			l.Write(Line{Detail: fmt.Sprint(i)})
		}
	})
	next, synced := -1, 0
	err := l.Read(ctx, time.Time{}, true, func() error { synced++; return nil }, func(_ time.Time, line []byte) error {
		var e Line
		if err := json.Unmarshal(line, &e); err != nil {
			t.Error(err)
		}
		var i int
		if _, err := fmt.Sscan(e.Detail, &i); err != nil || next >= 0 && i != next {
			t.Errorf("after %d came %q", next-1, e.Detail)
		}
		<-turn
		next = i + 1
		if next == all {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || synced != 1 || next != all {
		t.Errorf("it ended with %v after %d, synced %d times", err, next, synced)
	}
}

func TestWhoIsTooSlowIsTold(t *testing.T) {
	l := open(t, t.TempDir())
	err := l.Read(t.Context(), time.Time{}, true, func() error {
		for range waiting + 1 {
			l.Write(Line{})
		}
		return nil
	}, func(time.Time, []byte) error { return nil })
	if !errors.Is(err, ErrSlow) {
		t.Errorf("got %v", err)
	}
	if len(l.followers) != 0 {
		t.Error("it is still written to")
	}
}
