package move

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

const (
	hash  spec.RevisionHash = "h1"
	claim spec.ClaimName    = "data"
)

var id = spec.Identity{Namespace: "default", Set: "db"}

// The phases and states in the order of their numbers.
var (
	phases  = []moves.MovePhase{"", moves.MoveCopying, moves.MoveStopping, moves.MoveSealing, moves.MoveFlipped, moves.MoveAborting}
	sayings = []moves.MoveState{"", moves.MoveOffered, moves.MoveSealed, moves.MoveUnsealed, moves.MoveCopyingNow, moves.MoveWarm, moves.MoveCopied, moves.MoveArrived, moves.MoveDiscarded, moves.MoveFailed}
)

// indexOf is the number of a word of a list; it must be there.
func indexOf[T comparable](list []T, word T) uint8 {
	for i := range list {
		if list[i] == word {
			return uint8(i)
		}
	}
	panic("the model does not know a word")
}

func nodeName(n uint8) spec.NodeName { return spec.NodeName("n" + strconv.Itoa(int(n))) }

func nodeNumber(name spec.NodeName) uint8 { return number(string(name), "n") }

func volumeID(v uint8) records.VolumeID { return records.VolumeID("v" + strconv.Itoa(int(v))) }

func moveID(m uint8) moves.MoveID { return moves.MoveID("m" + strconv.Itoa(int(m))) }

func number(text, prefix string) uint8 {
	n, err := strconv.Atoi(strings.TrimPrefix(text, prefix))
	if err != nil {
		panic(err)
	}
	return uint8(n)
}

// sums are those of a tree whose newest write is sum-1; nil: none.
func sums(sum uint8) []moves.MoveSum {
	if sum == 0 {
		return nil
	}
	return []moves.MoveSum{{Claim: claim, Sum: strconv.Itoa(int(sum))}}
}

func sumOf(list []moves.MoveSum) uint8 {
	if len(list) == 0 {
		return 0
	}
	return number(list[0].Sum, "")
}

func (t token) spec() spec.Token {
	if t == 0 {
		return spec.Token{}
	}
	return spec.Token{Epoch: int64(t.epoch()), Number: int64(t.number())}
}

func fromSpec(t spec.Token) token { return tok(uint8(t.Epoch), uint8(t.Number)) }

func end(n uint8) moves.MoveEnd { return moves.MoveEnd{Node: nodeName(n), UID: spec.UID(nodeName(n))} }

// history is what never changes of moves that were begun.
type history struct {
	from, was [most]uint8
}

func (h *history) claims(m uint8) []moves.MoveClaim {
	return []moves.MoveClaim{{Claim: claim, Old: string(volumeID(h.was[m-1])), New: string(volumeID(m)), Number: 1, Class: spec.LocalClass, SizeBytes: 1}}
}

// picture is all that a decision is made by.
type picture struct {
	stored
	history
}

func (s *State) picture(c *stored) picture { return picture{*c, history{s.from, s.was}} }

// move is the record of the move; nil: there is none.
func (p *picture) moveRecord() *moves.Move {
	m := p.move
	if m.id == 0 {
		return nil
	}
	from := p.from[m.id-1]
	return &moves.Move{
		ID: id, Move: moveID(m.id), Phase: phases[m.phase], From: end(from), To: end(1 - from), Claims: p.claims(m.id),
		Epoch: int64(m.epoch), Stopped: m.stopped.spec(), Sums: sums(m.sum),
	}
}

// nodes are all nodes as the planner knows them.
func (p *picture) nodes() (list []plan.Node) {
	for n := range uint8(nodes) {
		x, name := &p.node[n], nodeName(n)
		node := plan.Node{Node: &records.Node{Name: name, UID: spec.UID(name)}}
		if x.heard > 0 {
			node.Facts = &records.NodeFacts{Name: name, UID: spec.UID(name), Epoch: int64(x.heard), Moves: true, MoveReports: p.reports(n)}
		}
		if x.sess {
			node.Session = &records.Session{Node: name, UID: spec.UID(name)}
		}
		list = append(list, node)
	}
	return list
}

// role is what a node does in a move.
func (h *history) role(n, m uint8) moves.MoveRole {
	if h.from[m-1] == n {
		return moves.MoveSource
	}
	return moves.MoveTarget
}

func (p *picture) reports(n uint8) (list []moves.MoveReport) {
	for i, x := range p.node[n].said {
		m := uint8(i + 1)
		if x.state == 0 {
			continue
		}
		r := moves.MoveReport{ID: id, Move: moveID(m), Role: p.role(n, m), State: sayings[x.state], Sums: sums(x.sum)}
		if x.key {
			r.Key, r.Port = "k", 1
		}
		if x.unknown {
			r.Peer, r.Claims = nodeName(1-n), p.claims(m)
		}
		list = append(list, r)
	}
	return list
}

