package worker

import (
	"errors"
	"time"

	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// errLateStepDown: a stepDown hook took all the time that it has.
var errLateStepDown = errors.New("it did not return within timeoutSeconds")

// isToStepDown: the member says that it leads, is to stop for a reason for which others stay, and has not stepped down by this hook. One that
// does not lead any more when its hook would start, or start again, is not asked; nor is one whose host goes down.
func (w *subject) isToStepDown(c *spec.Container, ctr *container) bool {
	if c.StepDown == nil || w.order != step.OrderStop || w.life == nil || w.state.Signalled || ctr.Hooks.StepDown || !w.graceEnds().IsZero() {
		return false
	}
	switch w.life.Member.StopReason {
	case records.ReasonUpdate, records.ReasonRestart, records.ReasonDrain, records.ReasonMove, records.ReasonScaleDown:
		return ctr.hook != nil && ctr.hook.kind == step.RunStepDown || w.claim().Leads
	}
	return false
}

// beginStepDown has the member read why it is to stop, and counts the time of its hook from its first start.
func (w *actor) beginStepDown(c *spec.Container, ctr *container) error {
	if err := w.c.Files.ShowTermination(w.id, w.life.Member.StopReason); err != nil {
		return err
	}
	if ctr.Hooks.StepDownBy == 0 {
		ctr.Hooks.StepDownBy = w.c.Clock() + c.StepDown.Timeout()
		w.saveState()
		w.keepState()
	}
	w.log.Info("leader asked to step down", "token", w.token, "container", c.Name, "reason", w.life.Member.StopReason)
	return nil
}

// endLateStepDowns breaks off the hooks whose time is over; the stop goes on.
func (w *observer) endLateStepDowns() {
	for _, ctr := range w.containers {
		if by := ctr.Hooks.StepDownBy; by != 0 && !ctr.Hooks.StepDown && w.c.Clock() >= by {
			if ctr.hook != nil && ctr.hook.kind == step.RunStepDown {
				ctr.endHook()
			}
			w.steppedDown(ctr, errLateStepDown)
			w.saveState()
		}
	}
}

// steppedDown notes that a stepDown hook has returned, or is not waited for any more.
func (w *observer) steppedDown(ctr *container, err error) {
	ctr.Hooks.StepDown = true
	if err != nil {
		w.log.Warn("stepDown hook failed", "token", w.token, "container", ctr.status.ID.Name, "err", err)
	}
}

// untilSteppedDown is the time, from uptime on, until that of the running hook is over; 0: none runs.
func (c *container) untilSteppedDown(uptime time.Duration) time.Duration {
	if c.Hooks.StepDownBy == 0 || c.Hooks.StepDown {
		return 0
	}
	return c.Hooks.StepDownBy - uptime
}
