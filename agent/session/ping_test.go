package session

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stead-project/stead/proto"
)

// woken counts how often all workers are woken.
type woken struct {
	Workers
	times int
}

func (w *woken) Confirmed() { w.times++ }

// TestEveryConfirmationWakesTheWorkers: also one that leaves open whether members were shown
// all, for a guarded life may wait for its deadline to move.
func TestEveryConfirmationWakesTheWorkers(t *testing.T) {
	for _, current := range []bool{true, false} {
		workers := &woken{}
		log := slog.New(slog.DiscardHandler)
		c := &Client{cfg: Config{Workers: workers, Known: OpenKnown(Tmpfs(t.TempDir()), log), Now: time.Now}, contact: contact{now: time.Now}}
		s := &Session{c: c, ttl: time.Minute, unanswered: map[int64]time.Duration{1: time.Hour}}
		s.answered(&proto.Pong{Id: 1, Current: current})
		if workers.times != 1 {
			t.Errorf("current %v: the workers are woken %d times", current, workers.times)
		}
		want := time.Duration(0)
		if current {
			want = time.Hour + time.Minute
		}
		if got := c.ConfirmedUntil(); got != want {
			t.Errorf("current %v: what members read is confirmed until %s, want %s", current, got, want)
		}
		s.answered(&proto.Pong{Id: 1, Current: current})
		if workers.times != 1 {
			t.Error("a pong that nobody waits for wakes the workers")
		}
	}
}
