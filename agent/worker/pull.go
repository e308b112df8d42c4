package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/spec"
)

// ensureImage makes the image of a container present. As in Kubernetes 1.33, the Secrets of
// imagePullSecrets count only when it is pulled: it is tried without those that are not there.
func (w *actor) ensureImage(ctx context.Context, c *spec.Container, ctr *container) error {
	found, unreadable := files.CredentialsOf(w.life, w.c.Find)
	w.pulledWith = found.Print
	progress := &runtime.PullProgress{}
	defer w.reportPull(c, progress)()
	_, err := w.c.Runtime.EnsureImage(ctx, runtime.Pull{
		Image: c.Image, Policy: c.ImagePullPolicy, Progress: progress,
		Credentials: func() ([]registry.Login, error) {
			if text := found.UnusedText(); text != "" {
				w.log.Warn("image pulled without a Secret of imagePullSecrets", "token", w.token, "image", c.Image, "reason", text)
			}
			return found.Keyring.For(c.Image), unreadable
		},
	})
	ctr.image = err == nil
	if text := found.UnusedText(); text != "" && c.ImagePullPolicy != spec.PullNever &&
		(errors.Is(err, runtime.ErrImagePull) || errors.Is(err, runtime.ErrImageMissing)) {
		return fmt.Errorf("%w; of imagePullSecrets, %s", err, text)
	}
	return err
}

// Progress of a pull is reported after pullReportTime, for most are over by then, and again when a
// tenth more has come, or after pullSilence, but never sooner: each report is a write of the store.
const (
	pullReportTime = 10 * time.Second
	pullSilence    = time.Minute
)

// reportPull repeats the life's last report with how far the pull of a container's image is, now and
// then until stop is called.
func (w *actor) reportPull(c *spec.Container, p *runtime.PullProgress) (stop func()) {
	var cancel func() bool
	ended, tenths, reported := false, int64(-1), time.Time{} // guarded by mu, as cancel
	where := title(c.Name, w.role(c.Name))
	var look func()
	look = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if ended {
			return
		}
		if now, is := w.c.Now(), p.Tenths(); is > tenths || now.Sub(reported) >= pullSilence {
			tenths, reported = is, now
			w.reportPulling(where + ": " + p.Text(c.Image))
		}
		cancel = w.c.after(pullReportTime, look)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	cancel = w.c.after(pullReportTime, look)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		ended = true
		cancel()
	}
}

// retryPulls ends the back-off of pulls that failed with other Secrets than those that are known
// now: what was applied since may be the repair.
func (w *observer) retryPulls() {
	if w.life == nil {
		return
	}
	// One that cannot be read has a print, too.
	found, _ := files.CredentialsOf(w.life, w.c.Find)
	maps.DeleteFunc(w.held, func(key holdKey, h *hold) bool { return key.op == step.EnsureImage && h.secrets != found.Print })
}
