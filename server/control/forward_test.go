package control

import (
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// forward opens a connection to a port of db-0.
func (r *rig) forward(port uint32) proto.Control_ForwardClient {
	r.t.Helper()
	s, err := r.api.Forward(r.ctx)
	if err == nil {
		err = s.Send(&proto.ForwardRequest{Start: &proto.ForwardStart{Member: "db-0", Port: port}})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// forwarding is a rig with db-0 on the node n1.
func forwarding(t *testing.T) *rig {
	r := newRig(t)
	r.mustApply(setYAML)
	r.live(0, true)
	r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
	return r
}

// TestFramesOfAConnectionArePassedBothWays: the end of the node's direction is not that of the call, which
// comes with the node's last frame.
func TestFramesOfAConnectionArePassedBothWays(t *testing.T) {
	r := forwarding(t)
	r.agent(func(ask *proto.Ask, tunnel proto.Nodes_TunnelClient) {
		f := ask.GetForward()
		if f.GetPort() != 5432 || f.GetMember().GetSet() != "db" {
			t.Errorf("got %v", ask)
		}
		for _, frame := range []*proto.Frame{{Ask: ask.GetId()}, {Channel: proto.ChannelOut, Data: []byte("hello")}, {Channel: proto.ChannelOut, Done: true}} {
			if err := tunnel.Send(frame); err != nil {
				t.Error(err)
			}
		}
		for {
			f, err := tunnel.Recv()
			if err != nil {
				t.Errorf("the tunnel ended: %v", err)
				return
			}
			if f.GetDone() {
				break
			}
		}
		_ = tunnel.Send(&proto.Frame{Channel: proto.ChannelControl, Done: true})
		for { // until it was read
			if _, err := tunnel.Recv(); err != nil {
				return
			}
		}
	})
	s := r.forward(5432)
	var got []*proto.Frame
	for {
		f, err := s.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f)
		if f.GetChannel() == proto.ChannelOut && f.GetDone() {
			for _, frame := range []*proto.Frame{{Data: []byte("more")}, {Done: true}} {
				if err := s.Send(&proto.ForwardRequest{Frame: frame}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if last := len(got) - 1; last < 2 || string(got[last-2].GetData()) != "hello" || !got[last-1].GetDone() || got[last].GetChannel() != proto.ChannelControl {
		t.Errorf("got %v", got)
	}
}

// TestWhyNothingIsForwardedIsSaid: as the node says it, which may be older than this.
func TestWhyNothingIsForwardedIsSaid(t *testing.T) {
	r := forwarding(t)
	r.agent(func(ask *proto.Ask, tunnel proto.Nodes_TunnelClient) {
		last := &proto.Frame{Ask: ask.GetId(), Channel: proto.ChannelControl, Done: true, Error: "this agent does not know the request; it may be older than the server"}
		if ask.GetForward().GetPort() != 0 {
			last.Error = "member db-0: nothing listens on port 1 of its loopback"
		}
		last.Code = int32(codes.Unknown)
		_ = tunnel.Send(last)
		for {
			if _, err := tunnel.Recv(); err != nil {
				return
			}
		}
	})
	_, err := r.forward(0).Recv()
	refused(t, err, codes.FailedPrecondition, "node n1: this agent does not know the request; it may be older than the server")
	_, err = r.forward(1).Recv()
	refused(t, err, codes.FailedPrecondition, "= member db-0: nothing listens on port 1")
	_, err = r.forward(70_000).Recv()
	refused(t, err, codes.InvalidArgument, "there is no port 70000")
	s, err := r.api.Forward(r.ctx)
	if err == nil {
		err = s.Send(&proto.ForwardRequest{Frame: &proto.Frame{}})
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Recv()
	refused(t, err, codes.InvalidArgument, "the first message must name the member")
}
