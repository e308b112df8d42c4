package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// place is what stands on a host of one identity: the truth, whatever an agent or
// containerd believes.
type place struct {
	n       *node
	id      spec.Identity
	box     step.State
	token   spec.Token // of the container
	image   string
	serial  int // of the container: a start that lands late lands on this one or nowhere
	counted bool
	alive   spec.Token // of the process; zero: none
	exits   time.Time  // when it ends by itself; zero: never
	readyAt time.Time
	sick    bool
	hangs   int        // how many kills it survives
	logger  spec.Token // its loggers run, and kill a guarded life of this token

	sandbox, link, scratch bool
	landing                *landing
}

// landing is a start that was given up on and is still under way.
type landing struct {
	serial int
	token  spec.Token
}

func (p *place) stands() bool {
	return p.box != step.Absent || p.sandbox || p.link || p.scratch || !p.alive.IsZero()
}

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
	if p.box == step.Running {
		p.box = step.Exited
	}
}

func (p *place) healthy() bool {
	return !p.alive.IsZero() && !p.sick && !strings.HasPrefix(p.image, "never") && !p.n.w.clock.Before(p.readyAt)
}

// begin is the moment in which a process is there.
func (p *place) begin(token spec.Token) {
	w := p.n.w
	w.judge.started(p, token)
	p.box, p.alive, p.counted = step.Running, token, false
	p.readyAt = w.clock.Add(time.Duration(w.r.IntN(4000)) * time.Millisecond)
	p.exits, p.sick, p.hangs, p.logger = time.Time{}, false, 0, token
	if strings.HasPrefix(p.image, "crash") {
		p.exits = w.clock.Add(time.Duration(w.r.IntN(1500)) * time.Millisecond)
	}
	if w.chance(12) {
		p.hangs = 1 + w.r.IntN(3)
	}
}

// do performs an operation; it returns the cause of a failure.
func (x *worker) do(kind step.Kind) spec.Cause {
	p := x.n.place(x.id)
	switch kind {
	case step.OpenToken:
		return causeIf(x.open(), spec.CauseLedgerError)
	case step.Expire:
		return causeIf(x.expire(), spec.CauseLedgerError)
	case step.Refuse:
		return causeIf(x.n.agent.led.CloseToken(x.id, x.token, spec.CauseRefused), spec.CauseLedgerError)
	case step.CloseToken:
		return causeIf(x.n.agent.led.CloseToken(x.id, x.token, spec.CauseStopped), spec.CauseLedgerError)
	case step.EnsureImage:
		if x.life == nil || strings.HasPrefix(x.life.Template.Spec.Containers[0].Image, "missing") {
			return spec.CauseImageMissing
		}
		x.prepared.image = true
	case step.EnsureVolumes:
		return x.volumes(p)
	case step.EnsureSandbox:
		x.prepared.sandbox, x.left.sandbox, p.sandbox = true, true, true
	case step.AttachNetwork:
		x.prepared.network, x.left.link, p.link = true, true, true
	case step.WriteFiles:
		x.prepared.files = true
	case step.CreateContainer:
		if !x.seesVolumes() {
			return "CreateError"
		}
		p.serial++
		p.box, p.token, p.image, p.counted = step.Created, x.token, x.life.Template.Spec.Containers[0].Image, false
		x.left.containers = true
	case step.StartContainer:
		return x.start(p)
	default:
		return x.finish(p, kind)
	}
	return ""
}

func causeIf(err error, cause spec.Cause) spec.Cause {
	if err != nil {
		return cause
	}
	return ""
}

func (x *worker) open() error {
	if err := x.begin(); err != nil {
		return err
	}
	if x.life != nil {
		x.n.kept[x.id] = keptLife{life: *x.life}
	}
	return x.n.agent.led.OpenToken(x.id, x.token)
}

