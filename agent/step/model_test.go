package step

import (
	"fmt"
	"math/rand"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// model is a host, its ledger and its worker, with one container a life. The
// worker's memory is lost in a crash; the rest stays.
type model struct {
	rng    *rand.Rand
	seed   int64
	log    []string
	memory Memory // the ledger
	closed map[spec.Token]bool

	alive spec.Token // whose process runs; zero: none
	box   State      // of the container
	boxOf spec.Token
	// hook is the preStop hook of the container; every third token has one. A crash forgets that it runs.
	hook HookState
	// image is that of the container, want the one that is ordered in place. changing: its end was begun for that, which a crash does
	// not forget, as it does that it is ending, and that its time to end is over.
	image, want      int
	changing         bool
	ending, overtime bool
	// What stands on the host.
	sandbox, link, scratch bool
	away                   bool
	// Every second token is guarded. cut: no server confirms the node, so that its
	// deadlines pass; late: that of the open token did. Killers kill until their record
	// goes, of the token that they know; watched: the watchdog has acknowledged it.
	cut, late, watched bool
	record             spec.Token

	// The worker's memory.
	orders   Orders
	told     map[spec.Token]bool
	token    spec.Token
	signal   bool
	grace    bool
	prepared struct{ volumes, sandbox, network, files, image bool }
	left     struct{ containers, link, scratch, sandbox bool }

	// What the server said, ever.
	latest  spec.Token
	stopped map[spec.Token]bool // Stop was ordered, or a newer token told
}

func newModel(seed int64) *model {
	return &model{
		rng: rand.New(rand.NewSource(seed)), seed: seed, box: Absent,
		closed: map[spec.Token]bool{}, told: map[spec.Token]bool{}, stopped: map[spec.Token]bool{},
	}
}

func guarded(t spec.Token) bool { return t.Number%2 == 1 }

// hookOf is the hook of a token's container before it is begun.
func hookOf(t spec.Token) HookState {
	if t.Number%3 == 0 {
		return HookDue
	}
	return HookNone
}

// hookLeft: the container is not to be signalled yet.
func (m *model) hookLeft() bool {
	return m.box == Running && !m.grace && !m.overtime && (m.hook == HookDue || m.hook == HookRunning)
}

// killers kill what is condemned, at any moment.
func (m *model) killers() {
	if m.late && !m.record.IsZero() {
		m.note("killers")
		m.alive = spec.Token{}
		if m.box == Running {
			m.box = Exited
		}
	}
}

func (m *model) note(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

// tell is an order of the server, possibly of a stale one.
func (m *model) tell(t spec.Token, goal records.Goal) {
	m.note("told %s %s", t, goal)
	for old := range m.closedAndOpen() {
		if old.Compare(t) < 0 {
			m.stopped[old] = true
		}
	}
	if goal == records.GoalStop {
		m.stopped[t] = true
	}
	switch c := t.Compare(m.orders.Token); {
	case c < 0:
		return
	case c == 0 && m.orders.Goal == records.GoalStop:
		goal = records.GoalStop
	}
	m.orders.Token, m.orders.Goal = t, goal
	delete(m.told, t)
}

func (m *model) closedAndOpen() map[spec.Token]bool {
	out := map[spec.Token]bool{}
	for t := range m.closed {
		out[t] = true
	}
	if !m.memory.Open.IsZero() {
		out[m.memory.Open] = true
	}
	return out
}

// crash loses the worker's memory but for a kept life whose token is open.
func (m *model) crash() {
	m.note("agent crashed")
	goal := m.orders.Goal
	if m.orders.Token != m.memory.Open && m.stopped[m.memory.Open] {
		goal = records.GoalStop
	}
	m.orders = Orders{}
	if !m.memory.Open.IsZero() {
		m.orders = Orders{Token: m.memory.Open, Goal: goal}
	}
	m.told, m.token = map[spec.Token]bool{}, spec.Token{}
	if m.hook == HookRunning {
		m.hook = HookDue
	}
	m.turn()
}

func (m *model) turn() {
	m.signal, m.grace, m.ending, m.overtime = false, false, false, false
	m.prepared = struct{ volumes, sandbox, network, files, image bool }{}
	m.left = struct{ containers, link, scratch, sandbox bool }{true, true, true, true}
}

func (m *model) reboot() {
	m.note("rebooted")
	m.alive, m.sandbox, m.link, m.scratch = spec.Token{}, false, false, false
	if m.box == Running {
		m.box = Lost
	}
	if t := m.memory.Open; !t.IsZero() {
		m.close(t)
	}
	m.crash()
}

func (m *model) close(t spec.Token) {
	m.memory.Open = spec.Token{}
	m.memory.Ends = append(m.memory.Ends, t)
	if t.Compare(m.memory.Newest) > 0 {
		m.memory.Newest = t
	}
	m.closed[t] = true
}

func (m *model) look() (Wanted, Seen) {
	token, standing, order := Choose(m.memory, m.orders, func(t spec.Token) bool { return m.told[t] })
	if token != m.token {
		m.token, m.changing = token, false
		m.turn()
	}
	s := Seen{
		Standing: standing, Told: m.told[token] || token.IsZero(), Unknown: m.away,
		Volumes: m.prepared.volumes, Sandbox: m.prepared.sandbox, Network: m.prepared.network, Files: m.prepared.files,
		Empty: m.alive.IsZero(), Signalled: m.signal, GraceOver: m.grace,
		Removed: !m.left.containers, Detached: !m.left.link, Unmounted: !m.left.scratch, Unpinned: !m.left.sandbox,
	}
	if guarded(token) && standing != Closed {
		s.Unwatched = !m.watched || m.record != token
		s.Expired = standing == Open && (m.late || m.record != token)
		s.Unconfirmed = standing == Fresh && m.cut
		if standing == Fresh {
			s.Unwatched = false // a watchdog runs
		}
	}
	c := Container{Name: "db", State: m.box, Image: m.prepared.image, Due: m.rng.Intn(2) == 0, Cause: "CrashLoop"}
	if m.box != Absent && m.boxOf != token {
		c.State = Exited
	}
	c.Hooks.PreStop = m.hook
	if m.hook != HookNone && (m.grace || m.overtime) {
		c.Hooks.PreStop = HookOver
	}
	c.Outdated = order == OrderRun && m.box != Absent && m.boxOf == token && m.image != m.want
	c.Changing, c.Ending, c.Overdue = m.changing, m.ending, m.overtime
	s.Containers = []Container{c}
	return Wanted{Order: order}, s
}

// do performs an operation and checks what must never happen.
func (m *model) do(op Op) error {
	m.note("%s for %s", op.Kind, m.token)
	mayKill := m.closed[m.token] || m.stopped[m.alive] || m.closed[m.alive] || m.box == Exited
	mayAsk := m.stopped[m.alive] || m.changing
	switch op.Kind {
	case OpenToken:
		if m.closed[m.token] || !m.memory.Open.IsZero() || m.token.Compare(m.memory.Newest) <= 0 {
			return fmt.Errorf("token %s was opened again", m.token)
		}
		if guarded(m.token) {
			if m.cut {
				return fmt.Errorf("token %s, guarded, was opened on a node that is cut off", m.token)
			}
			m.record, m.watched, m.late = m.token, false, false
		}
		m.memory.Open, m.memory.Newest = m.token, m.token
	case Expire:
		if !guarded(m.token) || m.memory.Open != m.token || !m.late {
			return fmt.Errorf("token %s expired", m.token)
		}
		m.close(m.token)
	case Refuse, CloseToken:
		if op.Kind == CloseToken && !m.stopped[m.token] {
			return fmt.Errorf("token %s was closed without an order", m.token)
		}
		m.close(m.token)
	case EnsureImage:
		m.prepared.image = true
	case EnsureVolumes:
		m.prepared.volumes, m.left.scratch, m.scratch = true, true, true
	case EnsureSandbox:
		m.prepared.sandbox, m.left.sandbox, m.sandbox = true, true, true
	case AttachNetwork:
		if !m.sandbox {
			return fmt.Errorf("a network without a sandbox")
		}
		m.prepared.network, m.left.link, m.link = true, true, true
	case WriteFiles:
		m.prepared.files = true
	case CreateContainer:
		if m.box != Absent {
			return fmt.Errorf("a container was made over another")
		}
		if !m.prepared.image {
			return fmt.Errorf("a container was made without its image")
		}
		m.box, m.boxOf, m.left.containers, m.image = Created, m.token, true, m.want
	case StartContainer:
		if guarded(m.token) && (m.late || !m.watched || m.record != m.token) {
			return fmt.Errorf("token %s was started past its deadline, or unguarded", m.token)
		}
		if m.memory.Open != m.token || m.closed[m.token] || !m.alive.IsZero() || m.boxOf != m.token || !m.link || !m.scratch {
			return fmt.Errorf("token %s was started: open %s, alive %s", m.token, m.memory.Open, m.alive)
		}
		m.box, m.alive, m.hook, m.changing = Running, m.token, hookOf(m.token), false
	case EndContainer:
		begun := m.changing
		if m.box != Running || !begun && m.image == m.want {
			return fmt.Errorf("token %s was asked to end: %s, image %d of %d", m.token, m.box, m.image, m.want)
		}
		if p := m.prepared; !begun && (!p.image || !p.volumes || !p.sandbox || !p.network || !p.files || guarded(m.token) && !m.watched) {
			return fmt.Errorf("token %s was asked to end before all was there: %+v", m.token, p)
		}
		m.changing, m.ending = true, true
	case KillContainer:
		if !m.ending || !m.overtime {
			return fmt.Errorf("token %s was killed in its time to end", m.token)
		}
		m.box, m.alive, m.ending, m.overtime = Exited, spec.Token{}, false, false
	case SignalStop:
		if !m.stopped[m.alive] {
			return fmt.Errorf("token %s was signalled without an order", m.alive)
		}
		m.signal = true
	case RunPreStop:
		if m.hook != HookDue || m.box != Running || !mayAsk {
			return fmt.Errorf("the preStop hook of %s was begun: %s, %s", m.alive, m.hook, m.box)
		}
		m.hook = HookRunning
	case SignalContainer:
		if m.hook == HookNone || m.hookLeft() || !mayAsk {
			return fmt.Errorf("token %s was signalled, its hook is %s", m.alive, m.hook)
		}
		m.hook = HookNone
	case KillAll:
		if m.hookLeft() && m.memory.Open == m.alive {
			return fmt.Errorf("token %s was killed, its hook is %s", m.alive, m.hook)
		}
		if !m.alive.IsZero() && !mayKill {
			return fmt.Errorf("token %s was killed without an order", m.alive)
		}
		m.alive = spec.Token{}
		if m.box == Running {
			m.box = Exited
		}
	case RemoveContainer, RemoveContainers:
		if !m.alive.IsZero() {
			return fmt.Errorf("a container was removed while %s lives", m.alive)
		}
		m.box, m.left.containers = Absent, m.left.containers && op.Kind == RemoveContainer
	case Detach:
		m.link, m.left.link = false, false
	case RemoveScratch:
		m.scratch, m.left.scratch = false, false
	case RemoveSandbox:
		m.sandbox, m.left.sandbox = false, false
	case ReportOver:
		clean := m.alive.IsZero() && !m.link && !m.scratch && !m.sandbox && m.box == Absent
		if m.alive == m.token || m.closed[m.token] && m.memory.Open.IsZero() && !clean {
			return fmt.Errorf("token %s was told to be over: %+v", m.token, m)
		}
		m.told[m.token] = true
		if m.record == m.token && m.closed[m.token] {
			m.record, m.late, m.watched = spec.Token{}, false, false
		}
	}
	return nil
}
