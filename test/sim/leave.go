package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/test/sim/rules"
)

// leaveHooks gives a set hooks for members that leave for good, or takes them away, or has it do without.
func (w user) leaveHooks(s *records.Set) {
	s.SkipDecommission = w.chance(8)
	s.Spec.Decommission, s.Spec.Forget = nil, nil
	leaves := w.chance(2)
	if !leaves {
		leaves = w.chance(2)
	}
	if leaves {
		h := someMemberHook(w.r)
		d := &spec.Decommission{Container: h.Container, Exec: h.Exec, TimeoutSeconds: h.TimeoutSeconds, OnTimeout: hooks.OnTimeoutWait}
		if w.chance(4) {
			d.OnTimeout = hooks.OnTimeoutProceed
		}
		if w.chance(2) {
			d.Abort = someMemberHook(w.r)
		}
		s.Spec.Decommission = d
	}
	if w.chance(2) {
		s.Spec.Forget = someMemberHook(w.r)
	}
}

func someMemberHook(r *rand.Rand) *spec.MemberHook {
	kinds := []string{hookQuick, hookQuick, hookQuick, hookSlow, hookSlow, hookFails, hookFails, hookHangs}
	return &spec.MemberHook{
		Container: containerName, Exec: &spec.ExecAction{Command: []string{kinds[r.IntN(len(kinds))]}}, TimeoutSeconds: int32(3 + r.IntN(20)),
	}
}

// mendLeave has the hooks of a set succeed, and members leave without theirs.
func (w *Cluster) mendLeave(s *records.Set) {
	s.SkipDecommission = true // one that is broken never takes leave
	if d := s.Spec.Decommission; d != nil {
		d.Exec.Command = []string{hookQuick}
		if d.Abort != nil {
			d.Abort.Exec.Command = []string{hookQuick}
		}
	}
	if s.Spec.Forget != nil {
		s.Spec.Forget.Exec.Command = []string{hookQuick}
	}
}

// orderedHook is a run of a hook that the servers ordered.
type orderedHook struct {
	ctx      context.Context
	box      string
	run      int // of the process
	token    spec.Token
	env      []string
	at       time.Time // when it returns; zero: never
	err      error
	returned func(error)
}

// Order implements worker.Background. One in a process that is gone fails.
func (b background) Order(ctx context.Context, t probe.Target, h spec.MemberHook, env []string, returned func(error)) {
	w, x := b.n.w, b.n.agent.workers[t.ID.ID]
	box := b.n.place(t.ID.ID).box(t.ID.Name)
	if x.ordered != nil {
		w.fail("leave", "%s runs two hooks of %s at once", b.n.name, t.ID.ID.MemberName())
	}
	for _, b := range b.n.place(t.ID.ID).boxes { // what an agent before this one left of such a command has ended by then
		b.job = nil
	}
	x.ordered = &orderedHook{ctx: ctx, box: box.name, run: box.runs, token: box.alive, env: env, at: w.clock, returned: returned}
	w.note("%s: %s runs %s", b.n.name, t.ID.ID.MemberName(), strings.Join(env, " "))
	switch o := x.ordered; {
	case box.alive.IsZero():
		o.err = errNoProcess
	case h.Exec.Command[0] == hookSlow:
		o.at = w.clock.Add(time.Duration(w.r.IntN(9000)) * time.Millisecond)
	case h.Exec.Command[0] == hookFails && w.chance(2):
		o.err = errHook
	case h.Exec.Command[0] == hookSignalled && w.chance(2):
		o.err = errKilled
	case h.Exec.Command[0] == hookHangs:
		o.at = time.Time{}
	}
	x.beginJob(box)
}

