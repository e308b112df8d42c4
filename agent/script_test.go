package agent

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

const cluster = "0123456789abcdef0123456789abcdef"

var (
	db0 = spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	cid = runtime.ContainerID{ID: db0, Name: "db"}
	ref = db0.Ref()
)

func tok(n int64) spec.Token { return spec.Token{Epoch: 1, Number: n} }

// script is a server that does what the test says.
type script struct {
	proto.UnimplementedNodesServer
	t *testing.T

	mu      sync.Mutex
	cluster string
	ttl     time.Duration // of sessions; a node pings five times in it
	mute    bool          // answers no ping
	behind  bool          // has not told all that was committed before a ping
	strange bool          // its pongs answer what was never asked
	lag     time.Duration // how long its pongs are on their way
	deaf    bool          // stores no report
	held    bool          // says that its store is held
	known   *proto.Known  // said in welcomes and pongs
	hellos  []*proto.Hello
	reports []records.Report
	last    map[spec.LifeID]records.Report
	trash   []*proto.VolumeReports // all there were
	resends []*proto.Resend
	follow  *proto.Follow // the last
	// conditions are what the node said last that it is short of; conditionsSaid counts the messages beside hellos.
	conditions     []records.NodeCondition
	conditionsSaid int
	first          []*proto.ToNode // sent after welcome to each session
	out            chan *proto.ToNode
	tunnels        chan proto.Nodes_TunnelServer
	ends           chan struct{} // closed by the test to let tunnels go

	server *grpc.Server
	lis    *bufconn.Listener
}

func newScript(t *testing.T) *script {
	s := &script{t: t, cluster: cluster, ttl: time.Second, last: map[spec.LifeID]records.Report{}, tunnels: make(chan proto.Nodes_TunnelServer), ends: make(chan struct{})}
	s.up()
	t.Cleanup(s.down)
	return s
}

func (s *script) up() {
	s.lis, s.server = bufconn.Listen(64<<10), grpc.NewServer()
	proto.RegisterNodesServer(s.server, s)
	server, lis := s.server, s.lis
	go func() { _ = server.Serve(lis) }()
}

func (s *script) down() { s.server.Stop() }

func (s *script) dial(context.Context) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///script", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.lis.DialContext(ctx) }))
}

func (s *script) Join(context.Context, *proto.Hello) (*proto.Welcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &proto.Welcome{Cluster: s.cluster, Domain: "cluster.local", Cidr: "10.88.0.0/16"}, nil
}

func (s *script) Session(stream proto.Nodes_SessionServer) error {
	msg, err := stream.Recv()
	if err != nil {
		return err
	}
	out := make(chan *proto.ToNode, 100)
	s.mu.Lock()
	s.hellos = append(s.hellos, msg.GetHello())
	s.follow = msg.GetHello().GetFollow()
	facts := records.NodeFacts{}
	if err := json.Unmarshal(msg.GetHello().GetFactsJson(), &facts); err != nil {
		s.t.Errorf("facts: %v", err)
	}
	s.conditions = facts.Conditions
	out <- &proto.ToNode{Kind: &proto.ToNode_Welcome{Welcome: &proto.Welcome{
		Cluster: s.cluster, Session: int64(len(s.hellos)), TtlMillis: s.ttl.Milliseconds(), Domain: "cluster.local", Cidr: "10.88.0.0/16", Epoch: 1,
		Known: s.known, Held: s.held,
	}}}
	for _, m := range s.first {
		out <- m
	}
	s.out = out
	s.mu.Unlock()
	ctx := stream.Context()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case m := <-out:
				if stream.Send(m) != nil {
					return
				}
			}
		}
	}()
	for {
		msg, err := stream.Recv()
		if err != nil {
			return err
		}
		s.take(msg, out)
	}
}

func (s *script) take(msg *proto.FromNode, out chan *proto.ToNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := msg.GetPing(); p != nil && !s.mute {
		id := p.Id
		if s.strange {
			id = 0
		}
		pong := &proto.ToNode{Kind: &proto.ToNode_Pong{Pong: &proto.Pong{Id: id, Current: !s.behind, Known: s.known, Held: s.held}}}
		if s.lag == 0 {
			out <- pong
		} else {
			time.AfterFunc(s.lag, func() { out <- pong })
		}
	}
	if v := msg.GetVolumes(); v != nil {
		s.trash = append(s.trash, v)
	}
	if r := msg.GetResend(); r != nil {
		s.resends = append(s.resends, r)
	}
	if f := msg.GetFollow(); f != nil {
		s.follow = f
	}
	if c := msg.GetConditions(); c != nil {
		s.conditions = nil
		s.conditionsSaid++
		if err := json.Unmarshal(c.GetConditionsJson(), &s.conditions); err != nil {
			s.t.Errorf("conditions: %v", err)
		}
	}
	if msg.GetReports() == nil {
		return
	}
	told, err := wire.ToDocuments[records.Report](msg.GetReports().GetReportsJson())
	if err != nil {
		s.t.Errorf("reports: %v", err)
	}
	stored := &proto.Stored{}
	for _, r := range told {
		key := spec.LifeID{ID: r.ID, Token: r.Token}
		if had, ok := s.last[key]; ok && (r.Seq <= had.Seq && r.Seq != had.Seq || r.Phase.Rank() < had.Phase.Rank()) {
			s.t.Errorf("report goes back: %+v after %+v", r, had)
		}
		s.last[key] = r
		s.reports = append(s.reports, r)
		stored.Reports = append(stored.Reports, &proto.StoredReport{Id: wire.Identity(r.ID), Token: wire.Token(r.Token), Seq: r.Seq})
	}
	if !s.deaf {
		out <- &proto.ToNode{Kind: &proto.ToNode_Stored{Stored: stored}}
	}
}

func (s *script) Tunnel(stream proto.Nodes_TunnelServer) error {
	s.tunnels <- stream
	select {
	case <-s.ends:
	case <-stream.Context().Done():
	}
	return nil
}

// say sends a message to the present session; without one nobody hears it.
func (s *script) say(m *proto.ToNode) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out != nil {
		s.out <- m
	}
}

// always has messages sent after each welcome.
func (s *script) always(m ...*proto.ToNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = m
}

func (s *script) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func wanted(rev int64, lives ...records.Life) *proto.ToNode {
	docs, err := wire.Documents(lives)
	if err != nil {
		panic(err)
	}
	return &proto.ToNode{Kind: &proto.ToNode_Wanted{Wanted: &proto.Wanted{
		Sequence: wire.Sequence(spec.Sequence{Epoch: 1, Rev: rev}), Full: true, LivesJson: docs,
	}}}
}

func pictures(rev int64, full bool, ps ...records.Snapshot) *proto.ToNode {
	docs, err := wire.Documents(ps)
	if err != nil {
		panic(err)
	}
	return &proto.ToNode{Kind: &proto.ToNode_Pictures{Pictures: &proto.Pictures{
		Sequence: wire.Sequence(spec.Sequence{Epoch: 1, Rev: rev}), Full: full, PicturesJson: docs,
	}}}
}

func picture(rev int64, replicas int) records.Snapshot {
	return records.Snapshot{Sequence: spec.Sequence{Epoch: 1, Rev: rev}, Ref: ref, Replicas: replicas}
}
