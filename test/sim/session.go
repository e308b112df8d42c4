package sim

import (
	"context"
	"encoding/json"
	"slices"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/spec"
)

// stream is one session between a node and a server, with what is under way on it.
type stream struct {
	n      *node
	s      *server
	manual *dispatch.ManualSession
	own    *session.Session
	id     spec.SessionID
	down   []*proto.ToNode
	up     []*proto.FromNode
	line   line
}

// serverEnd is the server's end of a stream.
type serverEnd struct {
	grpc.ServerStream
	x *stream
}

func (s serverEnd) Context() context.Context       { return s.x.n.w.ctx }
func (s serverEnd) Recv() (*proto.FromNode, error) { panic("the simulation receives by hand") }
func (s serverEnd) Send(m *proto.ToNode) error {
	if m.GetPong() != nil {
		s.x.line.down = append(s.x.line.down, m)
	} else {
		s.x.down = append(s.x.down, m)
	}
	return nil
}

// connect says hello to a server; it may be refused.
func (n *node) connect(s *server) bool {
	x := &stream{n: n, s: s, line: newLine(n.w.clock)}
	a := n.agent
	lost := n.w.lost(a.known.Now().Add(records.Known{At: n.newest}))
	held := n.w.held()
	manual, welcome, err := s.nodes.ManualSession(n.w.ctx, n.hello(), serverEnd{x: x})
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
	x.manual, x.id = manual, spec.SessionID(welcome.GetSession())
	a.sess = x
	clear(a.epochs)
	clear(a.forgotten)
	n.run(func() {
		x.own = got(a.client.Begin(n.w.ctx, welcome))
	})
	return true
}

// hello is the client's, but for what a plant hides, and for whether images are pulled ahead and which classes are
// fenced, whether volumes are moved, and whether it is too old for jobs: the run chooses these after its first agents began.
func (n *node) hello() *proto.Hello {
	hello := got(n.agent.client.Hello(context.Background())).GetHello()
	var facts records.NodeFacts
	must(json.Unmarshal(hello.FactsJson, &facts))
	facts.Prepares, facts.Moves, facts.MovesBack = n.w.prepares, n.w.moves, n.w.moves
	facts.Jobs = !n.noJobs
	if n.noChange {
		facts.Level = spec.Level - 1
	}
	if n.w.fences {
		facts.FencedClasses = facts.SharedClasses
	}
	hello.FactsJson = got(json.Marshal(facts))
	if n.w.plant.NoticesNothing {
		hello.Newest, hello.Known = wire.Sequence(spec.Sequence{}), wire.Known(records.Known{})
	}
	return hello
}

// endSession breaks the stream; what is under way on it is lost.
func (n *node) endSession(why string) {
	x := n.session()
	if x == nil {
		return
	}
	n.w.note("%s's session %d ends: %s", n.name, x.id, why)
	if x.s.up {
		x.manual.Close()
	}
	n.agent.sess = nil
	n.agent.client.End()
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
func (w *Cluster) some(ok func(*stream) bool) *stream {
	at := w.r.IntN(len(w.nodes))
	for i := range w.nodes {
		n := w.nodes[(at+i)%len(w.nodes)]
		if x := n.session(); x != nil && !n.cut && ok(x) {
			return x
		}
	}
	return nil
}

func anySession(*stream) bool { return true }

func (x *stream) answers() bool { return !x.s.hung }

func (x *stream) tell() bool {
	before := len(x.down)
	x.s.publish()
	err := x.manual.Send()
	if x.s.buried() {
		return true
	}
	if err != nil {
		x.n.endSession(err.Error())
		return true
	}
	return len(x.down) > before
}

func (x *stream) hasOrders() bool { return len(x.down) > 0 && !x.n.stopped }

func (x *stream) receiveSome() bool {
	for range 1 + x.n.w.r.IntN(len(x.down)) {
		x.receive()
	}
	return true
}

// receive has the node take the next message of its stream.
func (x *stream) receive() {
	if x.n.session() != x || len(x.down) == 0 {
		return
	}
	m := x.down[0]
	x.down = x.down[1:]
	if list := m.GetStored().GetReports(); list != nil {
		slices.SortFunc(list, func(a, b *proto.StoredReport) int { // it comes in any order
			return life{wire.ToIdentity(a.GetId()), wire.ToToken(a.GetToken())}.compare(life{wire.ToIdentity(b.GetId()), wire.ToToken(b.GetToken())})
		})
	}
	if m.GetWanted() != nil {
		x.wanted(m.GetWanted())
	}
	var err error
	if died := x.n.run(func() { err = x.own.Handle(m) }); !died && err != nil {
		x.n.endSession(err.Error())
	}
}

// wanted notes what a list orders, before the agent takes it.
func (x *stream) wanted(m *proto.Wanted) {
	n, seq := x.n, wire.ToSequence(m.GetSequence())
	if seq.Compare(n.newest) < 0 {
		return
	}
	x.line.listed = true
	for _, o := range got(wire.ToDocuments[records.VolumeOrder](m.GetVolumesJson())) {
		if _, had := n.agent.epochs[o.Volume]; !had || m.GetFull() {
			n.agent.epochs[o.Volume] = seq.Epoch
		}
		n.agent.forgotten[o.Volume] = o
	}
	if n.w.plant.AbsenceIsAnOrder && m.GetFull() {
		n.obeyAbsence(got(wire.ToDocuments[records.Life](m.GetLivesJson())))
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

// send has the node say what it has to say; false: nothing.
func (x *stream) send() bool {
	if x.n.stopped {
		return false
	}
	x.n.prepare()
	messages, _, err := x.own.Flush()
	must(err)
	for _, m := range messages {
		if m.GetVolumes() == nil {
			x.up = append(x.up, m)
			continue
		}
		x.utter(m.GetVolumes())
	}
	return len(messages) > 0
}

func (x *stream) hasReports() bool { return len(x.up) > 0 && !x.s.hung }

func (x *stream) takeSome() bool {
	x.take(1 + x.n.w.r.IntN(len(x.up)))
	return true
}

// take has the server take the next n messages.
func (x *stream) take(n int) {
	for range min(n, len(x.up)) {
		x.believe(x.up[0])
		x.manual.Receive(x.up[0])
		x.up = x.up[1:]
	}
}
