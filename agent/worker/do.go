package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/ledger"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/spec"
)

// mostRepeats is how often in a row an operation may succeed and still be wanted.
const mostRepeats = 3

var errNoEffect = errors.New("it was done and has no effect")

// do performs one operation. Whatever fails is tried again after its back-off, and
// so is what succeeds again and again.
func (w *Worker) do(ctx context.Context, op step.Op, repeats int) {
	bound := w.c.Tuning.Operation
	if op.Kind == step.EnsureImage {
		bound = w.c.Tuning.Pull
	}
	sub, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	if op.Kind == step.EnsureImage {
		// A stop does not wait for a pull.
		if !w.interruptible(cancel) {
			return
		}
		defer w.interruptible(nil)
	}
	err := w.perform(sub, op)
	if ctx.Err() != nil {
		return // the agent ends; nothing failed
	}
	if err == nil && repeats >= mostRepeats {
		err = errNoEffect
	}
	w.settle(op, err)
}

// interruptible lets an order break off the operation; false: one came already.
func (w *Worker) interruptible(cancel context.CancelFunc) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancelOp = cancel
	return cancel == nil ||
		w.orders.Token == w.token && w.orders.Goal == spec.GoalRun && w.orders.Over.Compare(w.token) < 0
}

func (w *Worker) perform(ctx context.Context, op step.Op) error {
	switch op.Kind {
	case step.OpenToken:
		return w.openToken()
	case step.Refuse:
		return w.c.Ledger.CloseToken(w.id, w.token, ledger.CauseRefused)
	case step.EnsureImage, step.CreateContainer, step.StartContainer, step.EndContainer, step.KillContainer, step.RemoveContainer:
		return w.performOn(ctx, op, w.box(op.Container))
	case step.EnsureVolumes:
		return w.ensureVolumes(ctx)
	case step.EnsureSandbox:
		return w.ensureSandbox(ctx)
	case step.AttachNetwork:
		return w.attach(ctx)
	case step.WriteFiles:
		return w.writeFiles()
	case step.SignalStop:
		return w.signalStop(ctx)
	case step.KillAll:
		return w.killAll(ctx)
	case step.RemoveContainers:
		return w.removeContainers(ctx)
	case step.Detach:
		return w.proven(w.c.Network.Detach(ctx, w.id), &w.left.link)
	case step.RemoveScratch:
		return w.proven(w.c.Volumes.RemoveScratch(ctx, w.id), &w.left.scratch)
	case step.RemoveSandbox:
		return w.proven(w.c.Runtime.RemoveSandbox(ctx, w.id), &w.left.sandbox)
	case step.CloseToken:
		return w.c.Ledger.CloseToken(w.id, w.token, ledger.CauseStopped)
	case step.ReportOver:
		return w.reportOver()
	}
	return fmt.Errorf("operation %s is not known", op.Kind)
}

// proven notes that something is gone when the call that removed it says so.
func (w *Worker) proven(err error, there *bool) error {
	if err == nil {
		*there = false
	}
	return err
}

func (w *Worker) openToken() error {
	if err := w.saveLife(w.life); err != nil {
		return err
	}
	if err := w.c.Ledger.OpenToken(w.id, w.token); err != nil {
		return err
	}
	w.log.Info("life began", "token", w.token, "reason", w.life.Member.Reason, "revision", w.life.Member.Revision)
	return nil
}

// performOn performs an operation on one container.
func (w *Worker) performOn(ctx context.Context, op step.Op, b *box) error {
	id := runtime.ContainerID{ID: w.id, Name: op.Container}
	c := w.container(op.Container)
	if c == nil {
		return fmt.Errorf("container %s: the life's template is not known", op.Container)
	}
	switch op.Kind {
	case step.EnsureImage:
		_, err := w.c.Runtime.EnsureImage(ctx, c.Image, c.ImagePullPolicy)
		b.image = err == nil
		return err
	case step.CreateContainer:
		return w.create(ctx, c, b)
	case step.StartContainer:
		return w.start(ctx, id, b)
	case step.EndContainer:
		b.deadline = time.Now().Add(w.grace())
		return ignoreGone(w.c.Runtime.Signal(ctx, id, sigterm, false))
	case step.KillContainer:
		b.deadline = time.Now().Add(killAgain)
		w.dirty = true
		return ignoreGone(w.c.Runtime.Signal(ctx, id, sigkill, true))
	}
	w.dirty = true
	return w.c.Runtime.Remove(ctx, id)
}