// world is what a planner sees.
func (p *picture) world() plan.World {
	want := int32(p.want)
	local := spec.ClaimTemplate{Metadata: spec.ObjectMeta{Name: string(claim)}}
	set := &records.Set{
		Ref: id.Ref(), UID: "u1", Generation: 1, InitialReplicas: 1,
		Spec: spec.SetSpec{Replicas: &want, PodManagementPolicy: spec.Parallel, VolumeClaimTemplates: []spec.ClaimTemplate{local}},
	}
	w := plan.World{
		Epoch: int64(p.epoch), Set: set, TemplateHash: hash, Bootstrapped: true,
		Revisions: []*records.Revision{{Ref: set.Ref, SetUID: set.UID, Hash: hash, Number: 1}},
		Status:    &records.SetStatus{CurrentRevision: hash, CurrentCompleted: true},
		VolumeID:  func() records.VolumeID { return "new" },
		Nodes:     p.nodes(), Slots: []plan.Slot{p.slot()},
	}
	return w
}

// slot is the planner's view of the identity.
func (p *picture) slot() plan.Slot {
	l, address := &p.life, netip.AddrFrom4([4]byte{10, 88, 0, 8})
	s := plan.Slot{
		ID: id, Move: p.moveRecord(),
		Identity: &records.IdentityRecord{
			ID: id, LastToken: l.last.spec(), Due: hash, Address: address, AvailableOn: hash, ReadyOnce: "u1",
			VolumeNumbers: map[spec.ClaimName]int{claim: 1}, VolumeReady: map[spec.ClaimName]int{claim: 1},
		},
		Volumes: map[spec.ClaimName]*records.Volume{claim: {
			ID: id, Claim: claim, UID: volumeID(p.vol.id), Number: 1, Class: spec.LocalClass, Node: nodeName(p.vol.node), SizeBytes: 1, Fate: records.FateKeep,
		}},
	}
	if l.tok != 0 {
		s.Member = &records.Member{
			ID: id, SetUID: "u1", Token: l.tok.spec(), Goal: records.GoalRun, Revision: hash, Node: nodeName(l.node), NodeUID: spec.UID(nodeName(l.node)), Address: address,
			Volumes: []records.MemberVolume{{Claim: claim, ID: volumeID(l.vol), Number: 1, Class: spec.LocalClass, SizeBytes: 1}},
		}
		if l.goal == stop {
			s.Member.Goal, s.Member.StopReason = records.GoalStop, records.ReasonMove
		}
	}
	if l.tok != 0 && l.rtok == l.tok {
		s.Report = &records.Report{ID: id, Token: s.Member.Token, Phase: records.PhaseRunning, Ready: l.rphase == ready, ReadyFor: time.Hour}
		if l.rphase == over {
			s.Report.Phase, s.Report.Ready = records.PhaseStopped, false
		}
	}
	switch q := p.asked; q.verb {
	case begin:
		s.MoveAsked = &moves.MoveRequest{ID: id, Verb: moves.MoveBegin, To: end(q.to)}
	case abort:
		s.MoveAsked = &moves.MoveRequest{ID: id, Verb: moves.MoveAbort, Move: moveID(q.move)}
	}
	for n := range uint8(nodes) {
		if t := p.node[n].stray; t != 0 && !(t == l.tok && n == l.node) {
			s.Strays = append(s.Strays, plan.NodeStray{Node: nodeName(n), Stray: spec.LifeID{ID: id, Token: t.spec()}})
		}
		if p.node[n].left != 0 {
			s.Left = append(s.Left, nodeName(n))
		}
	}
	return s
}

// decide asks the planner, once for each picture.
func (e *Explorer) decide(p picture) []plan.Action {
	if list, ok := e.plans[p]; ok {
		return list
	}
	w := p.world()
	if e.Plant.See != nil {
		e.Plant.See(&w)
	}
	x := plan.Next(w)
	if e.Plant.Say != nil {
		e.Plant.Say(w, &x)
	}
	e.plans[p] = x.Actions
	return x.Actions
}

// orderFor is what a node is told of the move.
func (e *Explorer) orderFor(p picture, n uint8) order {
	key := told{p, n}
	if o, ok := e.orders[key]; ok {
		return o
	}
	epoch := int64(p.epoch)
	if e.Plant.UnsealsInAnyEpoch {
		epoch = int64(p.move.epoch)
	}
	slot := p.slot()
	x := plan.MoveOrder(slot.Move, p.role(n, p.move.id), p.nodes(), epoch, func(c spec.ClaimName) *records.Volume { return slot.Volumes[c] })
	o := order{phase: indexOf(phases, x.Phase), unseal: x.Unseal, sum: sumOf(x.Sums), peer: x.PeerKey != "" && x.PeerPort != 0}
	e.orders[key] = o
	return o
}

// refused reports whether control refuses what a user asks.
func (e *Explorer) refused(p picture, q request) bool {
	key := asked{p, q}
	no, ok := e.refusals[key]
	if !ok {
		p.asked = q
		w := p.world()
		no = plan.MoveRefusal(w, *w.Slots[0].MoveAsked) != ""
		e.refusals[key] = no
	}
	return no
}
