package sim

import (
	"context"
	"encoding/json"
	"slices"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/spec"
)

// session is one stream between a node and a server, with what is under way on it.
type session struct {
	n    *node
	s    *server
	desk *dispatch.Desk
	id   spec.SessionID
	down []*proto.ToNode
	up   []*proto.FromNode
	line line
}

// stream is the server's end.
type stream struct {
	grpc.ServerStream
	x *session
}

func (s stream) Context() context.Context       { return s.x.n.w.ctx }
func (s stream) Recv() (*proto.FromNode, error) { panic("the simulation receives by hand") }
func (s stream) Send(m *proto.ToNode) error {
	if p := m.GetPong(); p != nil {
		s.x.line.down = append(s.x.line.down, p)
	} else {
		s.x.down = append(s.x.down, m)
	}
	return nil
}

// connect says hello to a server; it may be refused.
func (n *node) connect(s *server) bool {
	x := &session{n: n, s: s, line: newLine(n.w.clock)}
	lost := n.w.lost(n.known.Add(records.Known{At: n.newest}))
	held := n.w.held()
	desk, welcome, err := s.nodes.Desk(n.w.ctx, n.hello(), stream{x: x})
	if s.buried() {
		return true
	}
	if err != nil {
		n.w.count("hello refused")
		n.w.note("%s is not admitted by %s: %v", n.name, s.name, err)
		return false
	}
	n.w.note("%s has session %d with %s", n.name, welcome.GetSession(), s.name)
	n.w.judge.holds(string(n.name), lost)
	if !held && n.w.held() {
		n.w.count("store held by a node")
	}
	if n.removed {
		n.removed = false
		n.w.count("removed node is back")
	}
	x.desk, x.id = desk, spec.SessionID(welcome.GetSession())
	n.agent.sess = x
	n.hear(welcome.GetHeld(), wire.ToKnown(welcome.GetKnown()))
	x.beginTrash()
	for _, id := range n.agent.ids {
		if r, ok := n.agent.workers[id].Last(); ok && !r.Phase.Over() {
			n.agent.put(r)
		}
	}
	for _, l := range n.agent.letters {
		l.sent = false
	}
	return true
}

// hear takes over what a message says of the store. Of one that is held nothing is learnt, and
// no guarded life begins.
func (n *node) hear(held bool, said records.Known) {
	if n.agent.keeper.Hold(held); !held {
		n.known = n.known.Add(said)
	}
}

func (n *node) hello() *proto.Hello {
	said := records.NodeFacts{Name: n.name, UID: n.uid, Boot: n.boot(), Guards: true, Classes: allClasses, SharedClasses: []string{sharedClass}}
	if n.w.fences {
		said.FencedClasses = said.SharedClasses
	}
	facts, err := json.Marshal(said)
	if err != nil {
		panic(err)
	}
	inventory := &proto.Inventory{}
	for _, id := range n.agent.ids {
		if token, ok := n.agent.workers[id].Pending(); ok {
			inventory.Holdings = append(inventory.Holdings, &proto.Holding{Id: wire.Identity(id), Token: wire.Token(token)})
		}
	}
	for _, e := range n.agent.led.Entries() {
		if !e.Open.IsZero() {
			inventory.Holdings = append(inventory.Holdings, &proto.Holding{Id: wire.Identity(e.ID), Token: wire.Token(e.Open)})
		}
	}
	newest, known := n.newest, n.known
	if n.w.plant.NoticesNothing {
		newest, known = spec.Sequence{}, records.Known{}
	}
	return &proto.Hello{
		Node: string(n.name), Uid: string(n.uid), Boot: string(n.boot()), Cluster: clusterID,
		FactsJson: facts, Inventory: inventory, Newest: wire.Sequence(newest), Known: wire.Known(known),
	}
}

// endSession breaks the stream; what is under way on it is lost.
func (n *node) endSession(why string) {
	x := n.session()
	if x == nil {
		return
	}
	n.w.note("%s's session %d ends: %s", n.name, x.id, why)
	if x.s.up {
		x.desk.Close()
	}
	n.agent.sess = nil
}

func (w *Cluster) connect() bool {
	n, s := w.someNode(), w.someServer()
	if n.agent == nil || n.stopped || n.agent.sess != nil || n.cut || !s.up || s.hung {
		return false
	}
	ok := n.connect(s)
	if ok && w.chance(30) {
		n.endSession("it broke at once")
	}
	return ok
}

