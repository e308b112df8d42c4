package worker

import (
	"context"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/spec"
)

const (
	// muteAfter is how long a logger may be dead before that is told: one of its two
	// processes that was killed is soon started anew by the other.
	muteAfter = 5 * time.Second
)

// hear looks whether the logger of a running container lives.
func (w *Worker) hear(b *box) {
	run := logs.RunName(b.status.Token.Epoch, b.status.Token.Number, b.status.Attempt)
	switch dead := w.c.Files.LoggerDead(w.id, b.status.ID.Name, run); {
	case !dead:
		b.mute = time.Time{}
	case b.mute.IsZero():
		b.mute = w.c.Now()
	}
}

// The bounds of what an ended container's log adds to the message about its end.
const (
	lastLineWait  = 300 * time.Millisecond // for the logger to write what it has read
	lastLineBytes = 200
)

// endOf says why a container ended, with the last line that it wrote: most programs
// say there what they lack.
func (w *Worker) endOf(ctx context.Context, b *box, st runtime.Status) ending {
	e := w.ending(b, st)
	if e.cause != spec.CauseExited || w.order == step.OrderStop {
		return e
	}
	run := logs.RunName(st.Token.Epoch, st.Token.Number, st.Attempt)
	line := w.c.Files.LastLine(ctx, w.id, st.ID.Name, run)
	if line != "" {
		e.message += "; its last line: " + strconv.Quote(cut(line, lastLineBytes))
	}
	return e
}

// cut is the beginning of text, at most so many bytes, whole characters only.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// isMute: it runs, and its logger has been dead for a while.
func (b *box) isMute(now time.Time) bool {
	return b.seen == step.Running && !b.mute.IsZero() && now.Sub(b.mute) >= muteAfter
}
