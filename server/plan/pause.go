package plan

import "github.com/stead-project/stead/spec"

// Rule 6: while a rollout is paused nothing of the update happens. Nobody goes on to
// the update revision, whatever becomes of its life; rule 2 acts only back to the
// current revision; the update neither completes nor runs out of time. Scaling,
// healing and restarts go on, each member on what it runs.

func (s *step) paused() bool { return s.w.Set.Paused }

// held: the pause keeps the member from its target, which is not the current revision;
// or Recreate does.
func (s *step) held(t *seat) bool {
	if s.recreates() {
		return s.apart
	}
	return s.stays(t)
}

// stays: its target is for the time after the pause.
func (s *step) stays(t *seat) bool { return s.paused() && s.target(t) != s.current }

// heldOn is the revision on which a member that is held returns: what it ran last; one
// that never ran begins on the current one.
func (s *step) heldOn(t *seat) spec.RevisionHash {
	if !s.ran(t) {
		return s.current
	}
	return t.identity.Due
}

// ran: it is known what the ordinal ran last, and how to run it.
func (s *step) ran(t *seat) bool {
	return t.identity != nil && s.template(t.identity.Due) != nil
}
