package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// sim runs the planner against two hosts that obey late, twice or after the
// picture has changed, report late or not, vanish and boot, and against an engine
// that dies between any two actions. It knows the truth: what really runs where.
type sim struct {
	t         *testing.T
	r         *rand.Rand
	seed      uint64
	step      int
	w         World
	hosts     []*host
	orders    []records.Member // every member record there ever was: an agent may see an old one
	volumes   map[string]records.VolumeID
	uids      int
	starts    int
	backs     int // templates given up
	renames   int
	folder    folder
	most      int // one more than the largest set
	orphaned  int // looks at a set that nobody owned
	drains    int // members stopped with their nodes
	shutdowns int // and with their hosts
	deferred  int // updates that passed over a leader
}

// host is a node with its agent: the ledger rules of SAFETY S1 and S4.
type host struct {
	name    spec.NodeName
	boot    int
	up      bool // has a session
	opened  map[life]bool
	closed  map[life]records.Phase
	newest  map[spec.Identity]spec.Token
	running map[spec.Identity]spec.Token
	ready   map[life]bool
	terms   map[life]uint64 // in which they say that they lead
}

// life: lives of different identities may have the same token.
type life struct {
	id    spec.Identity
	token spec.Token
}

func lifeOf(m *records.Member) life { return life{m.ID, m.Token} }

func newSim(t *testing.T, seed uint64) *sim {
	s := &sim{t: t, r: rand.New(rand.NewPCG(seed, 0)), seed: seed, most: 5, volumes: map[string]records.VolumeID{}}
	s.w = world(t, "ordered 3 n1 n2 fresh")
	s.w.Set.Spec.VolumeClaimTemplates = []spec.ClaimTemplate{claim("data", 10)}
	for _, name := range []spec.NodeName{"n1", "n2"} {
		s.hosts = append(s.hosts, &host{
			name: name, up: true, opened: map[life]bool{}, closed: map[life]records.Phase{},
			newest: map[spec.Identity]spec.Token{}, running: map[spec.Identity]spec.Token{}, ready: map[life]bool{}, terms: map[life]uint64{},
		})
	}
	s.sessions()
	return s
}

func (s *sim) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d step %d: %s", s.seed, s.step, fmt.Sprintf(format, args...))
}

// sessions puts what hosts are up into the world.
func (s *sim) sessions() {
	s.w.Nodes = slices.Clone(s.w.Nodes)
	for i, h := range s.hosts {
		n := &s.w.Nodes[i]
		n.Session = nil
		if h.up {
			n.Session = &records.Session{Node: h.name, UID: n.Node.UID, Boot: h.bootID()}
		}
	}
}

func (h *host) bootID() spec.BootID { return spec.BootID(fmt.Sprint("boot", h.boot)) }

// plan does one planning step and the first actions of it: all, or as many as an
// engine managed before it died.
func (s *sim) plan(crash bool) (acted bool) {
	s.w.Rev++
	p := Next(s.w)
	explained(s.t, s.w, p)
	if s.w.Set != nil {
		s.folder.check(s.t, s.w)
	}
	s.ordered(p)
	s.judgeUpdates(p)
	s.judgeBack(p)
	s.judgeOrphaned(p)
	s.judgeNames(p)
	actions := p.Actions
	if crash && len(actions) > 0 {
		actions = actions[:s.r.IntN(len(actions)+1)]
	}
	for _, a := range actions {
		s.w = applyOne(s.w, a)
		switch a := a.(type) {
		case Start:
			s.starts++
			s.orders = append(s.orders, a.Member)
			s.keepVolumes(a.Member)
		case Stop:
			s.orders = append(s.orders, *slotOf(&s.w, a.ID).Member)
		}
	}
	if len(actions) == len(p.Actions) && s.w.Set != nil && !crash { // the status is written last
		s.w.Status = &p.Status
	}
	return len(actions) > 0
}

// keepVolumes: an identity has the volume it had, for ever.
func (s *sim) keepVolumes(m records.Member) {
	for _, v := range m.Volumes {
		key := m.ID.String() + string(v.Claim)
		if old, ok := s.volumes[key]; ok && old != v.ID {
			s.fail("%s got volume %s though it had %s", m.ID, v.ID, old)
		}
		s.volumes[key] = v.ID
	}
}

