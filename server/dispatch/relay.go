package dispatch

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
)

// Reach connects to another server of the cluster, at one of its addresses.
type Reach func(ctx context.Context, addresses []string) (*grpc.ClientConn, error)

// frames are frames both ways.
type frames interface {
	Send(*proto.Frame) error
	Recv() (*proto.Frame, error)
}

// relayFrames are frames to and from a node of another server.
type relayFrames struct{ proto.Peers_RelayClient }

// Send implements frames.
func (p relayFrames) Send(f *proto.Frame) error {
	return p.Peers_RelayClient.Send(&proto.RelayFrame{Kind: &proto.RelayFrame_Frame{Frame: f}})
}

// sessionElsewhere is the session of a node that another server holds; nil: none does.
func (s *Server) sessionElsewhere(node spec.NodeName) (other *records.Session) {
	s.cfg.Cache.Look(func(v cache.View) {
		if now := v.Session(node); now != nil && now.Server != s.cfg.Name {
			other = now
		}
	})
	return other
}

// relayTo opens the tunnel to a node of another server. What that server says against it
// comes from Recv.
func (s *Server) relayTo(ctx context.Context, to *records.Session, ask *proto.Ask) (*Tunnel, error) {
	if s.cfg.Reach == nil || to.At == "" {
		return nil, status.Errorf(codes.Unavailable, "node %s is connected to server %s, and these two servers do not reach each other: "+
			"start each with --listen, or ask that one", to.Node, to.Server)
	}
	dial, cancel := context.WithTimeout(ctx, s.cfg.AnswerTime)
	defer cancel()
	conn, err := s.cfg.Reach(dial, strings.Split(to.At, ","))
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "node %s is connected to server %s, which cannot be reached: %v", to.Node, to.Server, err)
	}
	asker := ctx
	ctx, end := context.WithCancel(ctx)
	stream, err := proto.NewPeersClient(conn).Relay(ctx)
	if err == nil {
		err = stream.Send(&proto.RelayFrame{Kind: &proto.RelayFrame_Start{Start: &proto.RelayStart{Node: string(to.Node), Ask: ask}}})
	}
	t, over := newTunnel(), errStopping
	switch {
	case err != nil:
		over = err
	case s.spawn(func() {
		defer conn.Close()
		defer end()
		_ = t.serve(ctx, relayFrames{stream}, s.stopping) // the asker hears of it by Recv
		t.dropUntilGone(s.stopping)
	}):
		t.bind(asker)
		if s.spawn(func() { t.receive(relayFrames{stream}, s.stopping) }) {
			return t, nil
		}
		t.Close()
		return nil, errStopping
	}
	end()
	return nil, errors.Join(over, conn.Close())
}

// Relay implements proto.PeersServer: it asks a node for another server.
func (s *Server) Relay(stream proto.Peers_RelayServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start.GetNode() == "" || start.GetAsk() == nil {
		return status.Error(codes.InvalidArgument, "first relay message must name node and request")
	}
	t, err := s.broker.open(stream.Context(), spec.NodeName(start.GetNode()), start.GetAsk(), nil)
	if err != nil {
		return err
	}
	defer t.Close()
	go func() { // ends with the stream, which ends when we return
		for {
			m, err := stream.Recv()
			if err != nil || t.Send(m.GetFrame()) != nil {
				return
			}
		}
	}()
	for {
		f, err := t.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(f); err != nil {
			return err
		}
	}
}
