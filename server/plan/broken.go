package plan

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// restartsOfALoop is from how many restarts on a container that was killed for its
// memory or its health is in a loop of it.
const restartsOfALoop = 2

// replaceBrokenMembers is rule 2: a member off its target that is broken is replaced out of turn, so that
// a bad update is left by applying a good one, without hands. It was down already and
// served nobody: all of them under Parallel; under OrderedReady highest first, the next
// when that one is available. One that lapsed may serve still: see replaceLapsedMember. It reports
// whether it stopped somebody.
func (s step) replaceBrokenMembers() (acted bool) {
	if !s.replacesBroken() {
		return false
	}
	for n := len(s.inside) - 1; n >= 0; n-- {
		t := &s.members[s.inside[n]]
		switch why := s.broken(t); {
		case why != "" && !s.held(t):
			s.stopOutOfTurn(t, why)
			acted = true
			if s.ordered() {
				return true
			}
		case s.ordered() && s.arriving(t):
			return s.replaceLapsedMember()
		}
	}
	return s.replaceLapsedMember() || acted
}

func (s step) stopOutOfTurn(t *memberState, why string) {
	s.stop(t, records.ReasonUpdate, fmt.Sprintf("revision %s is outdated, and %s", t.member.Revision, why))
}

// turned: the member's turn came, and it runs its target or is on its way there.
func (r rollout) turned(t *memberState) bool {
	return t.member != nil && (t.member.Revision == r.target(t) && !t.stopping() || t.member.StopReason == records.ReasonUpdate)
}

// arriving: it is not available there yet.
func (r rollout) arriving(t *memberState) bool { return r.turned(t) && !t.Available }

// obsolete: the member, which is wanted, runs, and not on its target.
func (r rollout) obsolete(t *memberState) bool {
	return t.member != nil && !t.Over && !t.stopping() && t.member.Revision != r.target(t)
}

// broken says why an obsolete member cannot become ready by itself (SAFETY S20); "": it is
// well, may become so, or was ready in this life and may serve. Of a member of which its
// node's session has not told nothing is known.
func (r rollout) broken(t *memberState) string {
	switch {
	case !r.obsolete(t) || t.Ready || t.unseen():
		return ""
	case t.report != nil && causedByTemplate(t.report):
		return r.stateText(t)
	case t.wasReady():
		return ""
	case r.neverWorked(t):
		return "it was never available on it"
	case r.overdue(t):
		return fmt.Sprintf("it did not become ready in this life in %d s", int(r.outage(t).Seconds()))
	}
	return ""
}

// neverWorked: the member runs an abandoned revision and never was available on it.
func (r rollout) neverWorked(t *memberState) bool {
	return r.abandoned(t.member.Revision) && t.identity != nil && t.identity.AvailableOn != t.member.Revision
}

// causedByTemplate: what keeps the member down comes from its template, so that another
// revision may help. What its node or its volume lacks is not of this kind.
func causedByTemplate(r *records.Report) bool {
	switch r.Cause {
	case causes.ImageMissing, causes.ImagePull, causes.StartError, causes.ConfigMissing, causes.FilesError, causes.CrashLoop:
		return true
	case causes.OOMKilled, causes.Unhealthy: // also of a failed startup probe
		for _, c := range r.Containers {
			if c.Restarts >= restartsOfALoop {
				return true
			}
		}
	}
	return false
}
