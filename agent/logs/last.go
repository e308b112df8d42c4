package logs

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"time"
)

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
	lines := strings.Split(out.String(), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if text := strings.TrimSpace(lines[i]); text != "" {
			return text
		}
	}
	return ""
}
