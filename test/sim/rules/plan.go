package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// Judge judges plans by the world that each was made from.
type Judge struct {
	Fail  func(judge, format string, args ...any)
	Count func(what string)
	// Alive is the token of the process of an identity; zero: it has none.
	Alive func(spec.Identity) spec.Token
	// Changed: a life was ever ordered to change in place to a revision.
	Changed func(spec.Identity, spec.Token, spec.RevisionHash) bool

	stands  map[standKey]standing
	outages map[outageKey]time.Time // first seen
}

// Restored: another store takes the place of the one that was seen. All terms are over, and
// revisions begin anew.
func (j *Judge) Restored() {
	j.stands, j.outages = map[standKey]standing{}, map[outageKey]time.Time{}
}

// Plan judges the plan that a server made in a term, when its clock showed now.
func (j *Judge) Plan(server string, term int64, now time.Time, x plan.World, p plan.Plan) {
	if x.Set != nil && !Orphaned(x.Set) {
		x = j.promotions(x, p)
	}
	c := &planChecker{j, Read(x), p, now}
	for _, a := range p.Actions {
		if x.Set == nil || Orphaned(x.Set) {
			c.nobodys(a)
		}
	}
	if x.Set == nil {
		return
	}
	c.reasons()
	c.proof()
	c.order()
	c.updates()
	c.status()
	c.tooLong()
	c.names()
	key := standKey{server, term, x.Set.Ref}
	c.cures(key)
	c.rollout(key)
	for _, a := range p.Actions {
		j.Count(ActionName(a))
	}
	for _, b := range p.Blocked {
		j.Count("blocked: " + string(b.Reason))
	}
}

// planChecker judges one plan.
type planChecker struct {
	*Judge
	*Reading
	p   plan.Plan
	now time.Time // on the clock of the server that planned
}

// nobodys judges what is done for a set without an owner: of one that is gone, volumes
// that nobody can use go on their way; of an orphaned one it is noted what was seen.
func (c *planChecker) nobodys(a plan.Action) {
	switch a := a.(type) {
	case plan.RemoveClaim:
		if c.x.Claim != nil && c.x.Claim.Record != nil && c.x.Claim.Record.Deleting {
			c.Count("RemoveClaim")
			return
		}
	case plan.MarkReady, plan.MarkBootstrapped, plan.PutJobs:
		if c.x.Set != nil {
			return
		}
	case plan.VoidRequest, plan.VoidMoveRequest, plan.AdvanceMove, plan.FlipMove, plan.BackMove, plan.ForwardMove, plan.EndMove: // moves that there are end
		return
	case plan.ForgetBootstrapped:
		if c.x.Set == nil && !slices.ContainsFunc(c.x.Slots, keepsData) {
			c.Count("ForgetBootstrapped of a set that is gone")
			return
		}
	case plan.RestoreVolume:
		if c.x.Set == nil && c.Slot(a.Volume.ID.Ordinal).Member == nil {
			return
		}
	case plan.DropVolume:
		if c.x.Set == nil && c.Slot(a.ID.Ordinal).Member == nil {
			c.Count("DropVolume of a set that is gone")
			return
		}
	case plan.SetVolumes:
		if c.x.Set == nil && !slices.ContainsFunc(a.Volumes, func(v records.Volume) bool { return c.Slot(v.ID.Ordinal).Member != nil }) {
			c.Count("SetVolumes of a set that is gone")
			return
		}
	}
	if c.x.Set == nil {
		c.fail("absence", "%s is done for a set without a record", ActionName(a))
	} else {
		c.fail("orphans", "%s is done for an orphaned set", ActionName(a))
	}
}

// keepsData: a volume of the slot is not given up.
func keepsData(s plan.Slot) bool {
	for _, v := range s.Volumes {
		if v.Fate != records.FateReclaiming {
			return true
		}
	}
	return false
}

// ActionName is the kind of an action, with the reason of a start or a stop.
func ActionName(a plan.Action) string {
	switch a := a.(type) {
	case plan.Start:
		return "Start " + string(a.Member.Reason)
	case plan.Stop:
		return "Stop " + string(a.Reason)
	}
	return fmt.Sprintf("%T", a)[len("plan."):]
}

func (c *planChecker) fail(judge, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, a := range c.p.Actions {
		text += "; " + ActionName(a)
	}
	for _, b := range c.p.Blocked {
		text += "; " + b.ID.MemberName() + " " + string(b.Reason)
	}
	c.Judge.Fail(judge, "%s", text)
}

// reasons: each action says why, each wanted member that is not available says for
// what it waits, in one word and one sentence, once.
func (c *planChecker) reasons() {
	told := map[int]bool{}
	for _, b := range c.p.Blocked {
		if b.Reason == "" || b.Text == "" || told[b.ID.Ordinal] {
			c.fail("reasons", "%s waits for %q (%q), or says so twice", b.ID, b.Reason, b.Text)
		}
		told[b.ID.Ordinal] = true
	}
	for _, a := range c.p.Actions {
		switch a := a.(type) {
		case plan.Start:
			if a.Text == "" || a.Member.Reason == "" || a.Member.Token != a.Identity.LastToken {
				c.fail("reasons", "a start of %s without reason or with two tokens", a.Member.ID)
			}
		case plan.Stop:
			if a.Text == "" || a.Reason == "" {
				c.fail("reasons", "a stop of %s without reason", a.ID)
			}
		case plan.Forget:
			if a.Text == "" {
				c.fail("reasons", "%s is forgotten without a word", a.ID)
			}
		}
	}
	for _, o := range c.Wanted {
		if !c.Available(o) && !told[o] {
			c.fail("reasons", "%s is not available, and nothing says why", c.Name(o))
		}
	}
	for o, s := range c.Slots {
		if s.Member != nil && !c.IsWanted(o) && !c.Vacant(o) && !told[o] && !(Orphaned(c.x.Set) && c.Available(o)) {
			c.fail("reasons", "%s is surplus, and nothing says why it is still there", c.Name(o))
		}
	}
}

