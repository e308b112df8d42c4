package worker

import (
	"path/filepath"
	"time"

	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/agent/step"
)

const (
	// causeLogLost: nobody reads what a container writes.
	causeLogLost = "LogLost"
	// muteAfter is how long a logger may be dead before that is told: one of its two
	// processes that was killed is soon started anew by the other.
	muteAfter = 5 * time.Second
)

// logDir is where a container's log lies, of all its runs.
func (w *Worker) logDir(container string) string {
	return filepath.Join(w.c.Root, "logs", string(w.id.Namespace), w.id.MemberName(), container)
}

// hear looks whether the logger of a running container lives.
func (w *Worker) hear(b *box) {
	run := logs.RunName(b.status.Token.Epoch, b.status.Token.Number, b.status.Attempt)
	switch dead := logs.Abandoned(w.logDir(b.status.ID.Name), run); {
	case !dead:
		b.mute = time.Time{}
	case b.mute.IsZero():
		b.mute = time.Now()
	}
}

// isMute: it runs, and its logger has been dead for a while.
func (b *box) isMute() bool {
	return b.seen == step.Running && !b.mute.IsZero() && time.Since(b.mute) >= muteAfter
}
