package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// plan judges one plan by the world it was made from.
func (j *judge) plan(s *server, x plan.World, p plan.Plan) {
	c := &planChecker{j.w, newReading(x), p, s.now()}
	for _, a := range p.Actions {
		if x.Set == nil || orphaned(x.Set) {
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
	c.names()
	key := standKey{s.name, int64(s.lead.Created), x.Set.Ref}
	c.cures(key)
	c.rollout(key)
	for _, a := range p.Actions {
		j.w.count(actionName(a))
	}
	for _, b := range p.Blocked {
		j.w.count("blocked: " + string(b.Reason))
	}
}

// planChecker judges one plan.
type planChecker struct {
	w *Cluster
	*reading
	p   plan.Plan
	now time.Time // on the clock of the server that planned
}

// nobodys judges what is done for a set without an owner: of one that is gone, volumes
// that nobody can use go on their way; of an orphaned one it is noted what was seen.
func (c *planChecker) nobodys(a plan.Action) {
	switch a := a.(type) {
	case plan.MarkReady, plan.MarkBootstrapped:
		if c.x.Set != nil {
			return
		}
	case plan.VoidRequest:
		return
	case plan.ForgetBootstrapped:
		if c.x.Set == nil && !slices.ContainsFunc(c.x.Slots, keepsData) {
			c.w.count("ForgetBootstrapped of a set that is gone")
			return
		}
	case plan.RestoreVolume:
		if c.x.Set == nil && c.slot(a.Volume.ID.Ordinal).Member == nil {
			return
		}
	case plan.DropVolume:
		if c.x.Set == nil && c.slot(a.ID.Ordinal).Member == nil {
			c.w.count("DropVolume of a set that is gone")
			return
		}
	case plan.SetVolumes:
		if c.x.Set == nil && !slices.ContainsFunc(a.Volumes, func(v records.Volume) bool { return c.slot(v.ID.Ordinal).Member != nil }) {
			c.w.count("SetVolumes of a set that is gone")
			return
		}
	}
	if c.x.Set == nil {
		c.fail("absence", "%s is done for a set without a record", actionName(a))
	} else {
		c.fail("orphans", "%s is done for an orphaned set", actionName(a))
	}
}

func keepsData(s plan.Slot) bool {
	for _, v := range s.Volumes {
		if v.Fate != records.FateReclaiming {
			return true
		}
	}
	return false
}

func actionName(a plan.Action) string {
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
		text += "; " + actionName(a)
	}
	for _, b := range c.p.Blocked {
		text += "; " + b.ID.MemberName() + " " + string(b.Reason)
	}
	c.w.fail(judge, "%s", text)
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
	for _, o := range c.wanted {
		if !c.available(o) && !told[o] {
			c.fail("reasons", "%s is not available, and nothing says why", c.name(o))
		}
	}
	for o, s := range c.slots {
		if s.Member != nil && !c.isWanted(o) && !c.vacant(o) && !told[o] && !(orphaned(c.x.Set) && c.available(o)) {
			c.fail("reasons", "%s is surplus, and nothing says why it is still there", c.name(o))
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
			s := c.slot(m.ID.Ordinal)
			last := spec.Token{}
			if s.Identity != nil {
				last = s.Identity.LastToken
			}
			switch {
			case !c.vacant(m.ID.Ordinal):
				c.fail("proof", "%s gets %s, and nothing proves that %s is over", m.ID, m.Token, s.Member.Token)
			case m.Token.Compare(last) <= 0 || m.Token.Epoch != c.x.Epoch || m.Token.Number < c.x.Rev:
				c.fail("tokens", "%s gets %s after %s at revision %d of epoch %d", m.ID, m.Token, last, c.x.Rev, c.x.Epoch)
			case !c.live(&m):
				c.fail("placement", "%s is put on %s, which has no session", m.ID, m.Node)
			case m.Bound != boundOf(c.x.Set):
				c.fail("bound", "%s gets the bound %s", m.ID, m.Bound)
			case !c.isWanted(m.ID.Ordinal):
				c.fail("churn", "%s begins, and nobody wants it", m.ID)
			}
			c.volumesOf(a, s)
		case plan.Forget:
			if !c.vacant(a.ID.Ordinal) {
				c.fail("proof", "%s is forgotten, and nothing proves that it is over", a.ID)
			}
		}
	}
}

// volumesOf: a life uses the volumes that its identity has, where they are.
func (c *planChecker) volumesOf(a plan.Start, s *plan.Slot) {
	fresh := map[records.VolumeID]bool{}
	for _, v := range a.Volumes {
		fresh[v.UID] = true
		if old := s.Volumes[v.Claim]; old != nil && old.Fate != records.FateGone {
			c.fail("volumes", "%s gets a second volume for %s", a.Member.ID, v.Claim)
		}
	}
	for _, v := range a.Member.Volumes {
		old := s.Volumes[v.Claim]
		if fresh[v.ID] {
			continue
		}
		if old == nil || old.UID != v.ID || old.Node != "" && old.Node != a.Member.Node && !old.Shared {
			c.fail("volumes", "%s begins on %s with volume %s, which is not its own there", a.Member.ID, a.Member.Node, v.ID)
		}
	}
	if len(a.Member.Volumes) != len(c.x.Set.Spec.VolumeClaimTemplates) {
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
