package dispatch

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
)

// tunnelFrames bounds the frames that wait in one direction of a tunnel; beyond
// it the sender is held up.
const tunnelFrames = 4

// Tunnel is the answer of a node to one ask: frames both ways. One goroutine may
// send while another receives.
type Tunnel struct {
	in   chan *proto.Frame
	out  chan *proto.Frame
	fail error         // why in was closed; read after that
	gone chan struct{} // closed when the node has ended its side
	done chan struct{} // closed by Close
	left sync.Once     // closes gone
	once sync.Once     // closes done
	stop func() bool   // ends the binding to the asker's context; nil before bind
}

func newTunnel() *Tunnel {
	return &Tunnel{
		in: make(chan *proto.Frame, tunnelFrames), out: make(chan *proto.Frame, tunnelFrames),
		gone: make(chan struct{}), done: make(chan struct{}),
	}
}

// bind closes the tunnel when ctx ends.
func (t *Tunnel) bind(ctx context.Context) { t.stop = context.AfterFunc(ctx, t.end) }

// Close ends both directions; frames not yet sent are dropped. It may be called
// more than once.
func (t *Tunnel) Close() {
	if t.stop != nil {
		t.stop()
	}
	t.end()
}

func (t *Tunnel) nodeLeft() { t.left.Do(func() { close(t.gone) }) }

func (t *Tunnel) end() { t.once.Do(func() { close(t.done) }) }

// Send gives a frame to the node; it blocks while the node is slow. Codes:
// CANCELED the tunnel is closed, UNAVAILABLE the node is gone.
func (t *Tunnel) Send(f *proto.Frame) error {
	select {
	case <-t.done:
		return status.Error(codes.Canceled, "tunnel closed")
	case <-t.gone:
		return status.Error(codes.Unavailable, "connection to the node lost")
	case t.out <- f:
		return nil
	}
}

// Recv returns the next frame of the node, io.EOF after its last one. Codes:
// CANCELED the tunnel is closed; UNAVAILABLE the node is gone.
func (t *Tunnel) Recv() (*proto.Frame, error) {
	select {
	case f, ok := <-t.in:
		if ok {
			return f, nil
		}
		return nil, t.fail
	case <-t.done:
		return nil, status.Error(codes.Canceled, "tunnel closed")
	}
}

// Tunnel implements proto.NodesServer: it hands the stream to whoever asked, and
// serves it until they close it.
func (s *Server) Tunnel(stream proto.Nodes_TunnelServer) error {
	first, err := s.firstFrame(stream)
	if err != nil {
		return err
	}
	t := newTunnel()
	defer t.nodeLeft()
	if !s.broker.deliver(first.GetAsk(), t) {
		return status.Errorf(codes.NotFound, "no pending request %s", first.GetAsk())
	}
	if len(first.GetData()) > 0 || first.GetDone() || first.GetError() != "" {
		t.in <- first // it has room
	}
	if !s.spawn(func() { t.receive(stream, s.stopping) }) {
		t.fail = errStopping
		close(t.in)
		return errStopping
	}
	return t.serve(stream.Context(), stream, s.stopping)
}

// firstFrame waits for the frame that says which ask is answered, at most helloTime.
func (s *Server) firstFrame(stream proto.Nodes_TunnelServer) (*proto.Frame, error) {
	type received struct {
		frame *proto.Frame
		err   error
	}
	came := make(chan received, 1)
	if !s.spawn(func() { // ends with the stream, which ends when the handler returns
		frame, err := stream.Recv()
		came <- received{frame, err}
	}) {
		return nil, errStopping
	}
	timer := time.NewTimer(helloTime)
	defer timer.Stop()
	select {
	case r := <-came:
		return r.frame, r.err
	case <-timer.C:
		return nil, status.Errorf(codes.DeadlineExceeded, "no first frame within %s", helloTime)
	case <-s.stopping:
		return nil, errStopping
	}
}

// serve moves the asker's frames to the node until the stream or the tunnel ends.
func (t *Tunnel) serve(ctx context.Context, stream frames, stopping <-chan struct{}) error {
	for {
		select {
		case f := <-t.out:
			if err := stream.Send(f); err != nil {
				return err
			}
		case <-t.done:
			return nil
		case <-t.gone:
			return nil
		case <-stopping:
			return errStopping
		case <-ctx.Done():
			return nil
		}
	}
}

// dropUntilGone takes frames of the asker that the node hears no more, until what the node sent before its end was
// received, or the asker has gone.
func (t *Tunnel) dropUntilGone(stopping <-chan struct{}) {
	for {
		select {
		case <-t.out:
		case <-t.gone:
			return
		case <-t.done:
			return
		case <-stopping:
			return
		}
	}
}

// receive moves the node's frames to the asker until the stream or the tunnel ends. What
// another server said against it stays as it is.
func (t *Tunnel) receive(stream frames, stopping <-chan struct{}) {
	defer t.nodeLeft()
	defer close(t.in)
	for {
		f, err := stream.Recv()
		if err != nil {
			t.fail = err
			if _, far := stream.(relayFrames); !far && !errors.Is(err, io.EOF) {
				t.fail = status.Error(codes.Unavailable, "connection to the node lost")
			}
			return
		}
		select {
		case t.in <- f:
		case <-t.done:
			t.fail = status.Error(codes.Canceled, "tunnel closed")
			return
		case <-stopping:
			t.fail = errStopping
			return
		}
	}
}
