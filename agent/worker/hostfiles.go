package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/logs"
	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// HostFiles is what a worker keeps and shows below the agent's directories: what outlives
// the agent until the next boot, what the member reads, and where its containers log. Of
// one identity one worker uses it at a time. Every method may be repeated.
type HostFiles interface {
	// LoadLife and LoadState return what was kept; false: nothing that can be read.
	LoadLife(id spec.Identity) (records.Life, bool)
	LoadState(id spec.Identity) (State, bool)
	SaveLife(life *records.Life) error
	SaveState(id spec.Identity, s *State) error
	// Forget removes what was kept and shown of a life that is over.
	Forget(id spec.Identity) error

	// The files in /run/stead and beside it, see agent/files, but those of Sets.
	ShowMember(life *records.Life, n files.Node) error
	ShowVolumeNew(id spec.Identity, content []byte) error
	ShowTermination(id spec.Identity, reason records.Reason) error
	ShowMedia(id spec.Identity, m files.Media, group *int64) error

	// MakeLogDir makes the directory of a container's logs, of all its runs.
	MakeLogDir(id spec.Identity, container string) (string, error)
	// LoggerDead: nothing writes down any more what a running container says.
	LoggerDead(id spec.Identity, container, run string) bool
	// LastLine is the last line with text of a run that ended; "": there is none. It waits
	// a moment for the logger to write what it has read.
	LastLine(ctx context.Context, id spec.Identity, container, run string) string
}

// realFiles is HostFiles on the host: the logs below root, all else below runDir (tmpfs).
type realFiles struct{ root, runDir string }

var _ HostFiles = realFiles{}

// OnHost keeps the logs below root and all else below runDir, which is on tmpfs.
func OnHost(root, runDir string) HostFiles { return realFiles{root, runDir} }

func (h realFiles) place(id spec.Identity) files.Place { return files.At(h.runDir, id) }

// kept is the path of a document of a life, by its kind.
func (h realFiles) kept(kind string, id spec.Identity) string {
	return filepath.Join(h.runDir, kind, string(id.Namespace), id.MemberName()+".json")
}

func (h realFiles) LoadLife(id spec.Identity) (life records.Life, ok bool) {
	ok = durable.GetJSON(h.kept("lives", id), &life) == nil
	return life, ok
}

func (h realFiles) LoadState(id spec.Identity) (s State, ok bool) {
	ok = durable.GetJSON(h.kept("state", id), &s) == nil
	return s, ok
}

func (h realFiles) SaveLife(life *records.Life) error {
	return save(h.kept("lives", life.Member.ID), life)
}

func (h realFiles) SaveState(id spec.Identity, s *State) error { return save(h.kept("state", id), s) }

func save(path string, doc any) error {
	b, err := json.Marshal(doc)
	if err == nil {
		err = durable.PutUnsyncedIn(path, b, 0o600, 0o700)
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", filepath.Base(path), err)
	}
	return nil
}

func (h realFiles) Forget(id spec.Identity) error {
	var errs []error
	for _, kind := range []string{"lives", "state"} {
		if err := os.Remove(h.kept(kind, id)); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, files.Clean(h.place(id)))...)
}

func (h realFiles) ShowMember(life *records.Life, n files.Node) error {
	return files.WriteMember(h.place(life.Member.ID), life, n)
}

func (h realFiles) ShowVolumeNew(id spec.Identity, content []byte) error {
	return files.WriteVolumeNew(h.place(id), content)
}

func (h realFiles) ShowTermination(id spec.Identity, reason records.Reason) error {
	return files.WriteTermination(h.place(id), reason)
}

func (h realFiles) ShowMedia(id spec.Identity, m files.Media, group *int64) error {
	return files.WriteMedia(filepath.Join(h.place(id).Media, m.Name), m, group)
}

func (h realFiles) logDir(id spec.Identity, container string) string {
	return filepath.Join(h.root, "logs", string(id.Namespace), id.MemberName(), container)
}

