package dispatch

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
)

// ask has server ask n1, and returns the node's end, which begins with first, and the asker's.
func (r *rig) ask(ctx context.Context, server *Server, n *node, first *proto.Frame) (proto.Nodes_TunnelClient, *Tunnel) {
	r.t.Helper()
	type result struct {
		t   *Tunnel
		err error
	}
	opened := make(chan result, 1)
	go func() {
		t, err := server.Broker().Open(ctx, "n1", &proto.Ask{Kind: &proto.Ask_Images{Images: &proto.ImagesAsk{}}})
		opened <- result{t, err}
	}()
	stream := n.answer(first)
	got := <-opened
	if got.err != nil {
		r.t.Fatal(got.err)
	}
	r.t.Cleanup(got.t.Close)
	return stream, got.t
}

// answer opens the tunnel of the next ask; it begins with first.
func (n *node) answer(first *proto.Frame) proto.Nodes_TunnelClient {
	n.r.t.Helper()
	first.Ask = n.next("ask", func(m *proto.ToNode) bool { return m.GetAsk() != nil }).GetAsk().GetId()
	stream, err := n.r.client.Tunnel(n.r.t.Context())
	if err == nil {
		err = stream.Send(first)
	}
	if err != nil {
		n.r.t.Fatal(err)
	}
	return stream
}

func TestFramesGoBothWaysAndEnd(t *testing.T) {
	r := newRig(t)
	n := r.connect(n1)
	n.welcome()
	node, asker := r.ask(t.Context(), r.server, n, &proto.Frame{})
	if err := asker.Send(&proto.Frame{Data: []byte("to the node")}); err != nil {
		t.Fatal(err)
	}
	if f, err := node.Recv(); err != nil || string(f.GetData()) != "to the node" {
		t.Fatalf("got %v, %v", f, err)
	}
	for range 3 {
		if err := node.Send(&proto.Frame{Data: []byte("back")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := node.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if f, err := asker.Recv(); err != nil || string(f.GetData()) != "back" {
			t.Fatalf("got %v, %v", f, err)
		}
	}
	if _, err := asker.Recv(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want the end", err)
	}
	r.until("the asker hears that nobody listens", func() bool {
		return status.Code(asker.Send(&proto.Frame{Data: []byte("x")})) == codes.Unavailable
	})
}

func TestAnAskerThatGoesAwayEndsTheNodesStream(t *testing.T) {
	r := newRig(t)
	n := r.connect(n1)
	n.welcome()
	ctx, cancel := context.WithCancel(t.Context())
	node, asker := r.ask(ctx, r.server, n, &proto.Frame{})
	cancel()
	if _, err := node.Recv(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want the end", err)
	}
	if _, err := asker.Recv(); status.Code(err) != codes.Canceled && status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v", err)
	}
}

func TestANodeThatGoesAwayIsUnavailable(t *testing.T) {
	r := newRig(t)
	n := r.connect(n1)
	n.welcome()
	ctx, cancel := context.WithCancel(t.Context())
	ask := make(chan string, 1)
	go func() { ask <- n.next("ask", func(m *proto.ToNode) bool { return m.GetAsk() != nil }).GetAsk().GetId() }()
	go func() {
		stream, err := r.client.Tunnel(ctx)
		if err == nil {
			_ = stream.Send(&proto.Frame{Ask: <-ask})
		}
	}()
	asker, err := r.server.Broker().Open(t.Context(), "n1", &proto.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	cancel()
	if _, err := asker.Recv(); status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
}

func TestAnAskNobodyWaitsForIsNotFound(t *testing.T) {
	r := newRig(t)
	stream, err := r.client.Tunnel(t.Context())
	if err == nil {
		err = stream.Send(&proto.Frame{Ask: "guessed"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.NotFound {
		t.Fatalf("got %v, want NOT_FOUND", err)
	}
	r.server.broker.answer = 10 * time.Millisecond
	if _, err := r.server.Broker().Open(t.Context(), "n1", &proto.Ask{}); status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE for a silent node", err)
	}
}

func TestAStoppingServerEndsTunnels(t *testing.T) {
	r := newRig(t)
	n := r.connect(n1)
	n.welcome()
	node, asker := r.ask(t.Context(), r.server, n, &proto.Frame{})
	r.stop()
	if _, err := node.Recv(); status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
	if _, err := asker.Recv(); err == nil {
		t.Fatal("the asker heard nothing")
	}
	<-r.done
}

func TestANodeThatComesInTimeIsAsked(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = r.server.Broker().Open(ctx, "n1", &proto.Ask{}) // nobody answers; the ask is what counts
	}()
	n := r.connect(n1)
	n.next("ask", func(m *proto.ToNode) bool { return m.GetAsk() != nil })
	cancel()
	<-over
}

// mute is a tunnel that says nothing until it is over.
type mute struct {
	proto.Nodes_TunnelServer
	ctx context.Context
}

func (m mute) Recv() (*proto.Frame, error) {
	<-m.ctx.Done()
	return nil, m.ctx.Err()
}

func TestATunnelThatSaysNothingIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &Server{stopping: make(chan struct{})}
		begun := time.Now()
		if err := s.Tunnel(mute{ctx: ctx}); status.Code(err) != codes.DeadlineExceeded || time.Since(begun) != helloTime {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}
		cancel()
		s.streams.Wait()
	})
}

