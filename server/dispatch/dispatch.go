package dispatch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Config is what a Server needs.
type Config struct {
	Store store.Store
	// Cache mirrors Store; it must be running.
	Cache cache.Reader
	// Offer stores reports with what follows from them. nil: no report is.
	Offer Offer
	// Key opens the Secrets that lives name.
	Key *seal.Key
	// Name is this server, as shown to nodes and stored in sessions. Boot is that of its host; "": not known.
	Name string
	Boot spec.BootID
	// Domain is the cluster's DNS domain; CIDR the range of members' addresses.
	Domain string
	CIDR   string
	// ServiceCIDR is the range of services' addresses; "": they have none.
	ServiceCIDR string
	// Tunnel is the tunnel between hosts, one of records.TunnelKinds; "": nodes stay with what they were told before.
	Tunnel string
	// TTL is how long a session outlives its last renewal. At least 1s; zero: 15s.
	TTL time.Duration
	// Addresses are those at which other servers reach this one, and Reach how it reaches
	// them; nil: not at all.
	Addresses []string
	Reach     Reach
	// Known is what this server knows of the store by now, without nodes. nil: nothing, and
	// nodes are judged by epochs, revisions and the chain alone.
	Known func() records.Known
	// AnswerTime is how long Broker waits for a node. Zero: 10s.
	AnswerTime time.Duration
	// Trace tells how lives come to their nodes, and their reports back; nil: traces are off.
	Trace  *trace.Tracer
	Logger *slog.Logger
}

// DefaultTTL is the length of a node's session.
const DefaultTTL = 15 * time.Second

// storeTime bounds one call to the store.
const storeTime = 5 * time.Second

// Server is the nodes' API. New makes it; it serves once Run runs.
type Server struct {
	proto.UnimplementedNodesServer
	proto.UnimplementedPeersServer
	cfg       Config
	broker    *Broker
	snapshots *snapshotPublisher
	histories *historyDocs
	pings     *pinger
	reports   *reportWriter
	refusals  *refusals
	writes    *allowance

	stopping chan struct{}  // closed when Run's context ends
	streams  sync.WaitGroup // goroutines of streams; Run waits for them

	mu       sync.Mutex
	stopped  bool // no more goroutines are started
	sessions map[spec.NodeName]*session
}

// errStopping ends streams when the server stops.
var errStopping = status.Error(codes.Unavailable, "the server is stopping")

// New checks cfg and starts nothing.
func New(cfg Config) (*Server, error) {
	if cfg.Store == nil || cfg.Cache == nil || cfg.Key == nil || cfg.Logger == nil || cfg.Name == "" || cfg.Domain == "" {
		return nil, errors.New("make dispatch: store, cache, key, logger, name and domain are needed")
	}
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.AnswerTime == 0 {
		cfg.AnswerTime = DefaultAnswerTime
	}
	if cfg.Known == nil {
		cfg.Known = func() records.Known { return records.Known{} }
	}
	if cfg.TTL < time.Second {
		return nil, errors.New("make dispatch: a session TTL under 1s cannot be renewed in time")
	}
	s := &Server{
		cfg: cfg, broker: newBroker(cfg.AnswerTime, cfg.Cache), snapshots: newSnapshotPublisher(cfg.Cache, cfg.Domain),
		histories: newHistoryDocs(),
		pings:     newPinger(cfg.Store, cfg.TTL, cfg.Known), refusals: newRefusals(cfg.Logger), writes: newAllowance(),
		stopping: make(chan struct{}), sessions: map[spec.NodeName]*session{},
	}
	s.snapshots.kind = cfg.Tunnel
	s.reports = newReportWriter(&cfg, s.writes, s.refusals)
	s.broker.elsewhere, s.broker.relay = s.sessionElsewhere, s.relayTo
	return s, nil
}

// Broker asks nodes.
func (s *Server) Broker() *Broker { return s.broker }

