package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/place"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// Forgotten records that the others were told of a member that has left, or need not be. By is who was told, in its life Token,
// which is to run that hook no more; zero: nobody.
type Forgotten struct {
	Identity records.IdentityRecord // as it is to be
	By       spec.Identity
	Token    spec.Token
	Text     string
}

func (Forgotten) action() {}

// hasLeft: the life, which is over, was ended because the member left for good, though it is wanted again.
func (l leaver) hasLeft(t *memberState) bool {
	return t.wanted && l.world.Set.Spec.Forget != nil && t.Member.Goal == records.GoalStop && t.Member.StopReason == records.ReasonScaleDown
}

// goneRecord is what the others are to be told of a member whose life is over, and whose record goes; nil: nothing.
func (l leaver) goneRecord(t *memberState) *hooks.GoneMember {
	all := t.Member.StopReason == records.ReasonScaleToZero || t.Member.StopReason == records.ReasonDelete
	if l.world.Set.Spec.Forget == nil || all || !l.takesLeave() {
		return nil
	}
	return &hooks.GoneMember{
		SetUID: l.world.Set.UID, ID: t.ID, Token: t.Member.Token, Service: Service(l.world.Set, l.former, t.Member), Address: t.Member.Address,
	}
}

// owed: the others are to be told of the member, whose last life is over.
func (m *memberFacts) owed() bool {
	return m.Member == nil && m.Identity != nil && m.Identity.Gone != nil
}

// tellGone has a member that is ready, the lowest, run the hook forget for the highest that has left: one after the other. Until it has succeeded
// no other leaves, the one that left does not return, and no volume of it is given up.
func (l leaver) tellGone() {
	i := len(l.members) - 1
	for i >= 0 && !l.members[i].owed() {
		i--
	}
	if i < 0 || l.world.Set.Replicas() == 0 { // none is left to be told
		l.endTelling(nil, nil)
		return
	}
	if l.world.Folded != nil { // who is the lowest that is ready is not known
		l.plan.Unfold = true
		return
	}
	t, hook := l.members[i], l.world.Set.Spec.Forget
	if void := !l.bootstrapped && t.Identity.Gone.SetUID != l.world.Set.UID; hook == nil || void {
		l.endTelling(nil, nil)
		l.forgotten(t, nil, "")
		return
	}
	lowest := l.lowestReady()
	teller := l.endTelling(t.Identity.Gone, lowest)
	if teller != nil && teller.Member.HookResult(teller.Report).Done {
		l.forgotten(t, teller, fmt.Sprintf("%s has forgotten %s, which has left", teller.ID.MemberName(), t.ID.MemberName()))
		return
	}
	if t.gone { // what is owed is recorded in this very step
		return
	}
	if teller == nil && lowest != nil {
		teller = lowest
		l.order(teller, hooks.Forget, l.hookIn(teller, *hook), t.Identity.Gone, "",
			fmt.Sprintf("%s is to forget %s, which has left: its forget hook runs", teller.ID.MemberName(), t.ID.MemberName()))
	}
	l.forgetWaits = l.whyNotForgotten(teller)
}

// lowestReady is who is asked to forget one that has left; nil: nobody can be now.
func (l leaver) lowestReady() *memberState {
	for _, t := range l.inside {
		if t.Ready && (t.Member.Hook == nil || t.Member.Hook.Kind == hooks.Forget) && l.runsHooks(t.Member.Node) {
			return t
		}
	}
	return nil
}

// endTelling takes back what lives are to run that was ordered for another than gone, or is not as it is to be any more; and of
// one that is not ready, if lowest, who is, can take its place. It returns who is left.
func (l leaver) endTelling(gone *hooks.GoneMember, lowest *memberState) (teller *memberState) {
	for _, t := range l.members {
		if t.vacant() || t.stopping() || t.Member.Hook == nil || t.Member.Hook.Kind != hooks.Forget {
			continue
		}
		done := t.Member.HookResult(t.Report).Done
		fits := gone != nil && *t.Member.Hook.Gone == *gone && (done || t.isToRun(hooks.Forget, l.hookIn(t, *l.world.Set.Spec.Forget)))
		if fits && t.wanted && teller == nil && (done || t.Ready || lowest == nil) {
			teller = t
			continue
		}
		l.orderHook(t, nil, "", "")
	}
	return teller
}

// forgotten: nothing is owed of t any more.
func (l leaver) forgotten(t, teller *memberState, text string) {
	rec := *t.Identity
	rec.Gone = nil
	if teller != nil {
		rec.Forgotten = &hooks.ForgottenLife{Token: t.Identity.Gone.Token, Epoch: l.world.Epoch}
	}
	a := Forgotten{Identity: rec, Text: text}
	t.become(t.withIdentity(&rec))
	if teller != nil {
		a.By, a.Token = teller.ID, teller.Member.Token
		teller.become(teller.afterOrder(&OrderHook{}))
	}
	l.act(a)
}

// whyNotForgotten says for what a member that has left waits; teller may be nil.
func (l leaver) whyNotForgotten(teller *memberState) *place.Refusal {
	switch {
	case teller == nil && !slices.ContainsFunc(l.inside, func(t *memberState) bool { return t.Ready }):
		return &place.Refusal{Reason: causes.BlockedForget, Text: "it has left, and no other member is ready to run the forget hook"}
	case teller == nil:
		return &place.Refusal{Reason: causes.BlockedForget, Text: "it has left, and no member that is ready can run the forget hook: their agents are too old, which are to be upgraded, or another hook runs"}
	}
	name, result := teller.ID.MemberName(), teller.Member.HookResult(teller.Report)
	if result.Message != "" {
		return &place.Refusal{Reason: causes.BlockedForget, Text: fmt.Sprintf("it has left, and the forget hook failed in %s (%d in a row, and is run again): %s", name, result.Failures, result.Message)}
	}
	if result.Overdue {
		return &place.Refusal{Reason: causes.BlockedForget, Text: fmt.Sprintf("it has left, and the forget hook has not succeeded in %s yet", name)}
	}
	return &place.Refusal{Reason: causes.BlockedLeaving, Text: fmt.Sprintf("it has left, and %s is to forget it: its forget hook runs", name)}
}

// owedWait is for what members wait while one that has left is to be forgotten; nil: none is.
func (d *draft) owedWait() *place.Refusal {
	switch {
	case !d.takesLeave() || d.world.Set.Spec.Forget == nil || !slices.ContainsFunc(d.members, func(t *memberState) bool { return t.owed() }):
		return nil
	case d.forgetWaits != nil:
		return d.forgetWaits
	}
	return &place.Refusal{Reason: causes.BlockedLeaving, Text: "it has left; the others are to forget it first"}
}

// awaitsForgetting says why a member that has left does not return yet, or why its volumes stay; nil: it may, they need not. Where
// nobody has a life there is nobody to be told.
func (d *draft) awaitsForgetting(t *memberState) *place.Refusal {
	if !t.owed() || !slices.ContainsFunc(d.inside, func(o *memberState) bool { return !o.vacant() }) {
		return nil
	}
	return d.owedWait()
}
