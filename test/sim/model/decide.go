package model

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/stead-project/stead/agent/step"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

const hash spec.RevisionHash = "h1"

func (t token) spec() spec.Token {
	return spec.Token{Epoch: int64(t.epoch()), Number: int64(t.number())}
}

func fromSpec(t spec.Token) token { return tok(uint8(t.Epoch), uint8(t.Number)) }

func identity(o int) spec.Identity { return spec.Identity{Namespace: "default", Set: "db", Ordinal: o} }

func nodeName(n uint8) spec.NodeName { return spec.NodeName([]string{"n0", "n1"}[n]) }

func bootID(b uint8) spec.BootID { return spec.BootID([]string{"boot0", "boot1", "boot2"}[b]) }

// deed is an action of a plan, as small as the model needs it.
type deed struct {
	kind string // start, stop, forget
	lost uint8  // node+1 of a life that is over by its deadline
	o    int
	tok  token
	node uint8
	boot uint8
}

// picture is all that a decision is made by.
type picture struct {
	stored
	gone [nodes]uint8
}

// world is what a planner sees.
func world(c *picture, b Bounds) plan.World {
	want := int32(c.want)
	set := &records.Set{
		Ref: spec.SetRef{Namespace: "default", Name: "db"}, UID: "u1", Generation: 1, InitialReplicas: int(b.Members),
		Spec: spec.SetSpec{Replicas: &want, PodManagementPolicy: spec.Parallel},
	}
	bound := time.Duration(b.Bound) * second
	if b.Bound > 0 {
		set.Spec.NodeLoss = &spec.NodeLoss{Policy: spec.NodeLossReplace, After: &scalar.Duration{Duration: bound}}
	}
	if b.Ordered {
		set.Spec.PodManagementPolicy = spec.OrderedReady
	}
	w := plan.World{
		Epoch: int64(c.epoch), Set: set, TemplateHash: hash, Bootstrapped: true,
		Revisions: []*records.Revision{{Ref: set.Ref, SetUID: set.UID, Hash: hash, Number: 1}},
		Status:    &records.SetStatus{CurrentRevision: hash, CurrentCompleted: true},
		VolumeID:  func() records.VolumeID { return "" },
		Free:      []netip.Addr{netip.AddrFrom4([4]byte{10, 88, 0, 8}), netip.AddrFrom4([4]byte{10, 88, 0, 9})},
	}
	for n := range uint8(nodes) {
		name := nodeName(n)
		x := plan.Node{Node: &records.Node{Name: name, UID: spec.UID(name)}}
		if c.heard[n] > 0 {
			x.Facts = &records.NodeFacts{Name: name, UID: spec.UID(name), Epoch: int64(c.heard[n]), Guards: true}
		}
		if c.sess[n] > 0 {
			x.Session = &records.Session{Node: name, UID: spec.UID(name), Boot: bootID(c.sess[n] - 1)}
		} else {
			x.Gone = time.Duration(c.gone[n]) * second
		}
		w.Nodes = append(w.Nodes, x)
	}
	for o := range int(b.Members) {
		if s, any := c.slot(o, bound); any {
			w.Slots = append(w.Slots, s)
		}
	}
	return w
}

// slot is the planner's view of one identity; false: nothing is stored of it.
func (c *stored) slot(o int, bound time.Duration) (s plan.Slot, any bool) {
	x := &c.slots[o]
	s.ID = identity(o)
	if x.last != 0 {
		s.Identity = &records.IdentityRecord{ID: s.ID, LastToken: x.last.spec(), Due: hash, Address: netip.AddrFrom4([4]byte{10, 88, 0, byte(o)}), AvailableOn: hash}
	}
	if x.tok != 0 {
		s.Member = &records.Member{
			ID: s.ID, SetUID: "u1", Token: x.tok.spec(), Goal: records.GoalRun, Revision: hash,
			Node: nodeName(x.node), NodeUID: spec.UID(nodeName(x.node)), Boot: bootID(x.boot), Bound: bound,
		}
		if x.goal == stop {
			s.Member.Goal, s.Member.StopReason = records.GoalStop, records.ReasonScaleDown
		}
		if x.rtok == x.tok {
			s.Report = &records.Report{ID: s.ID, Token: s.Member.Token, Phase: records.PhaseRunning, Ready: x.rphase == ready, ReadyFor: time.Hour, Bound: bound}
			if x.rphase == over {
				s.Report.Phase, s.Report.Ready = records.PhaseStopped, false
			}
		}
	}
	for n := range uint8(nodes) {
		if t := c.stray[n][o]; t != 0 && !(t == x.tok && n == x.node) {
			s.Strays = append(s.Strays, plan.NodeStray{Node: nodeName(n), Stray: spec.LifeID{ID: s.ID, Token: t.spec()}})
		}
	}
	return s, s.Identity != nil || s.Member != nil || len(s.Strays) > 0
}

