package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// state is what a worker keeps of a life for the agent that comes after it. It is
// on tmpfs: a reboot ends the life anyway.
type state struct {
	Token spec.Token    `json:"token"`
	Phase records.Phase `json:"phase,omitempty"`
	// Ready since ReadySince on the boot clock. ReadyOnce: it was ready at least once.
	Ready      bool          `json:"ready,omitempty"`
	ReadySince time.Duration `json:"readySince,omitempty"`
	ReadyOnce  bool          `json:"readyOnce,omitempty"`
	// Signalled: the stop signal was sent.
	Signalled bool `json:"signalled,omitempty"`
	// Media: the files of all ConfigMap and Secret volumes were written in this life.
	Media bool                      `json:"media,omitempty"`
	Boxes map[string]containerState `json:"containers,omitempty"`
}

// containerState outlives the container, which a restart in place removes.
type containerState struct {
	Attempt int `json:"attempt"` // of the present or next creation
	// Streak counts ends in a row; Exit, Cause and Message tell of the last one.
	Streak  int        `json:"streak,omitempty"`
	Exit    *int       `json:"exit,omitempty"`
	Cause   spec.Cause `json:"cause,omitempty"`
	Message string     `json:"message,omitempty"`
	// Started and Ready is what the probes last said of this attempt.
	Started bool `json:"started,omitempty"`
	Ready   bool `json:"ready,omitempty"`
	// Sources is files.Fingerprint as it was when the container was created last.
	Sources string `json:"sources,omitempty"`
}

func (w *Worker) livePath() (dir, name string) {
	return filepath.Join(w.c.RunDir, "lives", string(w.id.Namespace)), w.id.MemberName() + ".json"
}

func (w *Worker) statePath() (dir, name string) {
	return filepath.Join(w.c.RunDir, "state", string(w.id.Namespace)), w.id.MemberName() + ".json"
}

func (w *Worker) loadLife() (records.Life, bool) {
	var life records.Life
	err := load(&life, w.livePath)
	return life, err == nil
}

func load(into any, path func() (string, string)) error {
	dir, name := path()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// saveLife keeps the life's description before anything is done for it.
func (w *Worker) saveLife(life *records.Life) error { return save(life, w.livePath) }

// saveState keeps the state; what a crash loses of it is counted anew.
func (w *Worker) saveState() {
	w.state.Boxes = map[string]containerState{}
	for name, b := range w.boxes {
		w.state.Boxes[name] = b.containerState
	}
	if err := save(&w.state, w.statePath); err != nil {
		w.log.Warn("state not kept", "token", w.token, "err", err)
	}
}

func save(doc any, path func() (string, string)) error {
	b, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("encode %T: %w", doc, err)
	}
	dir, name := path()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return files.Put(dir, name, b, 0o600)
}

// forget removes what was kept and shown of a life that is over.
func (w *Worker) forget() error {
	var errs []error
	for _, path := range []func() (string, string){w.livePath, w.statePath} {
		dir, name := path()
		if err := os.Remove(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, files.Clean(w.place))...)
}