// The signals, by number: the contract of the runtime takes Linux' numbers.
const (
	sigterm = 15
	sigkill = 9
)

// killAgain is how long a killed container may take to be gone.
const killAgain = 2 * time.Second

func ignoreGone(err error) error {
	if errors.Is(err, runtime.ErrNotRunning) || errors.Is(err, runtime.ErrNotFound) {
		return nil
	}
	return err
}

// container is the description of a container of the life; nil: not known.
func (w *Worker) container(name string) *spec.Container {
	if w.life == nil {
		return nil
	}
	cs := w.life.Template.Spec.Containers
	if i := slices.IndexFunc(cs, func(c spec.Container) bool { return c.Name == name }); i >= 0 {
		return &cs[i]
	}
	return nil
}

func (w *Worker) create(ctx context.Context, c *spec.Container, b *box) error {
	dir := filepath.Join(w.c.Root, "logs", string(w.id.Namespace), w.id.MemberName(), c.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the log directory: %w", err)
	}
	desc, err := files.Build(w.life, c, w.c.Node, w.c.Find, files.Parts{
		Attempt: b.Attempt, Place: w.place, Volumes: w.prepared.dirs,
		Log: runtime.Log{Dir: dir, FileBytes: w.c.Tuning.LogBytes, Files: w.c.Tuning.LogFiles},
	})
	if err != nil {
		return err
	}
	desc.Labels = files.Labels(w.life)
	w.left.containers = true
	err = w.c.Runtime.Create(ctx, desc)
	switch {
	case errors.Is(err, runtime.ErrExists):
		w.dirty = true
		return nil
	case errors.Is(err, runtime.ErrImageMissing), errors.Is(err, runtime.ErrNotFound):
		b.image = false
		return err
	case err != nil:
		return err
	}
	b.seen, b.broken = step.Created, false
	return nil
}

// start starts a created container. One that cannot be started is like one that
// ended: it is made anew after its back-off.
func (w *Worker) start(ctx context.Context, id runtime.ContainerID, b *box) error {
	err := w.c.Runtime.Start(ctx, id)
	w.dirty = true
	if err == nil {
		b.ours = true
		w.log.Info("container started", "token", w.token)
		return nil
	}
	if errors.Is(err, runtime.ErrUnavailable) || ctx.Err() != nil {
		return err // what became of it will be seen
	}
	b.broken = true
	w.countEnd(b, ending{causeStart, err.Error()}, runtime.Exit{})
	b.Cause = causeStart
	return nil
}

func (w *Worker) ensureVolumes(ctx context.Context) error {
	w.left.scratch = true
	dirs := map[string]string{}
	var group *int64
	if sc := w.life.Template.Spec.SecurityContext; sc != nil {
		group = sc.FSGroup
	}
	for _, v := range w.life.Member.Volumes {
		_, fresh := w.life.FreshVolumes[v.Claim]
		dir, err := w.c.Volumes.Ensure(ctx, w.id, v, fresh && !w.state.ReadyOnce, group)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Claim, err)
		}
		dirs[string(v.Claim)] = dir
	}
	for _, v := range w.life.Template.Spec.Volumes {
		if _, claimed := dirs[v.Name]; claimed || v.EmptyDir == nil {
			continue
		}
		size := int64(0)
		if v.EmptyDir.SizeLimit != nil {
			size = v.EmptyDir.SizeLimit.Value()
		}
		dir, err := w.c.Volumes.Scratch(ctx, w.id, w.token, v.Name, v.EmptyDir.Medium == "Memory", size, group)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		dirs[v.Name] = dir
	}
	if err := files.MakeSubPaths(w.life, dirs, group); err != nil {
		return err
	}
	w.prepared.volumes, w.prepared.dirs = true, dirs
	return nil
}