// ordered checks a plan under OrderedReady: one start, all before it available;
// one stop, all above it gone.
func (s *sim) ordered(p Plan) {
	if s.w.Set == nil || s.w.Set.Spec.PodManagementPolicy == spec.Parallel {
		return
	}
	disturbs := 0
	for _, a := range p.Actions {
		switch a := a.(type) {
		case Start:
			disturbs++
			for o := s.w.Set.Start(); o < a.Member.ID.Ordinal; o++ {
				if s.w.Set.Range().Has(o) && !s.available(o) && !s.passes(a.Member, o, p) {
					s.fail("db-%d starts while db-%d is not available", a.Member.ID.Ordinal, o)
				}
			}
		case Stop:
			if a.Reason == records.ReasonUpdate || a.Reason == records.ReasonDrain || a.Reason == records.ReasonNodeShutdown || s.recreates() {
				continue // see judgeUpdates
			}
			disturbs++
			for _, slot := range s.w.Slots {
				wanted := !s.w.Set.Deleting && s.w.Set.Range().Has(slot.ID.Ordinal)
				if !wanted && slot.ID.Ordinal > a.ID.Ordinal && slot.Member != nil && (slot.Report == nil || !slot.Report.Phase.Over()) {
					s.fail("db-%d stops while %s is not gone", a.ID.Ordinal, slot.ID)
				}
			}
		}
	}
	if disturbs > 1 {
		s.fail("%d members are disturbed at once: %s", disturbs, brief(p))
	}
}

func (s *sim) available(ordinal int) bool {
	for _, slot := range s.w.Slots {
		if slot.ID.Ordinal == ordinal && slot.Member != nil && slot.Report != nil {
			h := s.hostOf(slot.Member.Node)
			return slot.Report.Ready && slot.Member.Goal == records.GoalRun && h.up && slot.Member.Boot == h.bootID()
		}
	}
	return false
}

func (s *sim) hostOf(name spec.NodeName) *host {
	return s.hosts[slices.IndexFunc(s.hosts, func(h *host) bool { return h.name == name })]
}

// obey has a host's agent act on an order it was given at some time.
func (s *sim) obey(m records.Member) {
	h := s.hostOf(m.Node)
	if _, closed := h.closed[lifeOf(&m)]; closed || !h.up || m.Token.Compare(h.newest[m.ID]) < 0 {
		return
	}
	h.newest[m.ID] = m.Token
	opened := h.opened[lifeOf(&m)]
	switch {
	case m.Goal == records.GoalStop:
		delete(h.running, m.ID)
		h.closed[lifeOf(&m)] = records.PhaseStopped
	case m.Boot != h.bootID():
		h.closed[lifeOf(&m)] = records.PhaseStopped
	case !opened && s.r.IntN(6) == 0:
		h.closed[lifeOf(&m)] = records.PhaseFailed
	case !opened:
		h.running[m.ID] = m.Token
		for _, other := range s.hosts {
			if token, ok := other.running[m.ID]; ok && other != h {
				s.fail("two lives of %s: %s on %s and %s on %s", m.ID, m.Token, h.name, token, other.name)
			}
		}
	}
	h.opened[lifeOf(&m)] = true
}

// tell delivers what a host knows of the present life of a slot, if it is up.
func (s *sim) tell(i int) {
	m := s.w.Slots[i].Member
	if m == nil || !s.hostOf(m.Node).up {
		return
	}
	h := s.hostOf(m.Node)
	r := &records.Report{ID: m.ID, Token: m.Token, Node: h.name, Phase: records.PhaseRunning}
	if phase, closed := h.closed[lifeOf(m)]; closed {
		r.Phase = phase
	} else if h.running[m.ID] != m.Token {
		return
	}
	bad := r.Phase == records.PhaseRunning && s.bad(m.Revision)
	if bad {
		r.Cause, r.Message = "CrashLoop", "a bad revision"
	}
	r.Ready = !bad && r.Phase == records.PhaseRunning && h.ready[lifeOf(m)]
	if r.Ready {
		r.ReadyFor = time.Hour
	}
	if term, leads := h.terms[lifeOf(m)]; leads {
		r.Claim.Leads, r.Claim.Term = true, term
	}
	s.w.Rev++
	s.w.Slots = slices.Clone(s.w.Slots)
	s.w.Slots[i].Report = r
}

