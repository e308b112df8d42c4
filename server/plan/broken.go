package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/causes"
)

// restartsOfALoop is from how many restarts on a container that was killed for its
// memory or its health is in a loop of it.
const restartsOfALoop = 2

// replaceBrokenMembers is rule 2: a member off its target that is broken is replaced out of turn, so
// that a bad update is left by applying a good one. It serves no client: all of them under
// Parallel; under OrderedReady highest first, the next when that one is available. For one that
// lapsed see replaceLapsedMember. It reports whether it stopped a member.
func (s step) replaceBrokenMembers() (acted bool) {
	if !s.replacesBroken() {
		return false
	}
	for _, t := range slices.Backward(s.inside) {
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
	s.stop(t, records.ReasonUpdate, fmt.Sprintf("revision %s is outdated, and %s", t.Member.Revision, why))
}

// turned: the member's turn came, and it runs its target or is on its way there.
func (r rollout) turned(t *memberState) bool {
	return t.Member != nil && (t.heads() == r.target(t) && !t.stopping() || t.Member.StopReason == records.ReasonUpdate)
}

// arriving: it is not available there yet.
func (r rollout) arriving(t *memberState) bool { return r.turned(t) && !t.Available }

// obsolete: the member, which is wanted, runs, and not on its target.
func (r rollout) obsolete(t *memberState) bool {
	return t.Member != nil && !t.Over && !t.stopping() && t.heads() != r.target(t)
}

// broken says why an obsolete member cannot become ready by itself (SAFETY S20); "": it is
// well, may become so, was ready in this life and may serve, or its node's session has not
// reported it.
func (r rollout) broken(t *memberState) string {
	switch {
	case !r.obsolete(t) || t.Ready || t.unseen():
		return ""
	case t.Report != nil && causedByTemplate(t.Report):
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
	runs := cmp.Or(t.heads(), t.Member.Revision)
	return r.abandoned(runs) && t.Identity != nil && t.Identity.AvailableOn != runs
}

// causedByTemplate: what keeps the member down comes from its template, so that another
// revision may help. What its node or its volume lacks is not of this kind.
func causedByTemplate(r *records.Report) bool {
	switch r.Cause {
	case causes.ImageMissing, causes.ImagePull, causes.StartError, causes.ConfigMissing, causes.FilesError, causes.CrashLoop:
		return true
	case causes.OOMKilled, causes.Unhealthy, causes.FailedPostStartHook: // Unhealthy also of a failed startup probe
		return slices.ContainsFunc(r.Containers, func(c records.ContainerReport) bool { return c.Restarts >= restartsOfALoop })
	}
	return false
}

// lapse is how long the only member that is not available may be so, off its target and
// ready before, until it is replaced out of turn.
const lapse = 30 * time.Second

// replaceLapsedMember is the part of rule 2 about members that were ready in this life and are not:
// each may serve still, or feed another (SAFETY S20). One at a time, highest first, under either
// policy: the set's only unavailable member, which the budget allows down; others after the
// progress deadline, the next when the one before is available or out of its own time. One
// that never was available on an abandoned revision waits for the budget alone.
func (s step) replaceLapsedMember() bool {
	for _, t := range slices.Backward(s.inside) {
		switch {
		case s.held(t) || !s.serving(t) || s.waitsForBusy(t) != nil:
			continue
		case s.neverWorked(t) && s.down() <= s.budget():
			s.stopOutOfTurn(t, "it was never available on it")
			return true
		case t.Ready: // and becomes available, or lapses
			continue
		}
		switch out := s.outage(t); {
		case !s.past(out, s.patience(t)):
		case s.coming():
			return false
		default:
			s.stopOutOfTurn(t, fmt.Sprintf("it was ready in this life, and has not been available for %d s", int(out.Seconds())))
			return true
		}
	}
	return false
}

// serving: the obsolete member is or was ready in this life, and nothing says that it cannot
// become available by itself.
func (r rollout) serving(t *memberState) bool {
	return r.obsolete(t) && !t.unseen() && !t.Available && t.wasReady() && r.broken(t) == ""
}

// lapsed: a member that was ready in this life has not been available for so long that one
// whose turn came does not wait for it any more.
func (r rollout) lapsed(t *memberState) bool {
	return r.serving(t) && !t.Ready && r.past(r.outage(t), lapse)
}

// coming: a member whose turn came has time still to become available.
func (r rollout) coming() bool {
	return slices.ContainsFunc(r.inside, func(t *memberState) bool { return r.arriving(t) && !r.overdue(t) })
}

func (r rollout) overdue(t *memberState) bool { return r.past(r.outage(t), r.term(t)) }

// term is all the time that a life may take to end, or to become available.
func (r rollout) term(t *memberState) time.Duration {
	limit := r.world.Set.Spec.ProgressDeadline()
	if t.stopping() {
		return limit + time.Duration(t.Member.GraceSeconds)*time.Second
	}
	return limit + r.allowance(t.Member.Revision)
}

// patience is how long an obsolete life may not be available until it is replaced.
func (r rollout) patience(t *memberState) time.Duration {
	switch {
	case !t.wasReady():
		return r.term(t)
	case r.unavailable() == 1:
		return lapse
	}
	return r.world.Set.Spec.ProgressDeadline()
}

// outage is how long a life has not been available.
func (r rollout) outage(t *memberState) time.Duration { return r.world.Outages[r.outageOf(t)] }

func (r rollout) outageOf(t *memberState) Outage {
	o := Outage{ID: t.ID, Token: t.Member.Token, Goal: t.Member.Goal}
	if n := r.node(t.Member.Node); n != nil && n.Session != nil {
		o.Session = n.Session.ID
	}
	return o
}

// outages are the lives whose outage is to be measured.
func (r rollout) outages() (list []Outage) {
	for _, t := range r.inside {
		if t.Member != nil && !t.Available {
			list = append(list, r.outageOf(t))
		}
	}
	return list
}