func (w *Worker) ensureSandbox(ctx context.Context) error {
	w.left.sandbox = true
	box, err := w.c.Runtime.EnsureSandbox(ctx, w.id, w.token, w.id.MemberName())
	if err != nil {
		return err
	}
	w.prepared.sandbox, w.prepared.netns = true, box.NetNS
	return nil
}

func (w *Worker) attach(ctx context.Context) error {
	w.left.link = true
	err := w.c.Network.Attach(ctx, w.id, w.prepared.netns, w.life.Member.Address)
	w.prepared.network = err == nil
	return err
}

// writeFiles shows the member what is known now. A ConfigMap that has gone away
// since the life began leaves the old files in place and is told as a cause.
func (w *Worker) writeFiles() error {
	w.wrote = time.Now()
	life := *w.life
	if w.state.ReadyOnce {
		life.FreshVolumes = nil
	}
	if err := files.WriteMember(w.place, &life, w.c.Node); err != nil {
		return err
	}
	if picture, ok := w.c.Picture(w.id.Ref()); ok {
		picture.Bootstrapped = picture.Bootstrapped || life.Bootstrapped
		if err := files.WriteSet(w.place, &picture); err != nil {
			return err
		}
	}
	media, err := files.MediaOf(&life, w.c.Find)
	if err != nil {
		return err
	}
	var group *int64
	if sc := life.Template.Spec.SecurityContext; sc != nil {
		group = sc.FSGroup
	}
	for _, m := range media {
		if err := files.WriteMedia(filepath.Join(w.place.Media, m.Name), m, group); err != nil {
			return err
		}
	}
	w.prepared.files = true
	return nil
}

// signalStop tells the member why, then asks all its containers to end.
func (w *Worker) signalStop(ctx context.Context) error {
	reason := spec.ReasonReplace
	if w.life != nil && w.life.Member.StopReason != "" {
		reason = w.life.Member.StopReason
	}
	if err := files.WriteTermination(w.place, reason); err != nil {
		return err
	}
	for name, b := range w.boxes {
		if b.seen != step.Running {
			continue
		}
		if err := ignoreGone(w.c.Runtime.Signal(ctx, runtime.ContainerID{ID: w.id, Name: name}, sigterm, false)); err != nil {
			return err
		}
	}
	w.state.Signalled, w.stopAt = true, time.Now().Add(w.grace())
	w.saveState()
	w.dirty = true
	w.log.Info("life asked to stop", "token", w.token, "reason", reason)
	return nil
}

var errStillThere = errors.New("processes are still there after SIGKILL; they may hang in the kernel")

func (w *Worker) killAll(ctx context.Context) error {
	w.dirty = true
	if err := w.c.Runtime.KillAll(ctx, w.id); err != nil {
		return err
	}
	if empty, err := w.c.Runtime.Empty(ctx, w.id); err != nil || !empty {
		return errors.Join(errStillThere, err)
	}
	return nil
}

func (w *Worker) removeContainers(ctx context.Context) error {
	for _, name := range w.names {
		if err := w.c.Runtime.Remove(ctx, runtime.ContainerID{ID: w.id, Name: name}); err != nil {
			return err
		}
		w.box(name).clear()
	}
	w.left.containers, w.dirty = false, false
	w.prepared = prepared{}
	return nil
}

// reportOver tells the end of the token; its traces on tmpfs go first.
func (w *Worker) reportOver() error {
	if w.standing == step.Closed {
		if err := w.forget(); err != nil {
			return fmt.Errorf("forget the life: %w", err)
		}
	}
	w.reportEnd()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told[w.token] = true
	return nil
}
