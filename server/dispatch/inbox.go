package dispatch

import (
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
)

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