// proof: a life begins on a vacant seat, with a token above all of the identity, on a
// node with a session, with its own volumes; strays hold it up.
func (c *planChecker) proof() {
	for _, a := range c.p.Actions {
		switch a := a.(type) {
		case plan.Start:
			m := a.Member
			s := c.Slot(m.ID.Ordinal)
			last := spec.Token{}
			if s.Identity != nil {
				last = s.Identity.LastToken
			}
			switch {
			case !c.Vacant(m.ID.Ordinal):
				c.fail("proof", "%s gets %s, and nothing proves that %s is over", m.ID, m.Token, s.Member.Token)
			case m.Token.Compare(last) <= 0 || m.Token.Epoch != c.x.Epoch || m.Token.Number < c.x.Rev:
				c.fail("tokens", "%s gets %s after %s at revision %d of epoch %d", m.ID, m.Token, last, c.x.Rev, c.x.Epoch)
			case !c.live(&m):
				c.fail("placement", "%s is put on %s, which has no session", m.ID, m.Node)
			case m.Bound != boundOf(c.x.Set):
				c.fail("bound", "%s gets the bound %s", m.ID, m.Bound)
			case !c.IsWanted(m.ID.Ordinal):
				c.fail("churn", "%s begins, and nobody wants it", m.ID)
			}
			c.volumesOf(a, s)
		case plan.Forget:
			if !c.Vacant(a.ID.Ordinal) {
				c.fail("proof", "%s is forgotten, and nothing proves that it is over", a.ID)
			}
		}
	}
}

// volumesOf: a life uses the volumes that its identity has, where they are.
func (c *planChecker) volumesOf(a plan.Start, s *plan.Slot) {
	fresh := map[records.VolumeID]bool{}
	own := 0
	for _, v := range a.Volumes {
		fresh[v.UID] = true
		if v.ID != a.Member.ID {
			continue // of a claim
		}
		if old := s.Volumes[v.Claim]; old != nil && old.Fate != records.FateGone {
			c.fail("volumes", "%s gets a second volume for %s", a.Member.ID, v.Claim)
		}
	}
	for _, v := range a.Member.Volumes {
		if v.Object {
			c.claimOf(a, v, fresh[v.ID])
			continue
		}
		own++
		old := s.Volumes[v.Claim]
		if fresh[v.ID] {
			continue
		}
		if old == nil || old.UID != v.ID || old.Node != "" && old.Node != a.Member.Node && !old.Shared {
			c.fail("volumes", "%s begins on %s with volume %s, which is not its own there", a.Member.ID, a.Member.Node, v.ID)
		}
	}
	if own != len(c.x.Set.Spec.VolumeClaimTemplates) {
		c.fail("volumes", "%s begins with %d volumes", a.Member.ID, len(a.Member.Volumes))
	}
}

// status: what is counted agrees with itself and goes only forward.
func (c *planChecker) status() {
	s := c.p.Status
	if s.ReadyReplicas > s.Replicas || s.AvailableReplicas > s.ReadyReplicas || s.UpdatedReadyReplicas > s.UpdatedReplicas ||
		s.UpdatedAvailableReplicas > s.UpdatedReadyReplicas || s.ObservedGeneration != c.x.Set.Generation ||
		c.x.Status != nil && s.CollisionCount < c.x.Status.CollisionCount {
		c.fail("status", "the counts do not agree: %+v", s)
	}
}

// names: every life that runs is found under the set's service or the one before it, which the status
// names until no life has it any more (SEMANTICS, serviceName).
func (c *planChecker) names() {
	set, shown := c.x.Set.Service(), c.p.Status.ServiceName
	for o, s := range c.Slots {
		if s.Member == nil || c.Alive(s.ID) != s.Member.Token || s.Member.Service == set || s.Member.Service == shown {
			continue
		}
		if !slices.ContainsFunc(c.p.Actions, func(a plan.Action) bool { return begins(a, s.ID) }) {
			c.fail("names", "%s has the service %q, and found are %q and %q", c.Name(o), s.Member.Service, set, shown)
		}
	}
	for _, a := range c.p.Actions {
		if a, ok := a.(plan.Start); ok && a.Member.Service != set {
			c.fail("names", "%s begins with the service %q of a set with %q", a.Member.ID, a.Member.Service, set)
		}
	}
	if before := c.x.Status; before != nil && before.ServiceName != "" && before.ServiceName != set && shown == set {
		c.Count("rename complete")
	}
}

func begins(a plan.Action, id spec.Identity) bool {
	switch a := a.(type) {
	case plan.Start:
		return a.Member.ID == id
	case plan.Forget:
		return a.ID == id
	}
	return false
}
