package worker

import (
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// State is what a worker keeps of a life for the agent that comes after it. It is
// on tmpfs: a reboot ends the life anyway.
type State struct {
	Token spec.Token    `json:"token"`
	Phase records.Phase `json:"phase,omitempty"`
	// Ready since ReadySince on the boot clock. ReadyOnce: it was ready at least once.
	Ready      bool          `json:"ready,omitempty"`
	ReadySince time.Duration `json:"readySince,omitempty"`
	ReadyOnce  bool          `json:"readyOnce,omitempty"`
	// Signalled: the stop signal was sent.
	Signalled bool `json:"signalled,omitempty"`
	// Media: the files of all ConfigMap and Secret volumes were written in this life.
	Media      bool                      `json:"media,omitempty"`
	Containers map[string]ContainerState `json:"containers,omitempty"`
}

// ContainerState outlives the container, which a restart in place removes.
type ContainerState struct {
	Attempt int `json:"attempt"` // of the present or next creation
	// Streak counts ends in a row; Exit, Cause and Message tell of the last one.
	Streak  int          `json:"streak,omitempty"`
	Exit    *int         `json:"exit,omitempty"`
	Cause   causes.Cause `json:"cause,omitempty"`
	Message string       `json:"message,omitempty"`
	// Started and Ready is what the probes last said of this attempt.
	Started bool `json:"started,omitempty"`
	Ready   bool `json:"ready,omitempty"`
	// Sources is files.Fingerprint as it was when the container was created last.
	Sources string `json:"sources,omitempty"`
}

// saveState keeps the state; what a crash loses of it is counted anew.
func (w *subject) saveState() {
	w.state.Containers = map[string]ContainerState{}
	for name, ctr := range w.containers {
		w.state.Containers[name] = ctr.ContainerState
	}
	if err := w.c.Files.SaveState(w.id, &w.state); err != nil {
		w.log.Warn("state not kept", "token", w.token, "err", err)
	}
}
