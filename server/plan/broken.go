package plan

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/spec"
)

// lapse is how long a member that was ready may be unready before it counts as broken.
const lapse = 30 * time.Second

// restartsOfALoop is from how many restarts on a container that was killed for its
// memory or its health is in a loop of it.
const restartsOfALoop = 2

// cure is rule 2: a member that is broken and off its target is replaced out of
// turn, so that a bad update is left by applying a good one, without hands. It costs
// nothing from the budget, for the member was down already. OrderedReady: highest
// first, the next when that one is available; Parallel: all of them. It reports
// whether it stopped somebody.
func (s *step) cure() (acted bool) {
	if !s.replacesBroken() {
		return false
	}
	for n := len(s.wanted) - 1; n >= 0; n-- {
		t := &s.seats[s.wanted[n]]
		switch why := s.broken(t); {
		case why != "" && !s.held(t):
			s.end(t, spec.ReasonUpdate, fmt.Sprintf("revision %s is not its own any more, and %s", t.member.Revision, why))
			if acted = true; s.ordered() {
				return true
			}
		case s.ordered() && s.turned(t) && !t.available:
			return false
		}
	}
	return acted
}

// turned: the member's turn came, and it runs its target or is on its way there.
func (s *step) turned(t *seat) bool {
	return t.member != nil && (t.member.Revision == s.target(t) && !t.stopping() || t.member.StopReason == spec.ReasonUpdate)
}

// obsolete: the member, which is wanted, runs, and not on its target.
func (s *step) obsolete(t *seat) bool {
	return t.member != nil && !t.over && !t.stopping() && t.member.Revision != s.target(t)
}

// broken says why an obsolete member is broken; "": it is well, or may become so:
// one that starts, is in state transfer, or is ready but young is not broken. Of a
// member on a silent node nothing is known.
func (s *step) broken(t *seat) string {
	if !s.obsolete(t) || t.available || !t.live {
		return ""
	}
	if s.abandoned(t.member.Revision) && t.identity != nil && t.identity.AvailableOn != t.member.Revision {
		return "it never was available on it"
	}
	if t.report == nil || t.ready {
		return ""
	}
	if s.ownCause(t.report) {
		return s.standing(t)
	}
	return s.lapsed(t)
}

// lapsed: it was ready in this life, and has not been for too long.
func (s *step) lapsed(t *seat) string {
	unready, known := s.w.Unready[t.id]
	switch {
	case !known:
		return ""
	case unready < lapse:
		s.wake(lapse - unready)
		return ""
	}
	return fmt.Sprintf("it was ready, and has not been for %d s", int(unready.Seconds()))
}

// ownCause: what keeps the member down comes from its template, so that another
// revision may help. What its node or its volume lacks is not of this kind.
func (s *step) ownCause(r *spec.Report) bool {
	switch r.Cause {
	case "ImageMissing", "ImagePull", "StartError", "ConfigMissing", "FilesError", "CrashLoop":
		return true
	case "OOMKilled", "Unhealthy": // also of a failed startup probe
		for _, c := range r.Containers {
			if c.Restarts >= restartsOfALoop {
				return true
			}
		}
	}
	return false
}
