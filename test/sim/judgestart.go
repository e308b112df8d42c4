package sim

import (
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// startTruth is which containers of a life have begun, and which of initContainers have passed:
// they ended with 0, or, sidecars, have started (SEMANTICS, Init containers and sidecars).
type startTruth struct{ begun, passed map[string]bool }

// start is that of a life.
func (j *judge) start(id spec.Identity, token spec.Token) *startTruth {
	truth := j.life(id, token)
	if truth.start == nil {
		truth.start = &startTruth{map[string]bool{}, map[string]bool{}}
	}
	return truth.start
}

// begins judges the begin of a process by its part in the start of its member: all of
// initContainers before it have passed, an init container runs beside no other and no container,
// and once; and no other container awaits its postStart hook.
func (j *judge) begins(b *box, token spec.Token) {
	if b.part.of == nil { // a plant: there is no such container
		return
	}
	n, id := b.p.n, b.p.id
	j.runs(b, token)
	truth := j.start(id, token)
	for c, role := range b.part.of.All() {
		if c.Name == b.name {
			break
		}
		if role != spec.RoleMain && !truth.passed[c.Name] {
			j.w.fail("startup", "%s %s begins on %s before %s has passed", id.MemberName(), b.name, n.name, c.Name)
		}
	}
	if b.part.role == spec.RoleInit && truth.passed[b.name] {
		j.w.fail("startup", "%s %s is run again on %s, and it ended with 0 in this life", id.MemberName(), b.name, n.name)
	}
	for _, other := range b.p.running() {
		switch {
		case other == b || other.alive != token:
		case b.part.role != spec.RoleSidecar && other.part.role == spec.RoleInit || b.part.role == spec.RoleInit && other.part.role == spec.RoleMain:
			j.w.fail("startup", "%s %s begins on %s beside %s", id.MemberName(), b.name, n.name, other.name)
		case other.part.hasPost && !other.post.over && !b.late:
			j.w.fail("hooks", "%s %s begins on %s, and the postStart hook of %s has not returned", id.MemberName(), b.name, n.name, other.name)
		}
	}
	switch {
	case truth.begun[b.name] && b.part.role == spec.RoleInit:
		j.w.count("init container run until it succeeds")
	case truth.begun[b.name] && b.part.role == spec.RoleSidecar:
		j.w.count("sidecar started again")
	}
	truth.begun[b.name] = true
	if b.part.role == spec.RoleSidecar && !b.part.startup {
		j.passes(b, token)
	}
}

// passes notes that what comes after a container may begin.
func (j *judge) passes(b *box, token spec.Token) { j.start(b.p.id, token).passed[b.name] = true }

// initEnded notes the end of an init container; containerd may not know how it ended.
func (j *judge) initEnded(b *box, token spec.Token) {
	switch {
	case b.unknown:
		j.w.count("init container ended unseen")
	case b.code == 0:
		j.w.count("init container succeeded")
		j.passes(b, token)
	default:
		j.w.count("init container failed")
	}
}

// saysReady judges that a member that is reported to be ready has begun whole, and that no postStart
// hook of it is awaited.
func (j *judge) saysReady(p *place, r *records.Report) {
	if !r.Ready || p.alive() != r.Token {
		return
	}
	truth, running := j.start(p.id, r.Token), p.running()
	for c, role := range running[0].part.of.All() {
		if role != spec.RoleInit && !truth.begun[c.Name] {
			j.w.fail("startup", "%s says that %s is ready, and %s never began", p.n.name, p.id.MemberName(), c.Name)
		}
	}
	for _, b := range running {
		if b.part.hasPost && !b.post.returned {
			j.w.fail("hooks", "%s says that %s is ready, and the postStart hook of %s has not returned", p.n.name, p.id.MemberName(), b.name)
		}
	}
}

// ending judges that a process which an agent ends was asked to end; a container that was given up
// is ended alone.
func (j *judge) ending(b *box) {
	if !b.gaveUp() && !j.mayEnd(b.p.id, b.alive) {
		j.w.fail("absence", "%s ends %s %s, and nobody asked for it", b.p.n.name, b.p.id, b.alive)
	}
}

// mayEnd: a life was asked to end: by name, because the identity has had a newer one, or because its host goes down.
func (j *judge) mayEnd(id spec.Identity, token spec.Token) bool {
	l := j.life(id, token)
	return l.stopped || l.byHost || l.resolved || j.newest[id].Compare(token) > 0
}

// asks judges that a process is sent the stop signal when it is its turn: after its preStop hook, and a
// sidecar after the containers and the sidecars behind it; or when the grace is over.
func (j *judge) asks(b *box) {
	n := b.p.n
	if b.part.hasPre && b.grace > 0 && !b.pre.over && !b.graceOver() {
		j.w.fail("hooks", "%s asks %s %s to end, and its preStop hook has not returned", n.name, b.p.id.MemberName(), b.name)
	}
	if b.part.role != spec.RoleSidecar || b.gaveUp() || b.graceOver() {
		return
	}
	behind := false
	for c, role := range b.part.of.All() {
		other := b.p.box(c.Name)
		if (behind || role != spec.RoleSidecar) && other != b && other.alive == b.alive {
			j.w.fail("stop", "%s asks %s %s to end, and %s runs", n.name, b.p.id.MemberName(), b.name, c.Name)
		}
		behind = behind || other == b
	}
	j.w.count("sidecar stopped after the containers")
}

// kills judges that a process whose life is open is killed after its grace only, and not in the first two seconds
// after a stop signal for which it had to wait. A start that landed late nobody knew of.
func (j *judge) kills(b *box) {
	n, id := b.p.n, b.p.id
	if b.late || b.part.of == nil || n.agent.led.Look(id).Open != b.alive {
		return
	}
	if !b.graceOver() {
		j.w.fail("stop", "%s kills %s %s before its grace is over", n.name, id.MemberName(), b.name)
	}
	waited := b.part.hasPre && b.grace > 0 || b.part.role == spec.RoleSidecar && !b.gaveUp()
	if waited && (b.asked.IsZero() || n.now().Sub(b.asked) < leastGrace) {
		j.w.fail("stop", "%s kills %s %s, which was asked to end at %s, now it is %s", n.name, id.MemberName(), b.name, b.asked, n.now())
	}
}

// leastGrace is what a container has to end whose stop signal had to wait: Kubernetes' number.
const leastGrace = 2 * time.Second

// graceOver: the grace is over since the stop began, or the end of this container alone; or the time of the host, which ended the
// life by itself.
func (b *box) graceOver() bool {
	if n := b.p.n; n.w.judge.life(b.p.id, b.alive).byHost && !n.now().Before(n.downAt) {
		return true
	}
	over := func(since time.Time) bool { return !since.IsZero() && b.p.n.now().Sub(since) >= b.grace }
	return b.p.ending.token == b.alive && over(b.p.ending.since) || b.gaveUp() && over(b.endSince)
}

// gaveUp: its agent may end it alone: its liveness probe or its postStart hook failed, or its image changes.
func (b *box) gaveUp() bool { return b.dead || b.post.failed || b.changing }
