package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
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
	mute    bool // answers no ping
	deaf    bool // stores no report
	hellos  []*proto.Hello
	reports []spec.Report
	last    map[lifeKey]spec.Report
	first   []*proto.ToNode // sent after welcome to each session
	out     chan *proto.ToNode
	tunnels chan proto.Nodes_TunnelServer
	ends    chan struct{} // closed by the test to let tunnels go

	server *grpc.Server
	lis    *bufconn.Listener
}

func newScript(t *testing.T) *script {
	s := &script{t: t, cluster: cluster, last: map[lifeKey]spec.Report{}, tunnels: make(chan proto.Nodes_TunnelServer), ends: make(chan struct{})}
	s.up()
	t.Cleanup(s.down)
	return s
}

func (s *script) up() {
	s.lis, s.server = bufconn.Listen(1<<20), grpc.NewServer()
	proto.RegisterNodesServer(s.server, s)
	server, lis := s.server, s.lis
	go func() { _ = server.Serve(lis) }()
}

func (s *script) down() { s.server.Stop() }

func (s *script) dial(context.Context) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///script", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.lis.DialContext(ctx) }))
}

func (s *script) Session(stream proto.Nodes_SessionServer) error {
	msg, err := stream.Recv()
	if err != nil {
		return err
	}
	out := make(chan *proto.ToNode, 100)
	s.mu.Lock()
	s.hellos = append(s.hellos, msg.GetHello())
	out <- &proto.ToNode{Kind: &proto.ToNode_Welcome{Welcome: &proto.Welcome{
		Cluster: s.cluster, Session: int64(len(s.hellos)), TtlMillis: 1000, Domain: "cluster.local", Epoch: 1,
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
		out <- &proto.ToNode{Kind: &proto.ToNode_Pong{Pong: &proto.Pong{Id: p.Id}}}
	}
	if msg.GetReports() == nil {
		return
	}
	told, err := wire.ToDocuments[spec.Report](msg.GetReports().GetReportsJson())
	if err != nil {
		s.t.Errorf("reports: %v", err)
	}
	stored := &proto.Stored{}
	for _, r := range told {
		key := lifeKey{r.ID, r.Token}
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

// say sends a message to the present session.
func (s *script) say(m *proto.ToNode) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out <- m
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

func wanted(rev int64, lives ...spec.Life) *proto.ToNode {
	docs, err := wire.Documents(lives)
	if err != nil {
		panic(err)
	}
	return &proto.ToNode{Kind: &proto.ToNode_Wanted{Wanted: &proto.Wanted{
		Sequence: wire.Sequence(spec.Sequence{Epoch: 1, Rev: rev}), Full: true, LivesJson: docs,
	}}}
}

func pictures(rev int64, full bool, ps ...spec.Picture) *proto.ToNode {
	docs, err := wire.Documents(ps)
	if err != nil {
		panic(err)
	}
	return &proto.ToNode{Kind: &proto.ToNode_Pictures{Pictures: &proto.Pictures{
		Sequence: wire.Sequence(spec.Sequence{Epoch: 1, Rev: rev}), Full: full, PicturesJson: docs,
	}}}
}

func picture(rev int64, replicas int) spec.Picture {
	return spec.Picture{Sequence: spec.Sequence{Epoch: 1, Rev: rev}, Ref: ref, Replicas: replicas}
}

// node is a host whose agent can be killed and started again.
type node struct {
	t      *testing.T
	host   *fakert.Host
	script *script
	root   string
	boot   spec.BootID
	begun  time.Time
	dns    []spec.Picture // as last handed over
	mu     sync.Mutex

	home   *Home
	cancel context.CancelFunc
	done   chan error
}

func newNode(t *testing.T) *node {
	n := &node{t: t, host: fakert.New(), script: newScript(t), root: filepath.Join(t.TempDir(), "root"), boot: "b1", begun: time.Now()}
	t.Cleanup(n.kill)
	return n
}

func (n *node) run() {
	n.t.Helper()
	home, err := Open(n.root, "n1")
	must(n.t, err)
	must(n.t, home.Join(n.t.Context(), n.script.dial, n.boot, spec.NodeFacts{}, slog.New(slog.DiscardHandler)))
	a, err := New(Config{
		Home: home, RunDir: filepath.Join(n.root, "run", string(n.boot)), Dial: n.script.dial,
		Runtime: n.host, Network: n.host, Volumes: n.host, Boot: n.boot, Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Duration { return time.Since(n.begun) },
		Pictures: func(ps []spec.Picture) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.dns = ps
		},
	})
	must(n.t, err)
	ctx, cancel := context.WithCancel(n.t.Context())
	n.home, n.cancel, n.done = home, cancel, make(chan error, 1)
	go func() { n.done <- a.Run(ctx) }()
}

// kill ends the agent, and nothing else on the host.
func (n *node) kill() {
	if n.cancel == nil {
		return
	}
	n.cancel()
	if err := <-n.done; err != nil {
		n.t.Errorf("agent: %v", err)
	}
	must(n.t, n.home.Close())
	n.cancel = nil
}

func (n *node) life(number int64, goal spec.Goal) spec.Life {
	l := spec.Life{
		Member: spec.Member{
			ID: db0, Token: tok(number), Goal: goal, Reason: spec.ReasonCreate, Revision: "r1",
			Node: "n1", NodeUID: n.home.UID(), Boot: n.boot, Address: netip.MustParseAddr("10.88.0.2"), GraceSeconds: 5,
		},
		Template: spec.Template{Spec: spec.MemberSpec{Containers: []spec.Container{{Name: "db", Image: "img:1"}}}},
		Service:  "db", Domain: "cluster.local",
	}
	return l
}

// report is the last one that the server has of a life.
func (n *node) report(token spec.Token) spec.Report {
	synctest.Wait()
	n.script.mu.Lock()
	defer n.script.mu.Unlock()
	return n.script.last[lifeKey{db0, token}]
}

func (n *node) want(what string, token spec.Token, ok func(spec.Report) bool) {
	n.t.Helper()
	time.Sleep(2 * time.Second) // of the bubble: every delay of a report is over
	if r := n.report(token); !ok(r) {
		n.t.Fatalf("want %s; the server's last report of %s is %+v", what, token, r)
	}
}

func (n *node) wantReady(token spec.Token) {
	n.t.Helper()
	n.want("ready", token, func(r spec.Report) bool { return r.Ready })
}

func (n *node) wantStopped(token spec.Token) {
	n.t.Helper()
	n.want("stopped", token, func(r spec.Report) bool { return r.Phase == spec.PhaseStopped })
}

func (n *node) wantStarts(token spec.Token, want int) {
	n.t.Helper()
	synctest.Wait()
	if got := n.host.StartsOf(cid, token); got != want {
		n.t.Fatalf("token %s was started %d times, want %d", token, got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func decode[T any](t *testing.T, b []byte) T {
	t.Helper()
	var v T
	must(t, json.Unmarshal(b, &v))
	return v
}
