package worker

import (
	"errors"
	"time"

	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/spec"
)

// Guard keeps the deadlines of guarded lives (SAFETY S3, S5, S6).
type Guard interface {
	// Begin records a life for its killers, before its token is opened; repeating it is
	// no error. It fails when its deadline has passed.
	Begin(id spec.Identity, token spec.Token, bound time.Duration) error
	// Look says how a life is guarded now; bound is for one that is not recorded.
	Look(id spec.Identity, token spec.Token, bound time.Duration) Guarded
	// Expire closes the token of a life that missed its deadline, and has its killers go on
	// until Forget.
	Expire(id spec.Identity, token spec.Token) error
	// Forget removes the record of a life of which nothing is left, or of one before it;
	// absent is no error.
	Forget(id spec.Identity, token spec.Token) error
	// Record is the path of the identity's record, for its loggers.
	Record(id spec.Identity) string
}

// Guarded is how a life is guarded.
type Guarded struct {
	// Recorded: its killers know of it.
	Recorded bool
	// Passed: its deadline has passed, or it never had one: the node was not confirmed.
	Passed bool
	// Watched: the watchdog that runs has acknowledged it; of a life that is not recorded:
	// one runs.
	Watched bool
}

// guardAgain is how often a life looks that may not start before its watchdog.
const guardAgain = 50 * time.Millisecond

// observeGuard looks how a guarded life is guarded.
func (w *observer) observeGuard(s *step.Seen) {
	var bound time.Duration
	if w.life != nil {
		bound = w.life.Member.Bound
	}
	w.guardWait = false
	if w.standing == step.Closed {
		return
	}
	if w.c.Guard == nil {
		s.Unwatched = bound > 0
		return
	}
	g := w.c.Guard.Look(w.id, w.token, bound)
	if bound == 0 && !g.Recorded {
		return
	}
	s.Unwatched = !g.Watched
	if w.standing == step.Open {
		s.Expired = g.Passed || !g.Recorded
	} else {
		s.Unconfirmed = g.Passed
	}
	w.guardWait = s.Unwatched && !s.Unconfirmed // a confirmation wakes it
}

// recordGuard records a guarded life before its token is opened, so that a token that is
// open here has a deadline, whenever an agent dies. Of one that is not guarded it takes
// away what a life that never started has left: its killers would end this one.
func (w *actor) recordGuard() error {
	switch bound := w.life.Member.Bound; {
	case bound > 0:
		return w.c.Guard.Begin(w.id, w.token, bound)
	case w.c.Guard != nil:
		return w.c.Guard.Forget(w.id, w.token)
	}
	return nil
}

// mayStart asks once more, for the token may have been closed since it was looked at: a
// life that missed its deadline must not start again.
func (w *actor) mayStart() error {
	if w.life.Member.Bound == 0 {
		return nil
	}
	if g := w.c.Guard.Look(w.id, w.token, 0); !g.Recorded || g.Passed || !g.Watched {
		return errors.New("the life is not guarded, or its deadline has passed")
	}
	return nil
}

// bound is the life's, as this node guards it; 0: it does not.
func (w *subject) bound() time.Duration {
	if w.life == nil || w.c.Guard == nil {
		return 0
	}
	return w.life.Member.Bound
}