// some picks one of the sessions for which ok holds, of nodes whose network is up; nil:
// there is none.
func (w *Cluster) some(ok func(*session) bool) *session {
	at := w.r.IntN(len(w.nodes))
	for i := range w.nodes {
		n := w.nodes[(at+i)%len(w.nodes)]
		if x := n.session(); x != nil && !n.cut && ok(x) {
			return x
		}
	}
	return nil
}

func anySession(*session) bool { return true }

func (w *Cluster) tell() bool {
	x := w.some(func(x *session) bool { return !x.s.hung })
	return x != nil && x.tell()
}

func (x *session) tell() bool {
	before := len(x.down)
	err := x.desk.Tell()
	if x.s.buried() {
		return true
	}
	if err != nil {
		x.n.endSession(err.Error())
		return true
	}
	return len(x.down) > before
}

func (w *Cluster) receive() bool {
	x := w.some(func(x *session) bool { return len(x.down) > 0 && !x.n.stopped })
	if x == nil {
		return false
	}
	for range 1 + w.r.IntN(len(x.down)) {
		x.receive()
	}
	return true
}

// receive has the node take the next message of its stream.
func (x *session) receive() {
	if x.n.session() != x || len(x.down) == 0 {
		return
	}
	m := x.down[0]
	x.down = x.down[1:]
	switch {
	case m.GetWanted() != nil:
		x.wanted(m.GetWanted())
	case m.GetStored() != nil:
		list := m.GetStored().GetReports()
		slices.SortFunc(list, func(a, b *proto.StoredReport) int { // it comes in any order
			return life{wire.ToIdentity(a.GetId()), wire.ToToken(a.GetToken())}.compare(life{wire.ToIdentity(b.GetId()), wire.ToToken(b.GetToken())})
		})
		for _, r := range list {
			x.n.agent.stored(life{wire.ToIdentity(r.GetId()), wire.ToToken(r.GetToken())}, r.GetSeq())
		}
	}
}

// wanted takes orders as agent.takeWanted does.
func (x *session) wanted(m *proto.Wanted) {
	n := x.n
	seq := wire.ToSequence(m.GetSequence())
	if seq.Compare(n.newest) < 0 {
		n.endSession("its list is older than one that was accepted")
		return
	}
	n.newest, x.line.listed = seq, true
	n.known = n.known.Add(records.Known{At: seq})
	for _, h := range m.GetOver() {
		n.worker(wire.ToIdentity(h.GetId())).over(wire.ToToken(h.GetToken()))
	}
	lives, err := wire.ToDocuments[records.Life](m.GetLivesJson())
	if err != nil {
		panic(err)
	}
	for i := range lives {
		if m := &lives[i].Member; m.Node != n.name || m.NodeUID != n.uid {
			n.w.fail("dispatch", "%s is told of a life on %s", n.name, m.Node)
			return
		}
		n.w.judge.told(&lives[i])
		n.worker(lives[i].Member.ID).tell(lives[i])
	}
	x.takeVolumes(m)
	if n.w.plant.AbsenceIsAnOrder && m.GetFull() {
		n.obeyAbsence(lives)
	}
}

// obeyAbsence is a plant: what a whole list does not name is stopped.
func (n *node) obeyAbsence(lives []records.Life) {
	for _, id := range n.agent.ids {
		if !slices.ContainsFunc(lives, func(l records.Life) bool { return l.Member.ID == id }) {
			if e := n.agent.led.Look(id); !e.Open.IsZero() {
				n.agent.workers[id].over(e.Open)
			}
		}
	}
}

func (w *Cluster) send() bool {
	return w.some(func(x *session) bool { return !x.n.stopped && x.send() }) != nil
}

func (x *session) send() bool {
	due, said := x.n.agent.due(), x.sendVolumeReports()
	if len(due) == 0 {
		return said
	}
	for i := range due {
		due[i].Session = x.id
	}
	docs, err := wire.Documents(due)
	if err != nil {
		panic(err)
	}
	x.up = append(x.up, &proto.FromNode{Kind: &proto.FromNode_Reports{Reports: &proto.Reports{ReportsJson: docs}}})
	return true
}

func (w *Cluster) take() bool {
	x := w.some(func(x *session) bool { return len(x.up) > 0 && !x.s.hung })
	if x == nil {
		return false
	}
	x.take(1 + w.r.IntN(len(x.up)))
	return true
}

// take has the server take the next n messages.
func (x *session) take(n int) {
	for range min(n, len(x.up)) {
		x.believe(x.up[0])
		x.desk.Receive(x.up[0])
		x.up = x.up[1:]
	}
}