// decide asks the planner, once for each cache.
func (e *Explorer) decide(c *stored, gone [nodes]uint8) []deed {
	key := picture{*c, gone}
	key.leader, key.term = 0, 0
	if list, ok := e.plans[key]; ok {
		return list
	}
	w := world(&key, e.bounds)
	if e.Plant.See != nil {
		e.Plant.See(&w)
	}
	var list []deed
	for _, a := range plan.Next(w).Actions {
		switch a := a.(type) {
		case plan.Start:
			d := deed{kind: "start", lost: nodeNumber(a.Lost), o: a.Member.ID.Ordinal, tok: fromSpec(a.Member.Token)}
			d.node = nodeNumber(a.Member.Node) - 1
			d.boot = c.sess[d.node] - 1
			list = append(list, d)
		case plan.Stop:
			list = append(list, deed{kind: "stop", o: a.ID.Ordinal, tok: fromSpec(a.Token)})
		case plan.Forget:
			list = append(list, deed{kind: "forget", lost: nodeNumber(a.Lost), o: a.ID.Ordinal, tok: fromSpec(a.Token)})
		case plan.MarkReady, plan.MarkBootstrapped, plan.AddRevision, plan.RaiseRevision, plan.PruneRevision:
		default:
			panic(fmt.Sprintf("the model does not know %T", a))
		}
	}
	e.plans[key] = list
	return list
}

// next asks the agent's decisions for one identity. A life of another boot was refused
// when it was told of.
func (e *Explorer) next(h *host, l *local) (step.Op, token) {
	m := step.Memory{Newest: l.newest.spec(), Open: l.open.spec()}
	for _, t := range l.ends {
		if t != 0 {
			m.Ends = append(m.Ends, t.spec())
		}
	}
	o := step.Orders{Token: l.otok.spec(), Over: l.over.spec()}
	switch l.ogoal {
	case run:
		o.Goal = records.GoalRun
	case stop:
		o.Goal = records.GoalStop
	}
	if m.Newest.Epoch == 0 {
		m.Newest = spec.Token{}
	}
	chosen, standing, ordered := step.Choose(m, o, func(t spec.Token) bool { return t != l.rec.spec() || l.clear() })
	c := step.Container{Name: "c", State: step.Absent, Image: true, Due: true}
	switch l.box {
	case made:
		c.State = step.Created
	case up:
		c.State = step.Running
	}
	switch {
	case l.box == up && l.landing != 0:
		c.State = step.Created
	case l.box == up && l.alive == 0:
		c.State = step.Exited
	}
	seen := step.Seen{
		Standing: standing, Told: l.clear(), Volumes: true, Sandbox: true, Network: true, Files: true, Containers: []step.Container{c},
		Empty: l.alive == 0, Signalled: true, GraceOver: true, Removed: l.box == none, Detached: true, Unmounted: true, Unpinned: true,
	}
	if token := fromSpec(chosen); e.bounds.Bound > 0 {
		seen.Expired = standing == step.Open && (l.rec != token || e.passed(h, l))
		seen.Unconfirmed = standing == step.Fresh && e.passed(h, &local{})
	}
	return step.Next(step.Wanted{Order: ordered, Restored: fromSpec(chosen).epoch() < h.epoch}, seen), fromSpec(chosen)
}

// clear: nothing of any life stands here.
func (l *local) clear() bool { return l.box == none && l.alive == 0 }

// nodeNumber is the number of a node and one more; 0: none.
func nodeNumber(name spec.NodeName) uint8 {
	for n := range uint8(nodes) {
		if name == nodeName(n) {
			return n + 1
		}
	}
	return 0
}