// Sessions is the number of nodes connected to this server.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Run serves until ctx ends; then it ends all streams with UNAVAILABLE, leaves
// the session keys to their leases, and returns nil when all is over. The gRPC
// server must still be up, or have ended its streams. Call it once.
func (s *Server) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){s.snapshots.run, s.pings.run, s.reports.run} {
		loops.Go(func() { loop(ctx) })
	}
	<-ctx.Done()
	s.mu.Lock()
	s.stopped = true
	close(s.stopping)
	for _, se := range s.sessions {
		se.cancel(errStopping)
	}
	s.mu.Unlock()
	loops.Wait()
	s.streams.Wait()
	return nil
}

// spawn runs f in a goroutine that Run waits for; false: too late.
func (s *Server) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.streams.Go(f)
	}
	return !s.stopped
}

// Session implements proto.NodesServer.
func (s *Server) Session(stream proto.Nodes_SessionServer) error {
	in := newInbox(stream)
	if !s.spawn(in.run) {
		return errStopping
	}
	hello, err := in.hello(s.stopping)
	if err != nil {
		return err
	}
	se, welcome, err := s.join(stream.Context(), hello)
	if err != nil {
		return err
	}
	defer se.cancel(nil)
	s.attach(se)
	defer s.detach(se)
	s.cfg.Logger.Info("session started", "node", se.node)
	if err := stream.Send(&proto.ToNode{Kind: &proto.ToNode_Welcome{Welcome: welcome}}); err != nil {
		return err
	}
	in.attach(se)
	err = se.run(stream)
	s.cfg.Logger.Info("session ended", "node", se.node, "err", err)
	return err
}

// attach makes se the session of its node here, and ends the one before.
func (s *Server) attach(se *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.sessions[se.node]; old != nil {
		old.abort(codes.Aborted, "replaced by a newer session of this node")
	}
	s.sessions[se.node] = se
	s.broker.attach(se.node, se.out)
	if s.stopped {
		se.cancel(errStopping)
	}
}

// connected reports whether the node has a session with this server.
func (s *Server) connected(node spec.NodeName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[node] != nil
}

func (s *Server) detach(se *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[se.node] == se {
		delete(s.sessions, se.node)
	}
	s.broker.detach(se.node, se.out)
	s.pings.forget(se)
}

// storeError says to a node that the store did not answer; what was asked may be
// asked again.
func storeError(verb string, err error) error {
	return status.Errorf(codes.Unavailable, "%s: %v", verb, err)
}

// helloTime is how long a stream may stay silent before its hello.
const helloTime = 10 * time.Second

// inbox reads one node's stream in a goroutine of its own, so that a slow sender
// never holds up pings.
type inbox struct {
	stream  proto.Nodes_SessionServer
	first   chan *proto.FromNode
	session chan *session
}

func newInbox(stream proto.Nodes_SessionServer) *inbox {
	return &inbox{stream: stream, first: make(chan *proto.FromNode, 1), session: make(chan *session, 1)}
}

// run reads until the stream ends: the first message, then (once attached) the
// rest, each handed to the session at once. It ends soon after the handler returned.
func (i *inbox) run() {
	defer close(i.first)
	msg, err := i.stream.Recv()
	if err != nil {
		return
	}
	i.first <- msg
	var se *session
	select {
	case se = <-i.session:
	case <-i.stream.Context().Done():
		return
	}
	for {
		msg, err := i.stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			se.cancel(nil)
			return
		case err != nil:
			se.cancel(err)
			return
		}
		se.receive(msg)
	}
}

// hello waits for the first message.
func (i *inbox) hello(stopping <-chan struct{}) (*proto.Hello, error) {
	timer := time.NewTimer(helloTime)
	defer timer.Stop()
	select {
	case msg := <-i.first:
		if hello := msg.GetHello(); hello != nil {
			return hello, nil
		}
		return nil, status.Error(codes.InvalidArgument, "the first message of a session must be hello")
	case <-timer.C:
		return nil, status.Errorf(codes.DeadlineExceeded, "no hello within %s", helloTime)
	case <-stopping:
		return nil, errStopping
	case <-i.stream.Context().Done():
		return nil, status.FromContextError(i.stream.Context().Err()).Err()
	}
}

// attach lets the messages after hello through to se.
func (i *inbox) attach(se *session) { i.session <- se }