// start begins the process now, or late: then the agent gave up on it meanwhile.
func (x *worker) start(p *place) spec.Cause {
	if !x.mayStart() {
		return spec.CauseStartError
	}
	if p.landing == nil && x.n.w.chance(8) && !x.n.w.judge.settling {
		p.landing = &landing{p.serial, x.token}
		x.n.w.did("fault: start lands late")
		return spec.CauseStartError
	}
	p.landing = nil
	p.begin(x.token)
	return ""
}

// land has a start take effect that nobody waits for any more.
func (w *World) land() bool {
	for _, n := range w.nodes {
		for _, id := range slices.SortedFunc(maps.Keys(n.places), compareIdentity) {
			p := n.places[id]
			l := p.landing
			if l == nil {
				continue
			}
			p.landing = nil
			if p.box != step.Created || p.serial != l.serial {
				if !w.plant.LateStartLands {
					continue // its container is gone: containerd starts nothing
				}
			}
			if r := n.guard.records[id]; r != nil && r.token == l.token && n.passed(r) && !w.plant.KillsOnce {
				w.did("late start refused by its logger")
				continue
			}
			w.note("%s: a start of %s %s lands late", n.name, id.MemberName(), l.token)
			p.begin(l.token)
			return true
		}
	}
	return false
}

// finish performs the operations that end something.
func (x *worker) finish(p *place, kind step.Kind) spec.Cause {
	switch kind {
	case step.SignalStop:
		x.asksToEnd(p)
		x.state.signalled, x.stopAt = true, x.n.w.clock.Add(x.grace())
		if x.n.w.plant.ToldTooEarly {
			x.n.agent.seq++
			x.n.agent.put(records.Report{ID: x.id, Token: x.token, Node: x.n.name, Phase: records.PhaseStopped, Seq: x.n.agent.seq})
		}
		if !p.alive.IsZero() {
			p.exits = x.n.w.clock.Add(time.Duration(x.n.w.r.IntN(int(1500*x.grace()/time.Second+1))) * time.Millisecond)
		}
	case step.KillAll:
		x.asksToEnd(p)
		if p.hangs > 0 && !p.alive.IsZero() {
			p.hangs--
			return spec.CauseStopError
		}
		if !p.alive.IsZero() {
			p.end()
		}
	case step.RemoveContainer, step.RemoveContainers:
		if !p.alive.IsZero() {
			return spec.CauseStopError
		}
		p.box, p.token, p.serial = step.Absent, spec.Token{}, p.serial+1
		if !x.n.w.plant.LateStartLands {
			p.landing = nil
		}
		if kind == step.RemoveContainers {
			x.left.containers = false
			x.prepared = struct{ volumes, sandbox, network, files, image bool }{}
		}
	case step.Detach:
		p.link, x.left.link = false, false
	case step.RemoveScratch:
		p.scratch, x.left.scratch = false, false
	case step.RemoveSandbox:
		p.sandbox, x.left.sandbox = false, false
	case step.ReportOver:
		x.reportOver()
	default:
		panic("the worker does not know the operation " + string(kind))
	}
	return ""
}

func (x *worker) asksToEnd(p *place) {
	if !p.alive.IsZero() {
		x.n.w.judge.ending(x.n, x.id, p.alive)
	}
}

func (x *worker) reportOver() {
	if x.standing == step.Closed {
		delete(x.n.kept, x.id)
	}
	x.free()
	r := records.Report{ID: x.id, Token: x.token, Node: x.n.name, Phase: records.PhaseStopped}
	for _, e := range x.n.agent.led.Look(x.id).Ends {
		if e.Token == x.token && e.Cause == spec.CauseRefused {
			r.Phase, r.Cause = records.PhaseFailed, spec.CauseOtherBoot
		}
		if e.Token == x.token && e.Cause == spec.CauseDeadlinePassed {
			r.Cause = spec.CauseDeadlinePassed
		}
	}
	x.emit(r)
	x.told[x.token] = true
}
