package dispatch

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// beside is another server of the rig's cluster, which reaches others by reach.
func (r *rig) beside(reach Reach) (s *Server, stop func()) {
	r.t.Helper()
	cfg := r.server.cfg
	cfg.Name, cfg.Reach = "s2", reach
	s, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	stop = func() { cancel(); wg.Wait() }
	r.t.Cleanup(stop)
	return s, stop
}

// peers serves the rig's server to others, and returns how they connect to it.
func (r *rig) peers() func() (*grpc.ClientConn, error) {
	g := grpc.NewServer()
	proto.RegisterPeersServer(g, r.server)
	lis := bufconn.Listen(1 << 20)
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.Serve(lis) })
	r.t.Cleanup(func() { g.Stop(); wg.Wait() })
	return func() (*grpc.ClientConn, error) {
		return grpc.NewClient("passthrough:///peer", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	}
}

// A node that another server holds is asked through that one, and answers as if it were here.
func TestANodeOfAnotherServerIsAskedThroughIt(t *testing.T) {
	r := newRig(t)
	r.server.cfg.Addresses = []string{"one:1", "two:2"}
	dial := r.peers()
	var asked []string
	var conn *grpc.ClientConn
	other, _ := r.beside(func(_ context.Context, addresses []string) (*grpc.ClientConn, error) {
		c, err := dial()
		asked, conn = addresses, c
		return c, err
	})
	n := r.connect(n1)
	n.welcome()
	node, asker := r.ask(t.Context(), other, n, &proto.Frame{})
	if !slices.Equal(asked, r.server.cfg.Addresses) {
		t.Errorf("it was reached at %q", asked)
	}
	for _, text := range []string{"to", "the", "node"} {
		if err := asker.Send(&proto.Frame{Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
		if f, err := node.Recv(); err != nil || string(f.GetData()) != text {
			t.Fatalf("the node got %v, %v; want %q", f, err, text)
		}
		if err := node.Send(&proto.Frame{Data: []byte("back")}); err != nil {
			t.Fatal(err)
		}
		if f, err := asker.Recv(); err != nil || string(f.GetData()) != "back" {
			t.Fatalf("the asker got %v, %v", f, err)
		}
	}
	if err := node.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := asker.Recv(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want the end", err)
	}
	asker.Close()
	r.until("the way to the other server is closed", func() bool { return conn.GetState() == connectivity.Shutdown })
}

// What the other server says against it is what the asker hears.
func TestWhatAnotherServerSaysAgainstAnAskIsHeard(t *testing.T) {
	r := newRig(t)
	dial := r.peers()
	r.Record(store.SessionKey("n7"), records.Session{Node: "n7", Server: "s1", At: "one:1"}) // s1 lost it just now
	r.server.broker.answer = 10 * time.Millisecond
	other, _ := r.beside(func(context.Context, []string) (*grpc.ClientConn, error) { return dial() })
	tunnel, err := other.Broker().Open(t.Context(), "n7", &proto.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	defer tunnel.Close()
	if _, err := tunnel.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "node n7 is silent") {
		t.Errorf("got %v", err)
	}
}

func TestANodeThatNoServerReachesIsNamed(t *testing.T) {
	far := records.Session{Node: "n7", Server: "s9", At: "one:1"}
	near := far
	near.Server = "s2"
	nowhere := far
	nowhere.At = ""
	refuse := func(context.Context, []string) (*grpc.ClientConn, error) { return nil, errors.New("no way") }
	for _, c := range []struct {
		name    string
		session *records.Session
		reach   Reach
		want    string
	}{
		{"nobody holds it", nil, refuse, "node n7 is silent"},
		{"this server held it, and it is gone", &near, refuse, "node n7 is silent"},
		{"this server reaches no other", &far, nil, "node n7 is connected to server s9, and these two servers do not reach each other"},
		{"the other is nowhere", &nowhere, refuse, "these two servers do not reach each other"},
		{"the other cannot be reached", &far, refuse, "node n7 is connected to server s9, which cannot be reached: no way"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newStill(t)
			if c.session != nil {
				r.Record(store.SessionKey("n7"), *c.session)
			}
			r.server.cfg.AnswerTime = 10 * time.Millisecond
			s, _ := r.beside(c.reach)
			if _, err := s.Broker().Open(t.Context(), "n7", &proto.Ask{}); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Who cannot ask another server leaves no way to it open.
func TestAnAskThatFailsOnItsWayLeavesNothingOpen(t *testing.T) {
	for name, c := range map[string]struct {
		stopped bool // the server that asks
		closed  bool // the connection
		want    codes.Code
	}{
		"the server stops":      {true, false, codes.Unavailable},
		"the connection is bad": {false, true, codes.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			dial := r.peers()
			var conn *grpc.ClientConn
			other, stop := r.beside(func(context.Context, []string) (*grpc.ClientConn, error) {
				var err error
				conn, err = dial()
				if c.closed {
					conn.Close()
				}
				return conn, err
			})
			r.Record(store.SessionKey("n7"), records.Session{Node: "n7", Server: "s1", At: "one:1"})
			if c.stopped {
				stop()
			}
			if _, err := other.Broker().Open(t.Context(), "n7", &proto.Ask{}); !strings.Contains(err.Error(), c.want.String()) {
				t.Errorf("got %v", err)
			}
			if conn.GetState() != connectivity.Shutdown {
				t.Errorf("the connection is %s", conn.GetState())
			}
		})
	}
}

func TestARelayBeginsWithANodeAndAnAsk(t *testing.T) {
	r := newRig(t)
	r.server.broker.answer = 10 * time.Millisecond // of one that is let through
	conn, err := r.peers()()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, start := range map[string]*proto.RelayStart{
		"nothing":       nil,
		"no node":       {Ask: &proto.Ask{}},
		"nothing asked": {Node: "n1"},
	} {
		stream, err := proto.NewPeersClient(conn).Relay(t.Context())
		if err == nil {
			err = stream.Send(&proto.RelayFrame{Kind: &proto.RelayFrame_Start{Start: start}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// An asker that has said all hears the answer to its end, and the node hears nothing but it.
func TestARelayWhoseAskerHasSaidAllGoesOn(t *testing.T) {
	r := newRig(t)
	conn, err := r.peers()()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n := r.connect(n1)
	n.welcome()
	asker, err := proto.NewPeersClient(conn).Relay(t.Context())
	for _, f := range []*proto.RelayFrame{
		{Kind: &proto.RelayFrame_Start{Start: &proto.RelayStart{Node: "n1", Ask: &proto.Ask{}}}},
		{Kind: &proto.RelayFrame_Frame{Frame: &proto.Frame{Data: []byte("all")}}},
	} {
		if err == nil {
			err = asker.Send(f)
		}
	}
	if err == nil {
		err = asker.CloseSend()
	}
	if err != nil {
		t.Fatal(err)
	}
	node := n.answer(&proto.Frame{})
	if f, err := node.Recv(); err != nil || string(f.GetData()) != "all" {
		t.Fatalf("the node got %v, %v", f, err)
	}
	for range 3 {
		if err := node.Send(&proto.Frame{Data: []byte("back")}); err != nil {
			t.Fatal(err)
		}
		if f, err := asker.Recv(); err != nil || string(f.GetData()) != "back" {
			t.Fatalf("the asker got %v, %v", f, err)
		}
	}
	if err := node.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := asker.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the asker got %v, want the end", err)
	}
	if f, err := node.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the node got %v, %v, want the end", f, err)
	}
}

// What a node says before its end comes through another server, all of it, also while the asker is still
// sending: the last bytes of a forwarded connection were lost so.
func TestWhatANodeSaysBeforeItsEndComesThroughAnotherServer(t *testing.T) {
	for range 10 {
		t.Run("", saysAllThroughAnother)
	}
}

func saysAllThroughAnother(t *testing.T) {
	const frames = 40
	r := newRig(t)
	r.server.cfg.Addresses = []string{"one:1"}
	dial := r.peers()
	other, _ := r.beside(func(context.Context, []string) (*grpc.ClientConn, error) { return dial() })
	n := r.connect(n1)
	n.welcome()
	node, asker := r.ask(t.Context(), other, n, &proto.Frame{})
	defer asker.Close()
	sent := make(chan error, 1)
	go func() {
		var err error
		for range frames {
			err = errors.Join(err, node.Send(&proto.Frame{Data: make([]byte, 10<<10)}))
		}
		sent <- errors.Join(err, node.CloseSend())
	}()
	for got := 0; ; got++ {
		_ = asker.Send(&proto.Frame{Data: []byte("taken")}) // nobody may be there to hear it
		_, err := asker.Recv()
		if errors.Is(err, io.EOF) && got == frames {
			break
		}
		if err != nil {
			t.Fatalf("after %d of %d frames: %v", got, frames, err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}
