package engine

import (
	"slices"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// The rest before a life that follows failed ones: none before the first, then
// doubling. Restarts in place are the agent's; this is for lives that are refused
// or end as soon as they start.
const (
	firstRest  = time.Second
	longRest   = 5 * time.Minute
	forgetRest = 10 * time.Minute // a failure so long ago counts no more
)

// replaceBackoff counts replacements of an identity's lives, in this term.
type replaceBackoff map[spec.Identity]replacements

type replacements struct {
	count int
	last  time.Time
}

// replaced notes that a life was started in the place of a failed one.
func (t replaceBackoff) replaced(id spec.Identity, now time.Time) {
	x := t[id]
	if now.Sub(x.last) > forgetRest {
		x.count = 0
	}
	t[id] = replacements{x.count + 1, now}
}

// waits are the times that failed lives have to wait still, by the reports of the present ones; an
// identity that is ready has no failures any more.
func (t replaceBackoff) waits(reportOf func(spec.Identity) *records.Report, now time.Time) map[spec.Identity]time.Duration {
	if len(t) == 0 {
		return nil
	}
	rests := map[spec.Identity]time.Duration{}
	for id, x := range t {
		report := reportOf(id)
		if report == nil {
			continue
		}
		if report.Ready {
			delete(t, id)
			continue
		}
		if left := x.last.Add(backoff.After(firstRest, longRest, x.count)).Sub(now); report.Phase.Over() && left > 0 {
			rests[id] = left
		}
	}
	return rests
}

// outages holds since when lives are not available, on this leader's monotonic clock; a new
// leader starts each wait again (SAFETY S18). It does not change.
type outages map[plan.Outage]time.Time

// measure is how long each lasts at now.
func (o outages) measure(now time.Time) map[plan.Outage]time.Duration {
	if len(o) == 0 {
		return nil
	}
	last := make(map[plan.Outage]time.Duration, len(o))
	for x, since := range o {
		last[x] = now.Sub(since)
	}
	return last
}

// observe returns those that a plan made at now names; what it does not name is over.
func (o outages) observe(named []plan.Outage, now time.Time) outages {
	if len(named) == 0 {
		return nil
	}
	still := make(outages, len(named))
	for _, x := range named {
		still[x] = now
		if since, known := o[x]; known {
			still[x] = since
		}
	}
	return still
}

// stallTimer counts how long a rollout has not come further, on this leader's
// monotonic clock and only while the planner says that it counts; a new leader starts
// again.
type stallTimer struct {
	reached plan.Progress
	counted time.Duration
	since   time.Time // counting since then; zero: stopped
}

// measure is the time that was counted until now.
func (s *stallTimer) measure(now time.Time) time.Duration {
	if s.since.IsZero() {
		return s.counted
	}
	return s.counted + now.Sub(s.since)
}

// observe takes over what a plan made at now says of the rollout.
func (s *stallTimer) observe(p plan.Plan, now time.Time) {
	s.counted = s.measure(now)
	if p.Reached.Beyond(s.reached) {
		s.counted = 0
	}
	s.reached, s.since = p.Reached, time.Time{}
	if p.Clock {
		s.since = now
	}
}

// placement is what a term remembers of sets that share nodes. No transaction guards
// that a node is not promised twice: one leader decides, one set after the other, and
// evaluates only when the cache shows what it decided for the others.
type placement struct {
	lastStart store.Rev            // of the last commit that began a life
	lastAvoid store.Rev            // of the last that began one of a set with required anti-affinity, which may concern any
	waiting   map[spec.SetRef]bool // were evaluated before the cache showed that commit
	unplaced  map[spec.SetRef]bool // have a member that no node can take
}

// mustWait: the set's members would be placed before the lives are seen that began last.
func (p *placement) mustWait(ref spec.SetRef, rev store.Rev, w *plan.World) bool {
	if rev >= p.lastAvoid && (rev >= p.lastStart || !sharesNodes(w)) {
		return false
	}
	p.waiting[ref] = true
	return true
}

// began notes that lives of a set begin with the commit of a revision.
func (p *placement) began(rev store.Rev, avoiding bool) {
	p.lastStart = max(p.lastStart, rev)
	if avoiding {
		p.lastAvoid = max(p.lastAvoid, rev)
	}
}

// avoids: a life of the set may have required anti-affinity.
func avoids(w *plan.World) bool {
	return w.Set.Spec.Template.Spec.Avoiding() ||
		slices.ContainsFunc(w.Revisions, func(r *records.Revision) bool { return r.Template.Spec.Avoiding() })
}

// sharesNodes: it matters to the set what else runs on a node.
func sharesNodes(w *plan.World) bool {
	t := &w.Set.Spec.Template.Spec
	cpu, memory := t.Requests()
	return cpu > 0 || memory > 0 || t.HugePages() != (scalar.HugePages{}) || t.Constrained() || len(w.Set.Spec.Members) > 0 || len(w.Nodes) > 0 && w.Nodes[0].Residents != nil
}

// observe keeps whether a member of the set waits for a node.
func (p *placement) observe(ref spec.SetRef, blocked []plan.Blocked) {
	delete(p.unplaced, ref)
	if slices.ContainsFunc(blocked, func(b plan.Blocked) bool {
		return b.Reason == causes.BlockedNoNode || b.Reason == causes.BlockedNoRoom || b.Reason == causes.BlockedPressure || b.Reason == causes.BlockedHostPort
	}) {
		p.unplaced[ref] = true
	}
}

// enqueueWaiting pushes the sets for which what is shown at rev may be what they waited for: the life that began last, or
// (room) that another left its node.
func (p *placement) enqueueWaiting(rev store.Rev, room bool, push func(spec.SetRef)) {
	if rev >= p.lastStart {
		for ref := range p.waiting {
			push(ref)
		}
		clear(p.waiting)
	}
	if room {
		for ref := range p.unplaced {
			push(ref)
		}
	}
}

func (p *placement) forget(ref spec.SetRef) {
	delete(p.waiting, ref)
	delete(p.unplaced, ref)
}
