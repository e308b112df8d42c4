package worker

import (
	"context"
	"maps"

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
	found, unreadable := files.CredentialsOf(w.life, w.c.Find)
	w.pulledWith = found.Print
	progress := &runtime.PullProgress{}
	where := title(c.Name, w.role(c.Name))
	defer w.reportProgress(causes.Pulling, progress.Tenths, func() string { return where + ": " + progress.Text(c.Image) })()
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
	return found.Explain(err, c.ImagePullPolicy)
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
