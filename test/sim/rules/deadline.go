package rules

import (
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// standKey is one term of one server about one set: a new leader measures anew.
type standKey struct {
	server string
	term   int64
	ref    spec.SetRef
}

// standing is how long a rollout has stood still, as the judge counts it.
type standing struct {
	aim     spec.RevisionHash
	arrived int
	newest  spec.Token
	counted time.Duration
	runs    bool // the clock does, since at
	at      time.Time
}

// rollout judges rules 8 and 9: what is complete, since when nothing moves, and what is
// given up for it.
func (c *planChecker) rollout(key standKey) {
	s, old, x := c.p.Status, c.x.Status, c.x.Set
	done, current, completed := c.completed()
	if s.CurrentRevision != current || s.CurrentCompleted != completed {
		c.fail("completion", "the current revision becomes %s (completed %v) after %s: complete is %v, so that it is %s (%v)",
			s.CurrentRevision, s.CurrentCompleted, c.current(), done, current, completed)
	}
	now := c.stand(key, current, completed)
	limit := c.deadline()
	stalled := now.runs && now.counted >= limit
	said := condition(s, plan.ConditionStalled)
	switch {
	case stalled != (said.Status == "True"):
		c.fail("deadline", "nothing moved for %s of %s (counting %v), and Stalled is %q", now.counted, limit, now.runs, said.Status)
	case stalled && !strings.Contains(said.Message, string(x.Ref.Name)+"-"):
		c.fail("deadline", "it is Stalled, and no member is named: %q", said.Message)
	}
	if stalled {
		c.Count("Stalled")
	}
	r := x.Spec.UpdateStrategy.RollingUpdate
	back := stalled && r != nil && r.OnFailure == spec.OnFailureRollback && completed
	switch was := old != nil && old.RolledBackFrom == c.x.TemplateHash; {
	case was && s.RolledBackFrom != c.x.TemplateHash:
		c.fail("rollback", "%s was given up, and is tried again", c.x.TemplateHash)
	case was:
	case back != (s.RolledBackFrom != ""):
		c.fail("rollback", "%q is given up; to be given up is %s: %v", s.RolledBackFrom, c.x.TemplateHash, back)
	case s.RolledBackFrom != "" && s.RolledBackFrom != c.x.TemplateHash:
		c.fail("rollback", "%s is given up, and the template is %s", s.RolledBackFrom, c.x.TemplateHash)
	case back:
		c.Count("Rollback")
	}
}

// completed: every wanted member is available on the template, which was not given up,
// and nobody holds the rollout. With nobody wanted that proves nothing of it.
func (c *planChecker) completed() (done bool, current spec.RevisionHash, completed bool) {
	current = c.current()
	completed = c.x.Status != nil && c.x.Status.CurrentRevision == current && c.x.Status.CurrentCompleted
	if c.x.Set.Deleting || c.x.Set.Orphaned || c.x.Set.Paused || c.rolledBack() || c.halted() {
		return false, current, completed
	}
	for _, o := range c.Wanted {
		if !c.stays(o) || c.Slot(o).Member.Revision != c.x.TemplateHash {
			return false, current, completed
		}
	}
	return true, c.x.TemplateHash, len(c.Wanted) > 0 || completed && current == c.x.TemplateHash
}

// stays: the member is available, and is not ended by the plan.
func (c *planChecker) stays(o int) bool { return c.Available(o) && !c.stopped(o) }

// stand counts on: the clock runs while the rollout is neither complete nor paused and a
// member waits, for another than a busy one; a member that was never available on the aim, or a life that was not,
// begins it anew.
func (c *planChecker) stand(key standKey, current spec.RevisionHash, completed bool) standing {
	all, clock := c.stands, c.now
	old := all[key]
	if c.x.Set.Deleting || c.x.Set.Orphaned || c.halted() {
		delete(all, key)
		return standing{}
	}
	now := standing{aim: c.aim(), newest: old.newest, counted: old.counted, at: clock}
	if old.runs {
		now.counted += clock.Sub(old.at)
	}
	waits, absent := false, false
	for _, o := range c.Wanted {
		s := c.Slot(o)
		absent = absent || c.awaitsNode(o) || c.heldByMove(o)
		if c.stays(o) && s.Member.Token.Compare(now.newest) > 0 {
			now.newest = s.Member.Token
		}
		if c.stays(o) && s.Member.Revision == now.aim || s.Identity != nil && s.Identity.AvailableOn == now.aim {
			now.arrived++
		}
		waits = waits || !c.stays(o) || s.Request != nil || !c.below(o) && c.obsolete(o) && c.x.Set.Spec.UpdateStrategy.Type != spec.OnDeleteStrategy
	}
	if now.aim != old.aim || now.arrived > old.arrived || now.newest != old.newest {
		now.counted = 0
	}
	now.runs = waits && !absent && !c.awaitsBusy() && !c.x.Set.Paused && !c.halted() && (current != c.x.TemplateHash || !completed)
	all[key] = now
	return now
}

func condition(s records.SetStatus, kind string) records.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return records.Condition{}
}