// reboot ends all that runs on a host; its agent closes every token it had opened.
func (h *host) reboot() {
	h.boot++
	h.running = map[spec.Identity]spec.Token{}
	for l := range h.opened {
		if _, closed := h.closed[l]; !closed {
			h.closed[l] = records.PhaseStopped
		}
	}
}

// settle ends all faults, also a bad template: it is fixed by another template
// alone. It gives everybody time; then the set must be as asked.
func (s *sim) settle() {
	if s.w.Set != nil && s.bad(s.w.TemplateHash) {
		s.w.TemplateHash = "h2"
	}
	if s.w.Set != nil {
		set := *s.w.Set
		set.Spec.UpdateStrategy, set.Paused, set.Orphaned = spec.UpdateStrategy{}, false, false
		s.w.Set = &set
	}
	s.w.Standstill = 0
	if s.w.Status != nil && s.w.Status.RolledBackFrom == s.w.TemplateHash {
		s.w.TemplateHash = spec.RevisionHash("again-" + string(s.w.TemplateHash))
	}
	for _, h := range s.hosts {
		h.up = true
		s.w.Nodes = drained(s.w.Nodes, h.name, false, false)
		s.shutHost(h, false, false)
	}
	s.sessions()
	led := s.r.IntN(2) == 0
	for range 200 {
		s.claim()
		acted := s.plan(false)
		for i := range s.w.Slots {
			if m := s.w.Slots[i].Member; m != nil {
				s.obey(*m)
				h := s.hostOf(m.Node)
				h.ready[lifeOf(m)] = true
				s.tell(i)
			}
		}
		switch {
		case acted || !s.done():
		case led || s.w.Set == nil || s.w.Set.Deleting:
			return
		default: // an update during which leadership wanders
			led = true
			set := *s.w.Set
			set.Spec.UpdateStrategy.RollingUpdate = &spec.RollingUpdate{Order: spec.OrderLeaderLast}
			s.w.Set, s.w.TemplateHash = &set, spec.RevisionHash(fmt.Sprint("led-", s.step))
		}
	}
	s.fail("faults are over, but the set does not come to rest: %s", brief(Next(s.w)))
}

func (s *sim) done() bool {
	lives := 0
	for _, slot := range s.w.Slots {
		if slot.Member != nil {
			lives++
		}
	}
	if s.w.Set == nil || s.w.Set.Deleting {
		return s.w.Set == nil && lives == 0
	}
	for _, o := range s.wanted() {
		if !s.available(o) || s.slot(o).Member.Revision != s.w.TemplateHash {
			return false
		}
	}
	return lives == s.w.Set.Replicas() && s.w.Status != nil && s.w.Status.CurrentRevision == s.w.TemplateHash
}

func TestSimulation(t *testing.T) {
	runs, starts, backs, orphaned, renames, drains, shutdowns, deferred := uint64(300), 0, 0, 0, 0, 0, 0, 0
	if testing.Short() {
		runs = 100
	}
	for seed := range runs {
		s := newSim(t, seed)
		for s.step = range 400 {
			s.fault()
			if s.step%100 == 99 {
				s.settle()
			}
		}
		starts += s.starts
		backs += s.backs
		orphaned += s.orphaned
		renames += s.renames
		drains += s.drains
		shutdowns += s.shutdowns
		deferred += s.deferred
	}
	if deferred < int(runs)/4 {
		t.Errorf("%d members that lead were passed over in %d runs; the simulation does too little", deferred, runs)
	}
	if shutdowns < int(runs)/4 {
		t.Errorf("%d members were stopped with their hosts in %d runs; the simulation does too little", shutdowns, runs)
	}
	if drains < int(runs)/4 {
		t.Errorf("%d members were drained in %d runs; the simulation does too little", drains, runs)
	}
	if renames < int(runs) {
		t.Errorf("%d services were renamed in %d runs; the simulation does too little", renames, runs)
	}
	if orphaned < int(runs) {
		t.Errorf("%d looks at orphaned sets in %d runs; the simulation does too little", orphaned, runs)
	}
	if backs < int(runs)/30 {
		t.Errorf("%d templates were given up in %d runs; the simulation does too little", backs, runs)
	}
	if starts < int(runs)*10 {
		t.Errorf("%d lives in %d runs; the simulation does too little", starts, runs)
	}
}

// wanted are the ordinals that the set should have.
func (s *sim) wanted() (list []int) {
	for o := range 20 {
		if s.w.Set.Range().Has(o) {
			list = append(list, o)
		}
	}
	return list
}
