package main

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/internal/forward"
	"github.com/stead-project/stead/proto"
)

// forwardCall is the call of one connection.
type forwardCall struct {
	grpc.BidiStreamingClient[proto.ForwardRequest, proto.Frame]
	mu sync.Mutex
}

// open makes the call of a connection, and returns when its node has received it.
func (f *forwarder) open(ctx context.Context, port uint16) (*forwardCall, error) {
	f.opening <- struct{}{}
	defer func() { <-f.opening }()
	call, err := f.start(ctx, port)
	if err == nil {
		_, err = call.Header()
	}
	return call, err
}

// start makes the call of a connection to a port; 0: that only asks.
func (f *forwarder) start(ctx context.Context, port uint16) (*forwardCall, error) {
	stream, err := f.control.Forward(ctx)
	if err == nil {
		err = stream.Send(&proto.ForwardRequest{Start: &proto.ForwardStart{Namespace: f.namespace, Member: f.member, Port: uint32(port)}})
	}
	if errors.Is(err, io.EOF) {
		err = nil // receive has the reason
	}
	return &forwardCall{BidiStreamingClient: stream}, err
}

func (c *forwardCall) send(frame *proto.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.Send(&proto.ForwardRequest{Frame: frame}); err != nil && !errors.Is(err, io.EOF) { // receive has the reason
		return err
	}
	return nil
}

// receive gives link what comes, until the node's last word; end gets its error.
func (c *forwardCall) receive(link *forward.Link, end context.CancelCauseFunc) {
	for {
		f, err := c.Recv()
		switch {
		case err != nil:
			end(err)
			return
		case f.GetChannel() == proto.ChannelControl && f.GetDone():
			return
		}
		if err := link.Take(f); err != nil {
			end(err)
			return
		}
	}
}

// ready fails unless connections to the member can be made.
func (f *forwarder) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	call, err := f.start(ctx, 0)
	if err == nil {
		_, err = call.Recv()
	}
	if status.Code(err) == codes.Unimplemented {
		return errors.New("the server is older than this program, and cannot forward ports")
	}
	return err
}
