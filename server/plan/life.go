package plan

import (
	"fmt"
	"maps"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/spec"
)

// defaultGraceSeconds is used when a template says nothing.
const defaultGraceSeconds = 30

// start makes the life that begins on a vacant seat: node, token, address and
// volumes. A reason and a sentence come back instead when it cannot begin.
func (s *step) start(t *seat) (a Start, reason spec.BlockedReason, text string) {
	request := s.request(t)
	node, no := s.placer.Choose(request)
	if no != nil {
		return a, no.Reason, no.Text
	}
	rec := records.IdentityRecord{ID: t.id}
	if t.identity != nil {
		rec = *t.identity
		rec.VolumeNumbers = maps.Clone(rec.VolumeNumbers)
	}
	rec.LastToken = s.token(t)
	rec.Due = s.due(t)
	if reason, text := s.storage(t, &rec, node, &a); reason != "" {
		return a, reason, text
	}
	if !rec.Address.IsValid() {
		if s.freeUsed == len(s.w.Free) {
			return a, spec.BlockedAddress, "no address is free for it: none is given while a node runs lives that the store does not know, freed ones rest for a while, and the range of members' addresses may be used up"
		}
		rec.Address = s.w.Free[s.freeUsed]
		s.freeUsed++
		a.NewAddress = true
	}
	a.Identity, a.Lost = rec, t.lostTo()
	a.Member = records.Member{
		ID: t.id, SetUID: s.w.Set.UID, Token: rec.LastToken, Goal: records.GoalRun, Reason: s.reason(t),
		Revision: rec.Due, Node: node.Node.Name, NodeUID: node.Node.UID, Boot: node.Session.Boot,
		Address: rec.Address, Bound: s.bound(), Service: s.w.Set.Service(), GraceSeconds: s.grace(rec.Due), Volumes: a.Member.Volumes, BeganAt: s.w.Now,
	}
	a.Text = fmt.Sprintf("%s begins token %s of revision %s on node %s: %s",
		t.id.MemberName(), rec.LastToken, rec.Due, node.Node.Name, s.because(t, a.Member.Reason))
	s.placer.Take(request, node.Node.Name)
	return a, "", ""
}

// request is what the next life of a seat asks of its node.
func (s *step) request(t *seat) *place.Request {
	r := &place.Request{
		ID: t.id, Template: s.runs(s.due(t)), Labels: s.w.Set.Spec.Template.Metadata.Labels, Guarded: s.bound() != 0,
		Claims: s.w.Set.Spec.VolumeClaimTemplates, Volumes: t.volumes, LeftOn: t.leftOn,
	}
	if t.member != nil {
		r.Before, r.Ran = t.member.Node, s.runs(t.member.Revision)
	}
	return r
}

// runs is what members of a revision run; nothing of one that is not known.
func (s *step) runs(h spec.RevisionHash) *spec.MemberSpec {
	if t := s.template(h); t != nil {
		return &t.Spec
	}
	return &spec.MemberSpec{}
}

// bound is that of the lives that the set begins; 0: they are not guarded.
func (s *step) bound() time.Duration { return s.w.Set.Spec.Bound() }

// because is the reason of a life in words.
func (s *step) because(t *seat, reason records.Reason) string {
	if reason != records.ReasonReplace {
		return string(reason)
	}
	return fmt.Sprintf("%s, token %s is over (%s)", reason, t.member.Token, s.cause(t))
}

// token is higher than any the identity had, and than any other life's decided on
// an older picture (SAFETY S7).
func (s *step) token(t *seat) spec.Token {
	return spec.Token{Epoch: s.w.Epoch, Number: max(s.w.Rev, t.lastToken().Number+1)}
}

func (s *step) grace(h spec.RevisionHash) int64 {
	if n := s.template(h).Spec.TerminationGracePeriodSeconds; n != nil {
		return *n
	}
	return defaultGraceSeconds
}
