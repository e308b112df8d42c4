package sim

import (
	"strings"
	"time"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/spec"
)

// place is what stands on a host of one identity: the truth, whatever an agent or
// containerd believes.
type place struct {
	n        *node
	id       spec.Identity
	state    runtime.State // of the container; "": there is none
	token    spec.Token    // likewise, and what follows
	attempt  int
	image    string
	grace    time.Duration
	serial   int        // of the container: a start that lands late lands on this one or nowhere
	runs     int        // of processes, so that a watch knows its own
	alive    spec.Token // of the process; zero: none
	exits    time.Time  // when it ends by itself; zero: never
	readyAt  time.Time
	sick     bool
	hangs    int        // how many kills it survives
	logger   spec.Token // its loggers run, and kill a guarded life of this token
	sandbox  spec.Token // of the namespaces; zero: none
	link     bool
	scratch  bool
	lateness *lateStart
}

// lateStart is a start that was given up on and is still under way.
type lateStart struct {
	serial int
	token  spec.Token
}

// visible: an agent that begins finds something of the identity.
func (p *place) visible() bool { return p.state != "" || !p.sandbox.IsZero() || p.link }

// pass lets happen what is due.
func (p *place) pass() {
	if !p.alive.IsZero() && !p.exits.IsZero() && !p.n.w.clock.Before(p.exits) {
		p.end()
	}
}

// end is the end of the process.
func (p *place) end() {
	p.n.w.judge.ended(life{p.id, p.alive})
	p.alive, p.exits = spec.Token{}, time.Time{}
	if p.state == runtime.Running {
		p.state = runtime.Exited
	}
}

func (p *place) healthy() bool {
	return !p.alive.IsZero() && !p.sick && !strings.HasPrefix(p.image, "never") && !p.n.w.clock.Before(p.readyAt)
}

// begin is the moment in which a process is there.
func (p *place) begin(token spec.Token) {
	w := p.n.w
	w.judge.started(p, token)
	p.state, p.alive = runtime.Running, token
	p.runs++
	p.readyAt = w.clock.Add(time.Duration(w.r.IntN(4000)) * time.Millisecond)
	p.exits, p.sick, p.hangs, p.logger = time.Time{}, false, 0, token
	if strings.HasPrefix(p.image, "crash") {
		p.exits = w.clock.Add(time.Duration(w.r.IntN(1500)) * time.Millisecond)
	}
	if w.chance(12) {
		p.hangs = 1 + w.r.IntN(3)
	}
}

// land has a start take effect that nobody waits for any more.
func (w *Cluster) land() bool {
	for _, n := range w.nodes {
		for _, id := range sortedKeys(n.places) {
			p := n.places[id]
			l := p.lateness
			if l == nil {
				continue
			}
			p.lateness = nil
			if p.state != runtime.Created || p.serial != l.serial {
				if !w.plant.LateStartLands {
					continue // its container is gone: containerd starts nothing
				}
			}
			if r, guarded := n.guard.of(id, l.token); guarded && n.passed(r) && !w.plant.KillsOnce {
				w.count("late start refused by its logger")
				continue
			}
			w.note("%s: a start of %s %s lands late", n.name, id.MemberName(), l.token)
			p.begin(l.token)
			return true
		}
	}
	return false
}
