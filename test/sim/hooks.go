package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/spec"
)

// hookTruth is the truth about a lifecycle hook of one process.
type hookTruth struct {
	begun    bool
	over     bool // it has returned at least once
	returned bool // and did not fail
	failed   bool // of postStart: its container is given up
	kept     bool // its agent has noted that it returned
}

// hooking is a hook that runs.
type hooking struct {
	ctx      context.Context
	run      int // of the process
	post     bool
	at       time.Time // when it returns; zero: never
	err      error
	returned func(error)
}

// What a hook does, as its command says.
const (
	hookQuick = "quick"
	hookSlow  = "slow"
	hookFails = "fails"
	hookHangs = "hangs"
	// hookSignalled is of jobs: a signal ends it at times.
	hookSignalled = "signalled"
)

var errNoProcess = errors.New("the container does not run")

// errHook is of a command that failed by itself, errKilled of one that was killed.
var errHook, errKilled = probe.Ended(1, ""), probe.Ended(killedCode, "")

// someHook is a hook of a template; nil: none.
func someHook(r *rand.Rand) *spec.Hook {
	kinds := []string{"", "", hookQuick, hookQuick, hookQuick, hookSlow, hookSlow, hookFails, hookHangs}
	kind := kinds[r.IntN(len(kinds))]
	if kind == "" {
		return nil
	}
	return &spec.Hook{Exec: &spec.ExecAction{Command: []string{kind}}}
}

// Hook implements worker.Background. One in a process that is gone fails.
func (b background) Hook(ctx context.Context, t probe.Target, h spec.Hook, returned func(error)) {
	w, x := b.n.w, b.n.agent.workers[t.ID.ID]
	box := b.n.place(t.ID.ID).box(t.ID.Name)
	run := &hooking{ctx: ctx, run: box.runs, returned: returned, at: w.clock}
	run.post = x.op == step.RunPostStart
	x.attend(box.name).hook = run
	if box.alive.IsZero() {
		run.err = errHook
		return
	}
	w.judge.hookBegins(box, run.post)
	switch h.Exec.Command[0] {
	case hookSlow:
		run.at = w.clock.Add(time.Duration(w.r.IntN(6000)) * time.Millisecond)
	case hookFails:
		if w.chance(2) {
			run.err = errHook
		}
	case hookHangs:
		run.at = time.Time{}
	}
	if run.post && w.plant.HooksReturnAtOnce {
		run.returned(nil)
		run.returned = func(error) {}
	}
}

// hear has a hook that is over return.
func (h *hooking) hear(b *box) (heard bool) {
	gone := b.runs != h.run || b.alive.IsZero()
	switch {
	case h.ctx.Err() != nil:
		return true // its agent broke it off
	case gone:
		h.returned(errHook)
		return true
	case h.at.IsZero() || b.p.n.w.clock.Before(h.at):
		return false
	}
	b.p.n.w.judge.hookReturns(b, h)
	h.returned(h.err)
	return true
}

// hookBegins judges that a hook is run in its time, and not again when it has returned and its
// agent, or the one before it, noted that.
func (j *judge) hookBegins(b *box, post bool) {
	n, name := b.p.n, b.p.id.MemberName()+" "+b.name
	truth, what := &b.pre, "preStop"
	if post {
		truth, what = &b.post, "postStart"
	}
	switch {
	case truth.kept:
		j.w.fail("hooks", "%s runs the %s hook of %s again, which has returned", n.name, what, name)
	case !post && b.grace == 0:
		j.w.fail("hooks", "%s runs the preStop hook of %s, which has no grace", n.name, name)
	case !post && !b.gaveUp() && !j.mayEnd(b.p.id, b.alive):
		j.w.fail("absence", "%s runs the preStop hook of %s, and nobody asked it to end", n.name, name)
	case truth.begun:
		j.w.count(what + " hook run again by the next agent")
	}
	truth.begun = true
	if post {
		truth.failed = false // it may have, and its agent died with that
	}
}

// hookReturns notes that a hook has returned.
func (j *judge) hookReturns(b *box, h *hooking) {
	switch {
	case !h.post && h.err != nil:
		b.pre.over = true
		j.w.count("preStop hook failed")
	case !h.post:
		b.pre.over = true
		j.w.count("preStop hook returned")
	case h.err != nil:
		b.post.over, b.post.failed = true, true
		j.w.count("postStart hook failed")
	default:
		b.post.over, b.post.returned = true, true
		j.w.count("postStart hook returned")
	}
}

// kept notes which hooks have returned, as an agent keeps it.
func (p *place) kept(s *worker.State) {
	for _, b := range p.boxes {
		if c, ok := s.Containers[b.name]; ok && b.alive == s.Token && !b.alive.IsZero() && c.Attempt == b.attempt {
			b.post.kept = b.post.kept || c.Hooks.PostStart
			b.pre.kept = c.Hooks.PreStop
		}
	}
}
