package worker

import (
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec/causes"
)

// Progress of what may take long is reported after progressTime, for most is over by then, and again when
// a tenth more is done, or after progressSilence, but never sooner: each report is a write of the store.
const (
	progressTime    = 10 * time.Second
	progressSilence = time.Minute
)

// reportProgress repeats the life's last report with cause and how far the operation is, now and then until
// stop is called. Without a text nothing is reported.
func (w *actor) reportProgress(cause causes.Cause, tenths func() int64, text func() string) (stop func()) {
	var cancel func() bool
	ended, before, reported := false, int64(-1), time.Time{} // guarded by mu, as cancel
	var look func()
	look = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if ended {
			return
		}
		if now, is, says := w.c.Now(), tenths(), text(); says != "" && (is > before || now.Sub(reported) >= progressSilence) {
			before, reported = is, now
			w.reportWork(cause, says)
		}
		cancel = w.c.after(progressTime, look)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	cancel = w.c.after(progressTime, look)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		ended = true
		cancel()
	}
}

// reportGiving is reportProgress for volumes that are given to a group, which may be nil.
func (w *actor) reportGiving(g *runtime.Group) (stop func()) {
	if g == nil {
		return func() {}
	}
	return w.reportProgress(causes.VolumeGroup, func() int64 { return 0 }, g.Progress.Text)
}
