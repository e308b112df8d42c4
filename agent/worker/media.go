package worker

import (
	"errors"
	"time"

	"github.com/stead-project/stead/agent/files"
)

// missing is the sentence about what containers need and the server has not told. Files
// that this life has got already are not needed again: a container that is restarted in
// place after its ConfigMap was deleted goes on with them, as in Kubernetes. Variables
// are, for they are read at each start.
func (w *observer) missing() string {
	if _, ok := w.c.Picture(w.id.Ref()); !ok {
		return "the server has not sent the snapshot of the set yet"
	}
	if text := files.MissingEnv(w.life, w.c.Node, w.c.Find); text != "" || w.state.Media {
		return text
	}
	return files.MissingMedia(w.life, w.c.Find)
}

// writeMedia shows the member its ConfigMaps and Secrets as they are now.
func (w *actor) writeMedia() error {
	media, err := files.MediaOf(w.life, w.c.Find)
	w.sourceGone = ""
	if missing := (*files.MissingError)(nil); errors.As(err, &missing) && w.state.Media {
		w.sourceGone = err.Error() + "; the member keeps the files that it has"
	} else if err != nil {
		return err
	}
	var group *int64
	if sc := w.life.Template.Spec.SecurityContext; sc != nil {
		group = sc.FSGroup
	}
	for _, m := range media {
		if err := w.c.Files.ShowMedia(w.id, m, group); err != nil {
			return err
		}
	}
	if !w.state.Media {
		w.state.Media = true
		w.saveState()
	}
	return nil
}

// tryRepaired ends the back-off of containers that failed with other files or variables
// than those that are known now: what was applied since may be the repair.
func (w *observer) tryRepaired() {
	if w.life == nil {
		return
	}
	now := w.c.Now()
	for _, ctr := range w.containers {
		if !ctr.due.After(now) {
			continue
		}
		if print := files.Fingerprint(w.life, w.c.Node, w.c.Find); print != "" && print != ctr.Sources {
			ctr.due, ctr.Streak = now, 0
			w.prepared.files, w.rewriteFiles = false, time.Time{}
			w.log.Info("start retried at once: ConfigMaps or Secrets changed", "token", w.token)
		}
	}
}