// What a tunnel begins with reaches the asker, unless it only says which ask is answered.
func TestTheFirstFrameOfATunnelIsHeard(t *testing.T) {
	for name, c := range map[string]struct {
		first *proto.Frame
		heard bool
	}{
		"the ask alone": {&proto.Frame{}, false},
		"with data":     {&proto.Frame{Data: []byte("x")}, true},
		"with its end":  {&proto.Frame{Done: true}, true},
		"with an error": {&proto.Frame{Error: "no"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			n := r.connect(n1)
			n.welcome()
			node, asker := r.ask(t.Context(), r.server, n, c.first)
			if err := node.CloseSend(); err != nil {
				t.Fatal(err)
			}
			f, err := asker.Recv()
			if c.heard && (err != nil || string(f.GetData()) != string(c.first.Data) || f.GetDone() != c.first.Done || f.GetError() != c.first.Error) {
				t.Errorf("got %v, %v", f, err)
			}
			if !c.heard && !errors.Is(err, io.EOF) {
				t.Errorf("got %v, %v, want the end", f, err)
			}
		})
	}
}

// A tunnel that came too late has no asker; it ends for its node all the same.
func TestATunnelWithoutAnAskerIsClosed(t *testing.T) {
	tunnel := newTunnel()
	tunnel.Close()
	tunnel.Close()
	if _, err := tunnel.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	if err := tunnel.serve(t.Context(), mute{ctx: t.Context()}, nil); err != nil {
		t.Errorf("its node is told %v", err)
	}
}

// late is a tunnel that says its ask when the server has begun to stop.
type late struct {
	proto.Nodes_TunnelServer
	s *Server
}

func (l late) Recv() (*proto.Frame, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.stopped = true
	return &proto.Frame{Ask: "a"}, nil
}

// A tunnel that comes while the server stops ends for both sides.
func TestATunnelThatComesWhileTheServerStopsIsEnded(t *testing.T) {
	s := newStill(t).server
	answer := make(chan *Tunnel, 1)
	s.broker.waiting["a"] = waiter{"n1", answer}
	if err := s.Tunnel(late{s: s}); !errors.Is(err, errStopping) {
		t.Errorf("the node got %v", err)
	}
	if _, err := (<-answer).Recv(); !errors.Is(err, errStopping) {
		t.Errorf("the asker got %v", err)
	}
	if err := s.Tunnel(late{s: s}); !errors.Is(err, errStopping) {
		t.Errorf("the next node got %v", err)
	}
}
