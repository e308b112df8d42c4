package worker

import (
	"context"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/spec/causes"
)

// loggerDeadAfter is how long a logger may be dead before that is reported: one of its two
// processes that was killed is soon started again by the other.
const loggerDeadAfter = 5 * time.Second

// checkLogger looks whether the logger of a running container lives.
func (w *observer) checkLogger(ctr *container) {
	run := logs.RunName(ctr.status.Token.Epoch, ctr.status.Token.Number, ctr.status.Attempt)
	switch dead := w.c.Files.LoggerDead(w.id, ctr.status.ID.Name, run); {
	case !dead:
		ctr.loggerDead = time.Time{}
	case ctr.loggerDead.IsZero():
		ctr.loggerDead = w.c.Now()
	}
}

// The bounds of what an ended container's log adds to the message about its end.
const (
	lastLineWait  = 300 * time.Millisecond // for the logger to write what it has read
	lastLineBytes = 200
)

// exited says with which code a container exited, and its last line unless it was asked to stop:
// most programs say there what they lack.
func (w *observer) exited(ctx context.Context, st runtime.Status) ending {
	e := ending{causes.Exited, fmt.Sprintf("exited with code %d", st.Exit.Code)}
	if w.order == step.OrderStop {
		return e
	}
	run := logs.RunName(st.Token.Epoch, st.Token.Number, st.Attempt)
	if line := w.c.Files.LastLine(ctx, w.id, st.ID.Name, run); line != "" {
		e.message += "; its last line: " + strconv.Quote(cut(line, lastLineBytes))
	}
	return e
}

// cut is the start of text, at most so many bytes, whole characters only.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// isLoggerDead: it runs, and its logger has been dead for a while.
func (c *container) isLoggerDead(now time.Time) bool {
	return c.seen == step.Running && !c.loggerDead.IsZero() && now.Sub(c.loggerDead) >= loggerDeadAfter
}
