package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const facts = "/run/stead"

// event is a line of the file events.
type event struct {
	Epoch, Number        int64
	Kind, Member, Reason string
}

// follow prints each event of the set once, as docs/MEMBERS.md says a reader does: it
// is woken by the directory, and knows by the last number what it has seen.
func follow(ctx context.Context, _ []string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err := unix.InotifyAddWatch(fd, facts, unix.IN_MOVED_TO); err != nil {
		return err
	}
	var last event
	for ctx.Err() == nil {
		if last, err = printNew(last); err != nil {
			return err
		}
		if err := woken(fd); err != nil {
			return err
		}
	}
	return nil
}

func printNew(last event) (event, error) {
	b, err := os.ReadFile(filepath.Join(facts, "events"))
	if os.IsNotExist(err) {
		return last, nil
	}
	if err != nil {
		return last, err
	}
	for line := range bytes.Lines(b) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return last, fmt.Errorf("%q: %w", line, err)
		}
		if e.Epoch < last.Epoch || e.Epoch == last.Epoch && e.Number <= last.Number {
			continue
		}
		if last.Number != 0 && (e.Epoch != last.Epoch || e.Number != last.Number+1) {
			fmt.Println("gap")
		}
		fmt.Println("event", e.Number, e.Kind, e.Member, e.Reason)
		last = e
	}
	return last, nil
}

// woken blocks until events was replaced.
func woken(fd int) error {
	buf := make([]byte, 4096)
	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if bytes.Contains(buf[:n], []byte("events\x00")) {
			return nil
		}
	}
}
