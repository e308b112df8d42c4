package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// create gives a life to members in range that have none (rule 3) or whose life is proven gone
// (rule 4): the same vacancy. OrderedReady: one at a time, each after all before it are
// available. It reports whether the next rule may run: every member in range is available, or
// the policy is Parallel. disturbed: one was taken down in this step already, so that none
// starts and all only say what they wait for.
func (s step) create(disturbed bool) bool {
	if !s.ordered() {
		for _, t := range s.inside {
			if !t.Available {
				s.ensureStarted(t, disturbed)
			}
		}
		return true
	}
	var held string // by a broken member that yields to a higher one
	for at, t := range s.inside {
		switch {
		case t.Available:
			continue
		case s.defersTo(t, at):
			s.blockWaiting(t)
			held = fmt.Sprintf("waiting for %s: %s", t.ID.MemberName(), s.stateText(t))
			s.plan.Unfold = s.plan.Unfold || s.foldedVacant() > 0 // they need not all wait for the same
			continue
		case held != "" && t.vacant() && !s.turned(t):
			s.block(t, causes.BlockedPredecessor, held)
			continue
		}
		text := fmt.Sprintf("waiting for %s: %s", t.ID.MemberName(), s.ensureStarted(t, disturbed).Text)
		for _, later := range s.inside[at+1:] {
			if later.vacant() {
				s.block(later, causes.BlockedPredecessor, text)
			} else if !later.Available {
				s.blockWaiting(later)
			}
		}
		s.holdSurplus(text)
		return false
	}
	return true
}

// defersTo: the member is off its target, and broken or lapsed, and a higher one whose turn
// came returns on its target before this one is replaced in its turn.
func (r rollout) defersTo(t *memberState, at int) bool {
	if !r.replacesBroken() || r.broken(t) == "" && !r.lapsed(t) {
		return false
	}
	return slices.ContainsFunc(r.inside[at+1:], r.arriving)
}

// ensureStarted starts the life of a vacant member if it can. It always says what a member that
// is not available waits for, and returns it.
func (s step) ensureStarted(t *memberState, disturbed bool) *Blocked {
	switch rest := s.world.Rest[t.ID]; {
	case !t.vacant():
		return s.blockWaiting(t)
	case s.ofMoves().heldByMove(t.memberFacts):
		reason, text := s.movingText(t)
		return s.block(t, reason, text)
	case t.moveWritten:
		return s.block(t, causes.BlockedMoving, "its move has come further; it starts when that is recorded")
	case disturbed:
		return s.block(t, causes.BlockedTurn, "another member is replaced first")
	case t.volumesKept:
		return s.block(t, causes.BlockedTurn, "waiting until it is recorded that its volumes are kept")
	case len(t.Strays) > 0:
		return s.block(t, causes.BlockedStray, t.strayText()+"; a second one must not start")
	case t.Over && rest > 0 && s.due(t) == t.Member.Revision:
		s.wake(rest)
		return s.block(t, causes.BlockedBackOff, "its last starts failed one after another; waiting before the next attempt: "+t.endedText())
	}
	no := unknowns(s).heldByRival(t)
	if no == nil {
		no = s.awaitsForgetting(t)
	}
	if no != nil {
		return s.block(t, no.Reason, no.Text)
	}
	start, no := s.start(t)
	if no != nil {
		return s.block(t, no.Reason, no.Text)
	}
	s.act(start)
	t.become(t.afterStart(&start))
	return s.blockWaiting(t)
}

// reason says why a new life is started.
func (s step) reason(t *memberState) records.Reason {
	if t.Member != nil { // its last life is over
		switch {
		case t.Member.Goal == records.GoalRun:
			return records.ReasonReplace
		case !t.Member.StopReason.IsUnwanted():
			return t.Member.StopReason
		}
	}
	if !s.initial().Has(t.ID.Ordinal) {
		return records.ReasonScaleUp
	}
	return records.ReasonCreate
}

// defaultGraceSeconds is used when a template says nothing.
const defaultGraceSeconds = 30

// start makes the life of a vacant member, or says why it cannot start.
func (s step) start(t *memberState) (a Start, no *place.Refusal) {
	request := s.request(t)
	request.Objects, no = s.objects(t, request.Template)
	if no != nil {
		return a, no
	}
	node, no := s.placer.Choose(request)
	if no != nil {
		return a, no
	}
	rec := records.IdentityRecord{ID: t.ID}
	if t.Identity != nil {
		rec = *t.Identity
	}
	rec.LastToken = s.token(t)
	rec.Due, rec.Gone = s.due(t), nil
	if no := s.storage(t, &rec, node, &a); no != nil {
		return a, no
	}
	s.giveObjects(request.Objects, &rec, node, &a)
	onHost := request.Template.HostNetwork
	if !rec.Address.IsValid() && !onHost {
		if s.freeUsed == len(s.world.Free) {
			return a, &place.Refusal{Reason: causes.BlockedAddress, Text: "no address is free: none is assigned while a node runs lives that the store does not know, freed addresses are held back for a while, and the range of members' addresses may be used up"}
		}
		rec.Address = s.world.Free[s.freeUsed]
		s.freeUsed++
		a.NewAddress = true
	}
	a.Identity, a.Lost = rec, t.lostTo()
	a.Member = records.Member{
		ID: t.ID, SetUID: s.world.Set.UID, Token: rec.LastToken, Goal: records.GoalRun, Reason: s.reason(t),
		Revision: rec.Due, Node: node.Node.Name, NodeUID: node.Node.UID, Boot: node.Session.Boot,
		Address: rec.Address, Bound: s.bound(), Service: s.world.Set.Service(), GraceSeconds: s.grace(rec.Due), Volumes: a.Member.Volumes, BeganAt: s.world.Now,
	}
	if onHost {
		a.Member.Address, a.Member.HostNetwork = node.Facts.Address(), true
	}
	a.Text = fmt.Sprintf("%s starts as token %s of revision %s on node %s: %s",
		t.ID.MemberName(), rec.LastToken, rec.Due, node.Node.Name, s.because(t, a.Member.Reason))
	if short := node.Facts.ShortOf(); short != "" {
		a.Text += "; that node has " + short
	}
	s.placer.Take(request, node.Node.Name)
	s.claim(&a)
	return a, nil
}

