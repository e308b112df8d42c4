package control

import (
	"errors"
	"io"
	"math"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
)

// Forward implements proto.ControlServer. It passes frames on both ways; that the person goes
// away ends the tunnel, and so the connection.
func (s nodes) Forward(stream proto.Control_ForwardServer) error {
	first, err := stream.Recv()
	if err != nil || first.GetStart() == nil {
		return invalid("the first message must name the member")
	}
	r := first.GetStart()
	if r.GetPort() > math.MaxUint16 {
		return invalid("there is no port %d", r.GetPort())
	}
	id, node, _, err := s.container(r.GetNamespace(), r.GetMember(), "")
	if err != nil {
		return err
	}
	t, err := s.cfg.Nodes.Open(stream.Context(), node, &proto.Ask{Kind: &proto.Ask_Forward{Forward: &proto.ForwardAsk{
		Member: wire.Identity(id), Port: r.GetPort(),
	}}})
	if err != nil {
		return err
	}
	defer t.Close()
	if err := stream.SendHeader(nil); err != nil { // the node has answered
		return err
	}
	go passInput(func() (*proto.Frame, error) { // ends with the stream, which ends when we return
		m, err := stream.Recv()
		return m.GetFrame(), err
	}, t)
	for {
		f, err := receive(t)
		switch {
		case errors.Is(err, io.EOF):
			return unavailable("the connection to node %s was lost", node)
		case status.Code(err) == codes.Unknown && r.GetPort() == 0:
			return precondition("node %s: %s", node, status.Convert(err).Message()) // as of an older agent
		case status.Code(err) == codes.Unknown:
			return precondition("%s", status.Convert(err).Message())
		case err != nil:
			return err
		}
		f.Ask = "" // a name between server and node
		if err := stream.Send(f); err != nil || f.GetDone() && f.GetChannel() == proto.ChannelControl {
			return err
		}
	}
}
