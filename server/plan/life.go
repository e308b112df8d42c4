package plan

import (
	"fmt"
	"maps"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// defaultGraceSeconds is used when a template says nothing.
const defaultGraceSeconds = 30

// start makes the life that begins for a vacant member: node, token, address and
// volumes. Why it cannot begin comes back instead.
func (s step) start(t *memberState) (a Start, no *place.Refusal) {
	request := s.request(t)
	node, no := s.placer.Choose(request)
	if no != nil {
		return a, no
	}
	rec := records.IdentityRecord{ID: t.id}
	if t.identity != nil {
		rec = *t.identity
		rec.VolumeNumbers = maps.Clone(rec.VolumeNumbers)
	}
	rec.LastToken = s.token(t)
	rec.Due = s.due(t)
	if no := s.storage(t, &rec, node, &a); no != nil {
		return a, no
	}
	if !rec.Address.IsValid() {
		if s.freeUsed == len(s.world.Free) {
			return a, &place.Refusal{Reason: causes.BlockedAddress, Text: "no address is free: none is assigned while a node runs lives that the store does not know, freed addresses are held back for a while, and the range of members' addresses may be used up"}
		}
		rec.Address = s.world.Free[s.freeUsed]
		s.freeUsed++
		a.NewAddress = true
	}
	a.Identity, a.Lost = rec, t.lostTo()
	a.Member = records.Member{
		ID: t.id, SetUID: s.world.Set.UID, Token: rec.LastToken, Goal: records.GoalRun, Reason: s.reason(t),
		Revision: rec.Due, Node: node.Node.Name, NodeUID: node.Node.UID, Boot: node.Session.Boot,
		Address: rec.Address, Bound: s.bound(), Service: s.world.Set.Service(), GraceSeconds: s.grace(rec.Due), Volumes: a.Member.Volumes, BeganAt: s.world.Now,
	}
	a.Text = fmt.Sprintf("%s starts as token %s of revision %s on node %s: %s",
		t.id.MemberName(), rec.LastToken, rec.Due, node.Node.Name, s.because(t, a.Member.Reason))
	s.placer.Take(request, node.Node.Name)
	return a, nil
}

// request is what the next life of a member asks of its node.
func (s step) request(t *memberState) *place.Request {
	r := &place.Request{
		ID: t.id, Template: s.runs(s.due(t)), Labels: s.world.Set.Spec.Template.Metadata.Labels, Guarded: s.bound() != 0,
		Claims: s.world.Set.Spec.VolumeClaimTemplates, Volumes: t.volumes, LeftOn: t.leftOn(),
	}
	if t.member != nil {
		r.Before, r.Ran = t.member.Node, s.runs(t.member.Revision)
	}
	return r
}

// runs is what members of a revision run; nothing of one that is not known.
func (f *facts) runs(h spec.RevisionHash) *spec.MemberSpec {
	if t := f.template(h); t != nil {
		return &t.Spec
	}
	return &spec.MemberSpec{}
}

// bound is that of the lives that the set begins; 0: they are not guarded.
func (f *facts) bound() time.Duration { return f.world.Set.Spec.Bound() }

// because is the reason of a life in words.
func (e explainer) because(t *memberState, reason records.Reason) string {
	if reason != records.ReasonReplace {
		return string(reason)
	}
	return fmt.Sprintf("%s, token %s has ended (%s)", reason, t.member.Token, t.endedText())
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
