package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// signalStop shows the member why, then asks its containers to end that have no preStop hook to run
// first; sidecars are asked after them.
func (w *actor) signalStop(ctx context.Context) error {
	reason := records.ReasonReplace
	if w.life != nil && w.life.Member.StopReason != "" {
		reason = w.life.Member.StopReason
	}
	if err := w.c.Files.ShowTermination(w.id, reason); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(w.containers)) {
		ctr := w.containers[name]
		if ctr.deadline.IsZero() {
			w.beginEnd(ctr)
		}
		if ctr.seen != step.Running || w.hooks(w.template(name), ctr).PreStop != step.HookNone || w.role(name) == spec.RoleSidecar {
			continue
		}
		ctr.endHook() // that came after its start
		if err := ignoreGone(w.c.Runtime.Signal(ctx, runtime.ContainerID{ID: w.id, Name: name}, w.stopSignal(name, ctr), false)); err != nil {
			return err
		}
	}
	w.state.Signalled = true
	w.setStopAt(w.c.Now().Add(w.grace()))
	w.keepState()
	w.dirty = true
	w.log.Info("life asked to stop", "token", w.token, "reason", reason)
	return nil
}

var errStillThere = errors.New("processes are still there after SIGKILL; they may hang in the kernel")

func (w *actor) killAll(ctx context.Context) error {
	w.dirty = true
	if err := w.c.Runtime.KillAll(ctx, w.id); err != nil {
		return err
	}
	if empty, err := w.c.Runtime.Empty(ctx, w.id); err != nil || !empty {
		return errors.Join(errStillThere, err)
	}
	return nil
}

func (w *actor) removeContainers(ctx context.Context) error {
	for _, name := range w.names {
		if err := w.c.Runtime.Remove(ctx, runtime.ContainerID{ID: w.id, Name: name}); err != nil {
			return err
		}
		w.container(name).clear()
	}
	w.left.containers, w.dirty = false, false
	w.prepared = prepared{}
	return nil
}

// reportOver reports the end of the token; its traces on tmpfs go first.
func (w *actor) reportOver() error {
	if w.standing == step.Closed {
		if w.c.Guard != nil {
			if err := w.c.Guard.Forget(w.id, w.token); err != nil {
				return err
			}
		}
		w.c.Sets.Leave(w.id)
		if err := w.c.Files.Forget(w.id); err != nil {
			return fmt.Errorf("forget the life: %w", err)
		}
		w.saved, w.stateMoved = nil, false
	}
	w.reporter.reportEnd()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reportedEnds[w.token] = true
	return nil
}
