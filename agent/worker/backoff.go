package worker

import (
	"errors"
	"syscall"
	"time"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/spec/causes"
)

type holdKey struct {
	op        step.Kind
	container string
}

// hold is an operation that failed: how often in a row, and when it is tried again.
type hold struct {
	count   int
	until   time.Time
	cause   causes.Cause
	message string
	secrets string // of a pull: files.Credentials.Print of what it was tried with
}

// noteOutcome takes in how an operation ended.
func noteOutcome(w *subject, op step.Op, err error) {
	key := holdKey{op.Kind, op.Container}
	if err == nil {
		delete(w.held, key)
		return
	}
	h, ok := w.held[key]
	if !ok {
		h = &hold{}
		w.held[key] = h
	}
	h.count++
	h.secrets = w.pulledWith
	first, most := w.c.Tuning.RetryFirst, w.c.Tuning.RetryMost
	if op.Kind == step.EnsureImage {
		first, most = w.c.Tuning.ImageFirst, w.c.Tuning.ImageMost
	}
	if errors.Is(err, runtime.ErrUnavailable) {
		w.setRuntimeDown(true)
		first, most = w.c.Tuning.Away, w.c.Tuning.Away
	}
	h.until = w.c.Now().Add(backoff.After(first, most, h.count))
	cause, message := causeOf(op.Kind, err), err.Error()
	if errors.Is(err, syscall.ENOSPC) {
		message += "; free space there: it is tried again by itself"
	}
	if message != h.message {
		w.log.Warn("operation failed", "token", w.token, "reason", cause, "err", err)
	}
	h.cause, h.message = cause, message
}

func (w *observer) seenHeld() []step.Held {
	var out []step.Held
	now := w.c.Now()
	for key, h := range w.held {
		if h.until.After(now) {
			out = append(out, step.Held{Op: key.op, Container: key.container, Cause: h.cause, Message: h.message})
		}
	}
	return out
}

// causeOf is the one word for a failed operation.
func causeOf(kind step.Kind, err error) causes.Cause {
	if _, missing := errors.AsType[*files.MissingError](err); missing {
		return causes.ConfigMissing
	}
	if errors.Is(err, runtime.ErrUnavailable) {
		return causes.RuntimeUnavailable
	}
	if errors.Is(err, runtime.ErrImageMissing) {
		return causes.ImageMissing // also of a container that is made again
	}
	if errors.Is(err, runtime.ErrPortTaken) {
		return causes.HostPortTaken
	}
	switch kind {
	case step.EnsureImage:
		return causes.ImagePull
	case step.EnsureVolumes:
		return runtime.VolumeCause(err)
	case step.EnsureSandbox:
		return causes.SandboxError
	case step.AttachNetwork:
		return causes.NetworkError
	case step.WriteFiles:
		return causes.FilesError
	case step.OpenToken, step.Refuse, step.CloseToken, step.Expire:
		return causes.LedgerError
	case step.CreateContainer, step.StartContainer, step.ResizeContainer, step.RemoveContainer:
		return causes.StartError
	}
	return causes.StopError
}
