package probe

import "github.com/stead-project/stead/spec"

// Kind is what a probe decides.
type Kind string

// The kinds. Startup: whether the container has started; until then the others do
// not run. Liveness: whether it must be restarted. Readiness: whether it is ready.
// Leader: whether it says that its member leads.
const (
	Startup   Kind = "startup"
	Liveness  Kind = "liveness"
	Readiness Kind = "readiness"
	Leader    Kind = "leader"
)

func (k Kind) of(c spec.Container) *spec.Probe {
	switch k {
	case Startup:
		return c.StartupProbe
	case Liveness:
		return c.LivenessProbe
	case Leader:
		return c.LeaderProbe
	default:
		return c.ReadinessProbe
	}
}

// Grace is what a container that the probe gave up has to end, in seconds; otherwise is the template's.
func (k Kind) Grace(c *spec.Container, otherwise int64) int64 {
	if k != Startup && k != Liveness {
		return otherwise
	}
	if p := k.of(*c); p != nil && p.TerminationGracePeriodSeconds != nil {
		return *p.TerminationGracePeriodSeconds
	}
	return otherwise
}

// Outcome is how one run of a probe ended.
type Outcome int

// The outcomes. Unknown: nothing was learnt (e.g. the runtime did not answer); it
// counts neither for nor against the container.
const (
	Unknown Outcome = iota
	Success
	Failure
)

// Result is one run of a probe. Cause says why it was no success, in words that are
// the same for the same cause; Detail adds what may differ each time.
type Result struct {
	Outcome Outcome
	Cause   string
	Detail  string
	Term    uint64 // what a command that succeeded wrote, if that is a number
}

// Health is how a running container is.
type Health struct {
	// Started: the startup probe has passed, or there is none.
	Started bool
	Ready   bool
	// Leads, in Term: the leader probe says so.
	Leads bool
	Term  uint64
	// Failed: the startup or liveness probe gave the container up; it is final. By is which of them.
	Failed  bool
	By      Kind
	Message string // why it is not ready or was given up, for people
}

// State is a container's health and the results that led to it.
type State struct {
	Health
	container spec.Container
	counters  [4]counter
	cause     string // of Message, without detail
}

// Begin is the state of a container that runs and was not probed yet. Of an
// adopted one the health that was known is kept.
func Begin(c spec.Container, adopted bool, known Health) State {
	s := State{container: c}
	if adopted {
		s.Started, s.Ready, s.Failed, s.By = known.Started, known.Ready, known.Failed, known.By
		s.Leads, s.Term = known.Leads, known.Term
	}
	s.Started = s.Started || c.StartupProbe == nil
	if s.Started && c.ReadinessProbe == nil {
		s.Ready = !s.Failed
	}
	switch {
	case s.Failed:
		s.Message = known.Message
	case !s.Started:
		s.Message = "waiting for the startup probe"
	case !s.Ready:
		s.Message = "waiting for the readiness probe"
	}
	return s
}

// Next is the state after one more result. A probe's verdict changes only after as
// many results in a row as its threshold says; a result between, or an unknown one,
// changes at most the message. Results of probes that may not run yet, and any
// after Failed, change nothing.
func Next(s State, kind Kind, r Result) State {
	probe := kind.of(s.container)
	if s.Failed || probe == nil || (kind == Startup) == s.Started {
		return s
	}
	i := map[Kind]int{Startup: 0, Liveness: 1, Readiness: 2, Leader: 3}[kind]
	s.counters[i] = s.counters[i].next(r.Outcome)
	switch verdict := s.counters[i].verdict(*probe); {
	case kind == Leader:
		return s.lead(verdict, r)
	case verdict == Failure && kind == Readiness:
		s.Ready = false
	case verdict == Failure:
		s.Failed, s.By, s.Ready = true, kind, false
		s.Leads, s.Term = false, 0
	case verdict == Success && kind == Startup:
		s.Started = true
		s.Ready = s.container.ReadinessProbe == nil
		s = s.say("waiting for the readiness probe", "")
	case verdict == Success && kind == Readiness:
		s.Ready = true
	}
	switch {
	case s.Ready:
		s.Message, s.cause = "", ""
	case r.Outcome != Success && (kind != Liveness || s.Failed):
		s = s.say(string(kind)+" probe: "+r.Cause, r.Detail)
	}
	return s
}

// lead is the state after a result of the leader probe, which says nothing of the container's health.
func (s State) lead(verdict Outcome, r Result) State {
	switch {
	case verdict == Failure:
		s.Leads, s.Term = false, 0
	case verdict == Success && r.Outcome == Success:
		s.Leads, s.Term = true, r.Term
	}
	return s
}

// say sets the message, unless it already is of the same cause: a detail that
// differs each time is no change of health.
func (s State) say(cause, detail string) State {
	if cause == s.cause {
		return s
	}
	s.cause, s.Message = cause, cause
	if detail != "" {
		s.Message += ": " + detail
	}
	return s
}

// counter counts results of one kind in a row.
type counter struct {
	last Outcome
	row  int32
}

func (c counter) next(o Outcome) counter {
	switch {
	case o == Unknown:
		return c
	case o != c.last:
		return counter{last: o, row: 1}
	case c.row < 1<<30:
		c.row++
	}
	return c
}

// verdict is what so many results prove, by the thresholds (defaults: 1 success, 3 failures);
// Unknown: nothing yet.
func (c counter) verdict(p spec.Probe) Outcome {
	success, failure := p.SuccessThreshold, p.FailureThreshold
	if success <= 0 {
		success = 1
	}
	if failure <= 0 {
		failure = 3
	}
	switch {
	case c.last == Success && c.row >= success:
		return Success
	case c.last == Failure && c.row >= failure:
		return Failure
	}
	return Unknown
}
