package worker

import (
	"context"
	"maps"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/registry"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// ensureImage makes the image of a container present. As in Kubernetes 1.33, the Secrets of
// imagePullSecrets count only when it is pulled: it is tried without those that are not there.
func (w *actor) ensureImage(ctx context.Context, c *spec.Container, ctr *container) error {
	progress := &runtime.PullProgress{}
	where := title(c.Name, w.role(c.Name))
	defer w.reportProgress(causes.Pulling, progress.Tenths, func() string { return where + ": " + progress.Text(c.Image) })()
	err := w.pullOf(c, progress)(ctx)
	ctr.image = err == nil
	return err
}

// pullOf makes the image of a container present, with the Secrets that are there now. It may be called from any goroutine.
func (w *actor) pullOf(c *spec.Container, progress *runtime.PullProgress) func(context.Context) error {
	found, unreadable := files.CredentialsOf(w.life, w.c.Find)
	token := w.token
	w.pulledWith = found.Print
	return func(ctx context.Context) error {
		_, err := w.c.Runtime.EnsureImage(ctx, runtime.Pull{
			Image: c.Image, Policy: c.ImagePullPolicy, Progress: progress,
			Credentials: func() ([]registry.Login, error) {
				if text := found.UnusedText(); text != "" {
					w.log.Warn("image pulled without a Secret of imagePullSecrets", "token", token, "image", c.Image, "reason", text)
				}
				return found.Keyring.For(c.Image), unreadable
			},
		})
		return found.Explain(err, c.ImagePullPolicy)
	}
}

// pullRun is a pull that goes on beside the turns, for a container that is there and whose image changes.
type pullRun struct {
	cancel  context.CancelFunc
	image   string
	secrets string    // files.Credentials.Print of what it is tried with
	longAt  time.Time // then it takes so long that it is reported
}

// pullEnd says that one has ended.
type pullEnd struct {
	container string
	run       *pullRun
	err       error
}

func (w *actor) beginPull(ctx context.Context, name string) {
	c, ctr := w.template(name), w.container(name)
	if c == nil {
		return
	}
	pull := w.pullOf(c, &runtime.PullProgress{})
	ctx, cancel := context.WithTimeout(ctx, pullTime)
	run := &pullRun{cancel: cancel, image: c.Image, secrets: w.pulledWith, longAt: w.c.Now().Add(progressTime)}
	ctr.endPull()
	ctr.pull = run
	w.background.Pull(ctx, func(ctx context.Context) {
		err := pull(ctx)
		cancel()
		w.note(func(e *pendingEvents) { e.pulls = append(e.pulls, pullEnd{name, run, err}) })
	})
}

// takePullEnds takes in which pulls have ended, but for those of images that are not wanted any more.
func takePullEnds(w *observer, ends []pullEnd) {
	for _, e := range ends {
		ctr := w.container(e.container)
		if ctr.pull != e.run {
			continue
		}
		ctr.pull, ctr.image, w.pulledWith = nil, e.err == nil, e.run.secrets
		noteOutcome(w.subject, step.Op{Kind: step.EnsureImage, Container: e.container}, e.err)
	}
}

// endPull breaks off a pull beside the turns, if there is one.
func (c *container) endPull() {
	if c.pull != nil {
		c.pull.cancel()
	}
	c.pull = nil
}

// pulls reports whether such a pull is under way, with a sentence if it takes long.
func (c *container) pulls(now time.Time) (under bool, text string) {
	if c.pull != nil && !now.Before(c.pull.longAt) {
		text = "image " + c.pull.image + " is being pulled"
	}
	return c.pull != nil, text
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