// request is what the next life of a member asks of its node.
func (s step) request(t *memberState) *place.Request {
	r := &place.Request{
		ID: t.ID, Template: s.runs(s.due(t), t.ID.Ordinal), Labels: s.world.Set.Spec.Template.Metadata.Labels, Revision: s.due(t), Guarded: s.bound() != 0, Isolated: s.world.Isolated,
		Claims: s.world.Set.Spec.VolumeClaimTemplates, Volumes: t.Volumes, LeftOn: t.Left,
	}
	if t.Member != nil {
		r.Before, r.Ran = t.Member.Node, s.runs(t.Member.Revision, t.ID.Ordinal)
		if t.Member.Change != nil {
			r.RanAlso = s.runs(t.Member.Runs(), t.ID.Ordinal)
		}
	}
	return r
}

// bound is that of the lives that the set begins; 0: they are not guarded.
func (f *facts) bound() time.Duration { return f.world.Set.Spec.Bound() }

// because is the reason of a life in words.
func (e explainer) because(t *memberState, reason records.Reason) string {
	if reason != records.ReasonReplace {
		return string(reason)
	}
	return fmt.Sprintf("%s, token %s has ended (%s)", reason, t.Member.Token, t.endedText())
}

// token is higher than any the identity had, and than any other life's decided on
// an older picture (SAFETY S7).
func (s step) token(t *memberState) spec.Token {
	return spec.Token{Epoch: s.world.Epoch, Number: max(s.world.Rev, t.lastToken().Number+1)}
}

func (f *facts) grace(h spec.RevisionHash) int64 {
	if n := f.template(h).Spec.TerminationGracePeriodSeconds; n != nil {
		return *n
	}
	return defaultGraceSeconds
}

// storage finds the volume of each claim for the life that a starts on node, and makes those that
// were never made; rec gets their numbers. A volume that has a record is used or waited for,
// never made a second time (promise 2). One about which its node has an order is waited for
// also when the set does not have its claim any more. A shared one comes along.
func (s volumes) storage(t *memberState, rec *records.IdentityRecord, node *Node, a *Start) *place.Refusal {
	for _, claim := range inOrder(t.Volumes) {
		if v := t.Volumes[claim]; v.Fate.Ordered() {
			return s.givenUp(v, t.Said[claim])
		}
	}
	for i := range s.world.Set.Spec.VolumeClaimTemplates {
		c := &s.world.Set.Spec.VolumeClaimTemplates[i]
		name := spec.ClaimName(c.Metadata.Name)
		v := t.Volumes[name]
		switch {
		case v == nil:
			v = s.newVolume(t, c, rec, node)
			a.Volumes = append(a.Volumes, *v)
		case v.Class != c.Spec.Class(): // a larger volume serves, and a smaller one has grown before (see keepVolumes)
			return &place.Refusal{Reason: causes.BlockedVolume, Text: fmt.Sprintf(
				"its volume of the claim %s is of class %s, but %s is asked for; change the claim back, or scale the member away and give up the volume",
				name, v.Class, c.Spec.Class())}
		case v.Shared && v.Node != node.Node.Name:
			moved := *v
			moved.Node = node.Node.Name
			a.Moved = append(a.Moved, moved)
		}
		a.Member.Volumes = append(a.Member.Volumes, records.MemberVolume{
			Claim: name, ID: v.UID, Number: v.Number, Class: v.Class, SizeBytes: v.SizeBytes,
			Shared: v.Shared, Fenced: v.Shared && node.Facts.FencesClass(v.Class),
		})
	}
	return nil
}

func (s volumes) newVolume(t *memberState, c *spec.ClaimTemplate, rec *records.IdentityRecord, node *Node) *records.Volume {
	name := spec.ClaimName(c.Metadata.Name)
	rec.VolumeNumbers = with(rec.VolumeNumbers, name, rec.VolumeNumbers[name]+1)
	return &records.Volume{
		ID: t.ID, Claim: name, UID: s.world.VolumeID(), Number: rec.VolumeNumbers[name], Class: c.Spec.Class(),
		Node: node.Node.Name, Shared: node.Facts.SharesClass(c.Spec.Class()), SizeBytes: sizeOf(c), Fate: records.FateKeep, CreatedAt: s.world.Now, TrashAfter: trash(c),
		Labels: s.world.Set.Spec.ClaimLabels(c),
	}
}

func sizeOf(c *spec.ClaimTemplate) int64 { return c.Spec.Resources.Requests["storage"].Value() }
