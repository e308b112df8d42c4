package sim

import (
	"strings"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// box is one container of an identity on a host, and the process in it.
type box struct {
	p         *place
	name      string
	state     runtime.State // "": there is none
	token     spec.Token    // likewise, and what follows
	attempt   int
	image     string
	args      []string
	env       []string
	resources runtime.Resources
	changing  bool // it is ended for a change in place
	part      part
	grace     time.Duration
	mounts    []mounted
	serial    int        // of the container: a start that lands late lands on this one or nowhere
	runs      int        // of processes, so that a watch knows its own
	alive     spec.Token // of the process; zero: none
	exits     time.Time  // when it ends by itself; zero: never
	code      int        // with which it ends, or has ended
	unknown   bool       // containerd does not know it
	readyAt   time.Time
	sick      bool
	started   bool // its startup probe has succeeded
	dead      bool // its liveness probe fails for good
	late      bool // its start was given up on before it landed
	hangs     int  // how many kills it survives
	lateness  *lateStart
	says      records.Claim // of its member, in this run
	post      hookTruth
	pre       hookTruth
	endSince  time.Time // on the node's clock: its agent began to end it alone
	asked     time.Time // likewise: it was sent the stop signal
	job       *jobRun   // the command of a job in it
}

// part is what a container is to its member, by the template of its life.
type part struct {
	of                *spec.MemberSpec // that template; nil: it is not known
	role              spec.ContainerRole
	startup, liveness bool // probes that it has
	hasPost, hasPre   bool // and hooks
}

// partOf is that of a container of a template.
func partOf(s *spec.MemberSpec, name string) part {
	for c, role := range s.All() {
		if c.Name == name {
			h := c.Lifecycle
			return part{s, role, c.StartupProbe != nil, c.LivenessProbe != nil, h != nil && h.PostStart != nil, h != nil && h.PreStop != nil}
		}
	}
	return part{}
}

// Exit codes: of a program that fails, and of one that was killed.
const (
	failedCode = 1
	killedCode = 137
)

// end is the end of the process.
func (b *box) end() {
	n, id, token := b.p.n, b.p.id, b.alive
	b.write()
	b.alive, b.exits = spec.Token{}, time.Time{}
	if b.state == runtime.Running {
		b.state = runtime.Exited
	}
	if b.part.role == spec.RoleInit {
		n.w.judge.initEnded(b, token)
	}
	if b.p.alive() != token {
		n.w.judge.ended(life{id, token})
	}
}

// does is what its program does: what its image does, unless it has an argument.
func (b *box) does() string {
	if len(b.args) > 0 {
		return b.args[0]
	}
	return b.image
}

func (b *box) healthy() bool {
	return !b.alive.IsZero() && !b.sick && !strings.HasPrefix(b.does(), "never") && !b.p.n.w.clock.Before(b.readyAt)
}

// begin is the moment in which a process is there.
func (b *box) begin(token spec.Token) {
	p, w := b.p, b.p.n.w
	w.judge.started(p, token)
	w.judge.begins(b, token)
	w.judge.finds(b, token)
	b.state, b.alive = runtime.Running, token
	b.write()
	b.runs++
	b.readyAt = w.clock.Add(time.Duration(w.r.IntN(4000)) * time.Millisecond)
	b.exits, b.sick, b.hangs, p.logger = time.Time{}, false, 0, token
	b.changing = false
	b.started, b.dead, b.code, b.unknown, b.post, b.pre = false, false, failedCode, false, hookTruth{}, hookTruth{}
	b.endSince, b.asked, b.says = time.Time{}, time.Time{}, records.Claim{}
	if strings.HasPrefix(b.does(), "crash") {
		b.exits = w.clock.Add(time.Duration(w.r.IntN(1500)) * time.Millisecond)
	}
	if w.chance(12) {
		b.hangs = 1 + w.r.IntN(3)
	}
	if b.part.role == spec.RoleInit {
		b.initialize()
	}
}

// initialize says how and when an init container ends.
func (b *box) initialize() {
	w := b.p.n.w
	b.exits = w.clock.Add(time.Duration(w.r.IntN(3000)) * time.Millisecond)
	if b.does() == initImages[0] || b.does() == initImages[1] && w.chance(2) {
		b.code = 0
	}
	b.unknown = w.chance(40) && !w.judge.settling
}

// kill is what SIGKILL does, which may take several.
func (b *box) kill() {
	switch {
	case b.alive.IsZero():
	case b.hangs > 0:
		b.hangs--
	default:
		b.code = killedCode
		b.end()
	}
}