// hearOrdered has an ordered hook that is over return.
func (x *memberWorker) hearOrdered() {
	o := x.ordered
	if o == nil {
		return
	}
	w, b := x.n.w, x.n.place(x.id).box(o.box)
	switch gone := b.runs != o.run || b.alive.IsZero(); {
	case o.ctx.Err() != nil:
		o.err = o.ctx.Err()
	case gone:
		o.err = errKilled
	case o.at.IsZero() || w.clock.Before(o.at):
		return
	case o.err == nil:
		w.judge.hookSucceeds(life{x.id, o.token}, o.env)
	}
	if o.err != nil {
		w.count("ordered hook failed")
	}
	x.endJob(b, o)
	if o.err == errKilled && w.plant.SeesNoSignal {
		o.err = errHook
	}
	x.ordered, x.due = nil, true
	o.returned(o.err)
}

// hookSucceeds notes that a hook has succeeded, in this life.
func (j *judge) hookSucceeds(l life, env []string) {
	kind := hooks.HookKind(strings.TrimPrefix(env[0], "STEAD_HOOK="))
	j.w.count("ordered hook succeeded: " + string(kind))
	switch kind {
	case hooks.Decommission:
		j.life(l.id, l.token).left = true
	case hooks.Forget:
		j.forgotBy[string(l.id.Namespace)+" "+env[1]+" "+env[3]] = true
	}
}

// wasTold: a member has forgotten this one.
func (j *judge) wasTold(g *hooks.GoneMember) bool {
	return j.forgotBy[string(g.ID.Namespace)+" STEAD_GONE="+g.ID.MemberName()+" STEAD_GONE_TOKEN="+g.Token.String()]
}

// takesLeave judges a stop of a member that leaves for good: its hook has succeeded, or need not; and none that has left before is
// owed to the others.
func (j *judge) takesLeave(v cache.View, b store.Batch, m *records.Member, r *rules.Reading, set *records.Set) {
	if m.StopReason != records.ReasonScaleDown {
		return
	}
	d := set.Spec.Decommission
	if d != nil && !set.SkipDecommission && d.OnTimeout != hooks.OnTimeoutProceed && !j.life(m.ID, m.Token).left {
		j.w.fail("leave", "%s %s stops for good, and its hook decommission has not succeeded", m.ID, m.Token)
	}
	if d != nil && j.life(m.ID, m.Token).left {
		j.w.count("member stopped after it took leave")
	}
	stay := false // some are there to be told
	for _, s := range r.Slots {
		stay = stay || s.Member != nil && r.IsWanted(s.ID.Ordinal)
	}
	asOne := set.Spec.UpdateStrategy.Type == spec.RecreateStrategy && (d == nil || set.SkipDecommission) // all stop, also who is to leave
	if set.Spec.Forget == nil || r.IsWanted(m.ID.Ordinal) || !stay || asOne {
		return
	}
	for _, s := range r.Slots {
		if s.Member != nil || s.Identity == nil || s.Identity.Gone == nil {
			continue
		}
		if now, err := store.Decode[records.IdentityRecord](written(b, store.IdentityKey(s.ID))); err != nil || now.Gone != nil {
			j.w.fail("leave", "%s leaves before the others have forgotten %s", m.ID, s.ID)
		}
	}
}

// forgets judges that the others have forgotten one that has left before that is not owed any more.
func (j *judge) owesNoMore(v cache.View, b store.Batch, rec *records.IdentityRecord) {
	old := v.Identity(rec.ID)
	if old == nil || old.Gone == nil || rec.Gone != nil || j.w.restoring {
		return
	}
	x := v.World(rec.ID.Ref())
	if x.Set == nil {
		j.w.fail("leave", "%s is owed no more, and there is no set", rec.ID)
		return
	}
	if x.Set.Spec.Forget == nil || j.wasTold(old.Gone) || !x.Bootstrapped && old.Gone.SetUID != x.Set.UID {
		j.w.count("member forgotten")
		return
	}
	r := rules.Read(x)
	_, err := store.Decode[records.Member](written(b, store.MemberKey(rec.ID)))
	if err != nil || slices.ContainsFunc(r.Wanted, func(o int) bool { return !r.Vacant(o) && !j.lapsed(v, r.Slot(o).Member) }) {
		j.w.fail("leave", "%s is owed no more, and no member has forgotten it", rec.ID)
	}
}
