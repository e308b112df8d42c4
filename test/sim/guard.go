package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/agent/deadline"
	"github.com/stead-project/stead/agent/watchdog"
	"github.com/stead-project/stead/spec"
)

// guard is what lies on a node's tmpfs for the killers of guarded lives, and the watchdog.
// It is what agent/watchdog has as files and processes, with the same decision.
type guard struct {
	n         *node
	confirmed time.Duration // on the node's clock; 0: never since boot
	records   map[string]watchdog.Record
	watchdog  bool                         // it runs
	acks      map[string]string            // the tokens that it said it guards, by member
	killed    map[spec.Identity]spec.Token // whose end was seen once, for a plant
	looks     time.Time                    // when the agent looks for itself at the latest
	evidence  time.Time                    // the truth: when the ping was sent that confirmed
	answered  time.Time                    // and the one whose answer is being taken
}

var _ deadline.Records = (*guard)(nil)

func newGuard(n *node) *guard {
	return &guard{n: n, records: map[string]watchdog.Record{}, acks: map[string]string{}, killed: map[spec.Identity]spec.Token{}}
}

func (g *guard) Make() error { return nil }

func (g *guard) Records() (map[string]watchdog.Record, error) { return maps.Clone(g.records), nil }

func (g *guard) Put(member string, r watchdog.Record) error {
	w := g.n.w
	old, had := g.records[member]
	switch {
	case r.Ended && !w.judge.settling && w.chance(20):
		w.count("fault: agent dies between ledger and record")
		g.n.crash("between the ledger and the record")
	case r.Ended:
		w.count("deadline missed")
	case !had || old.Token != r.Token:
		w.count("life guarded")
	}
	return g.n.act(identityOf(r), "Put", func() error { g.records[member] = r; return nil })
}

func (g *guard) Remove(member string) error {
	r, had := g.records[member]
	if !had {
		return nil
	}
	return g.n.act(identityOf(r), "RemoveRecord", func() error {
		delete(g.records, member)
		delete(g.acks, member)
		return nil
	})
}

func (g *guard) Record(member string) string { return member }

func (g *guard) Confirm(at time.Duration) error {
	g.confirmed, g.evidence = at, g.answered
	return nil
}

func (g *guard) Confirmed() (time.Duration, error) { return g.confirmed, nil }

func (g *guard) Alive() bool { return g.watchdog }

func (g *guard) Acks() map[string]string { return g.acks }

func (g *guard) Dismiss() { g.watchdog = false }

// newKeeper takes up the records of the agent before this one.
func (n *node) newKeeper(a *agent) *deadline.Keeper {
	if n.w.plant.ForgetsDeadline {
		n.guard.confirmed = n.uptime()
	}
	k, err := deadline.New(deadline.Config{
		Records: n.guard, Ledger: a.led, Clock: n.uptime, Logger: discard,
		Cgroup: func(id spec.Identity) string { return "/" + id.String() },
		StartWatchdog: func() error {
			n.guard.watchdog = true
			clear(n.guard.acks)
			return nil
		},
		Missed: func(id spec.Identity) {
			n.w.note("%s closes a life of %s: it missed its deadline", n.name, id.MemberName())
			if a.begun {
				n.worker(id).tellExpired()
			}
		},
	})
	if err != nil {
		n.crash("as it started, for " + err.Error())
	}
	return k
}

func identityOf(r watchdog.Record) spec.Identity {
	return spec.Identity{Namespace: spec.Namespace(r.Namespace), Set: spec.SetName(r.Set), Ordinal: r.Ordinal}
}

// of is the record of a life, if its killers know of it.
func (g *guard) of(id spec.Identity, token spec.Token) (watchdog.Record, bool) {
	for _, r := range g.records {
		if identityOf(r) == id && r.Token == token.String() {
			return r, true
		}
	}
	return watchdog.Record{}, false
}

// uptime is the node's clock as killers read it; 0 is never.
func (n *node) uptime() time.Duration { return time.Hour + n.now().Sub(began) }

// passed: the life's killers see that its deadline has passed.
func (n *node) passed(r watchdog.Record) bool {
	bound := r.Bound
	if n.w.plant.KillsEarly {
		bound /= 2
	}
	return r.Ended || watchdog.Passed(n.guard.confirmed, bound, n.uptime())
}

// guarded are the members that have records, in order.
func (g *guard) guarded() []string { return slices.Sorted(maps.Keys(g.records)) }

// guardLives is a tick of the killers, then of the agent.
func (n *node) guardLives() {
	g := n.guard
	if len(g.records) > 0 {
		for _, member := range g.guarded() {
			if r := g.records[member]; n.passed(r) {
				n.killGuarded(r)
			}
		}
	}
	if g.watchdog {
		for member, r := range g.records {
			g.acks[member] = r.Token
		}
	}
	a := n.agent
	if a == nil || n.stopped {
		return
	}
	if a.unsaved && n.w.chance(2) { // at most every so often
		a.unsaved = false
		must(a.snapshots.Save())
	}
	if !g.watchdog || !n.w.clock.Before(g.looks) {
		g.looks = n.w.clock.Add(5 * time.Second)
		n.run(func() {
			a.keeper.Tick()
			must(a.known.Save())
		})
	}
}

// killGuarded has the watchdog, or the life's loggers, kill what is left: as often as it
// takes, within the tick.
func (n *node) killGuarded(r watchdog.Record) {
	id := identityOf(r)
	token := got(spec.ParseToken(r.Token))
	p := n.place(id)
	before := n.guard.killed[id] == token
	n.guard.killed[id] = token
	if p.alive().IsZero() || !n.guard.watchdog && p.logger != token || before && n.w.plant.KillsOnce {
		return
	}
	n.w.note("%s: %s %s is killed: its deadline has passed", n.name, id.MemberName(), p.alive())
	n.w.count("guarded life killed")
	if !n.guard.watchdog {
		n.w.count("guarded life killed by its logger")
	}
	n.w.judge.expired(n, id, token)
	p.end()
}
