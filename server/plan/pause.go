package plan

import "github.com/stead-project/stead/spec"

// Rule 6: while a rollout is paused nothing of the update happens. Nobody goes on to
// the update revision, whatever becomes of its life; rule 2 acts only back to the
// current revision; the update neither completes nor runs out of time. Scaling,
// healing and restarts go on, each member on what it runs.

func (f *facts) paused() bool { return f.world.Set.Paused }

// held: the pause keeps the member from its target, which is not the current revision;
// or Recreate does.
func (r rollout) held(t *memberState) bool {
	if r.recreates() {
		return r.apart
	}
	return r.stays(t)
}

// stays: its target is for the time after the pause.
func (r rollout) stays(t *memberState) bool { return r.paused() && r.target(t) != r.current }

// heldOn is the revision on which a member that is held returns: what it ran last; one
// that never ran begins on the current one.
func (r rollout) heldOn(t *memberState) spec.RevisionHash {
	if !r.ran(t) {
		return r.current
	}
	return t.identity.Due
}

// ran: it is known what the ordinal ran last, and how to run it.
func (r rollout) ran(t *memberState) bool {
	return t.identity != nil && r.template(t.identity.Due) != nil
}