func (h realFiles) MakeLogDir(id spec.Identity, container string) (string, error) {
	dir := h.logDir(id, container)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the log directory: %w", err)
	}
	return dir, nil
}

func (h realFiles) LoggerDead(id spec.Identity, container, run string) bool {
	return logs.Abandoned(h.logDir(id, container), run)
}

func (h realFiles) LastLine(ctx context.Context, id spec.Identity, container, run string) string {
	return logs.LastLine(ctx, h.logDir(id, container), run, lastLineWait)
}

// State is what a worker keeps of a life for the agent that comes after it. It is
// on tmpfs: a reboot ends the life anyway.
type State struct {
	Token spec.Token    `json:"token"`
	Phase records.Phase `json:"phase,omitempty"`
	// Ready since ReadySince on the boot clock. ReadyOnce: it was ready at least once.
	Ready      bool          `json:"ready,omitempty"`
	ReadySince time.Duration `json:"readySince,omitempty"`
	ReadyOnce  bool          `json:"readyOnce,omitempty"`
	// Busy is for how long the member has said that it is.
	Busy BusySpell `json:"busy,omitzero"`
	// Signalled: the stop has begun, and the stop signal was sent where no preStop hook comes first.
	Signalled bool `json:"signalled,omitempty"`
	// StopAt, of those only, is when the grace is over, on the boot clock; 0: not known.
	StopAt time.Duration `json:"stopAt,omitempty"`
	// Reason is what the member reads of why it is to leave; "": nothing.
	Reason records.Reason `json:"reason,omitempty"`
	// Ordered is how far the hook is that the server ordered last.
	Ordered OrderedState `json:"ordered,omitzero"`
	// Change is what came of the newest change in place that was taken in this life. The life that is kept has its order.
	Change inplace.ChangeResult `json:"change,omitzero"`
	// Media: the files of all volumes that show any were written in this life.
	Media bool `json:"media,omitempty"`
	// Given: all volumes were given to the life's fsGroup.
	Given      bool                      `json:"given,omitempty"`
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
	// Claim is what it last said of the member, in this attempt.
	Claim records.Claim `json:"claim,omitzero"`
	// Led is whether it leads, as its leader probe last said of this attempt.
	Led records.Claim `json:"led,omitzero"`
	// Sources is files.Fingerprint as it was when the container was created last.
	Sources string `json:"sources,omitempty"`
	// Hooks is how far its hooks are in this attempt.
	Hooks HooksDone `json:"hooks,omitzero"`
	// EndBy is when the grace is over of an end that was begun for a change in place, on the boot clock; 0: none was. Changing:
	// one was, and what follows was not seen to run. Changes counts such ends, which Attempt has in it.
	EndBy    time.Duration `json:"endBy,omitempty"`
	Changing bool          `json:"changing,omitempty"`
	Changes  int           `json:"changes,omitempty"`
	// Passed, of one of initContainers: it ended with 0 in this life, or, of a sidecar, it has
	// started. Asked, of a sidecar: it was sent the stop signal, because the life is to end.
	Passed bool `json:"passed,omitempty"`
	Asked  bool `json:"asked,omitempty"`
}

// saveLife keeps the description of the life, unless it is kept as it is.
func (w *subject) saveLife() error {
	if w.saved == w.life {
		return nil
	}
	w.saved = nil
	if err := w.c.Files.SaveLife(w.life); err != nil {
		return err
	}
	w.saved = w.life
	return nil
}

// saveState has the state kept before the next report and the next operation.
func (w *subject) saveState() { w.stateMoved = true }

// keepState keeps a state that moved; what a crash loses of it is counted again.
func (w *subject) keepState() {
	if !w.stateMoved {
		return
	}
	w.stateMoved = false
	if err := w.writeState(); err != nil {
		w.log.Warn("state not kept", "token", w.token, "err", err)
	}
}

func (w *subject) writeState() error {
	w.state.Containers = map[string]ContainerState{}
	for name, ctr := range w.containers {
		w.state.Containers[name] = ctr.ContainerState
	}
	return w.c.Files.SaveState(w.id, &w.state)
}
