package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
)

// ask has the node run a command, and returns the server's end of its tunnel.
func (n *node) ask(e *proto.ExecAsk) proto.Nodes_TunnelServer {
	n.t.Helper()
	e.Member, e.Container = wire.Identity(db0), "db"
	n.script.say(&proto.ToNode{Kind: &proto.ToNode_Ask{Ask: &proto.Ask{Id: "e", Kind: &proto.Ask_Exec{Exec: e}}}})
	tunnel := <-n.script.tunnels
	if f, err := tunnel.Recv(); err != nil || f.GetAsk() != "e" {
		n.t.Fatalf("first frame: got %v, %v", f, err)
	}
	return tunnel
}

func TestACommandGetsInputAndSizesAndItsCodeIsTold(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		n.host.OnExec(func(_ context.Context, _ runtime.ContainerID, e runtime.Exec) (int, error) {
			fmt.Fprintln(e.Stdout, e.Command, e.Terminal.Size, <-e.Terminal.Resize)
			for line := bufio.NewScanner(e.Stdin); line.Scan(); {
				fmt.Fprintln(e.Stderr, line.Text())
			}
			return 7, nil
		})
		tunnel := n.ask(&proto.ExecAsk{Command: []string{"a", "b"}, Stdin: true, Terminal: &proto.Size{Columns: 80, Rows: 24}})
		must(t, tunnel.Send(&proto.Frame{Channel: proto.ChannelControl, Size: &proto.Size{Columns: 1 << 20, Rows: 30}}))
		var out, errs string
		acks := 0
		next := func() *proto.Frame {
			f, err := tunnel.Recv()
			must(t, err)
			switch f.GetChannel() {
			case proto.ChannelIn:
				acks++
			case proto.ChannelOut:
				out += string(f.GetData())
			case proto.ChannelErr:
				errs += string(f.GetData())
			}
			return f
		}
		for _, text := range []string{"one\nt", "wo\n"} {
			must(t, tunnel.Send(&proto.Frame{Channel: proto.ChannelIn, Data: []byte(text)}))
			for had := acks; acks == had; {
				next()
			}
		}
		must(t, tunnel.Send(&proto.Frame{Channel: proto.ChannelIn, Done: true}))
		f := next()
		for ; !f.GetDone(); f = next() {
		}
		if f.GetExitCode() != 7 || f.GetError() != "" || out != "[a b] {80 24} {65535 30}\n" || errs != "one\ntwo\n" {
			t.Errorf("got %v, output %q, errors %q", f, out, errs)
		}
	})
}

func TestACommandThatReadsNothingEnds(t *testing.T) {
	for name, end := range map[string]func(n *node, tunnel proto.Nodes_TunnelServer){
		"when its asker goes away": func(n *node, _ proto.Nodes_TunnelServer) { close(n.script.ends) },
		"when its asker sends more than it may": func(n *node, tunnel proto.Nodes_TunnelServer) {
			must(n.t, tunnel.Send(&proto.Frame{Channel: proto.ChannelIn, Data: []byte("y")}))
		},
		"when its asker sends what is no input": func(n *node, tunnel proto.Nodes_TunnelServer) {
			must(n.t, tunnel.Send(&proto.Frame{Channel: proto.ChannelOut, Data: []byte("y")}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			box(t, func(t *testing.T, n *node) {
				n.script.say(wanted(10, n.life(5, records.GoalRun)))
				n.wantReady(tok(5))
				ended := make(chan error, 1)
				n.host.OnExec(func(ctx context.Context, _ runtime.ContainerID, e runtime.Exec) (int, error) {
					fmt.Fprint(e.Stdout, "runs")
					<-ctx.Done()
					_, err := io.ReadAll(e.Stdin)
					ended <- err
					return 0, ctx.Err()
				})
				tunnel := n.ask(&proto.ExecAsk{Command: []string{"a"}, Stdin: true})
				if f, err := tunnel.Recv(); err != nil || string(f.GetData()) != "runs" {
					t.Fatalf("got %v, %v", f, err)
				}
				must(t, tunnel.Send(&proto.Frame{Channel: proto.ChannelIn, Data: []byte("x")}))
				end(n, tunnel)
				<-ended
			})
		})
	}
}

func TestACommandInWhatDoesNotRunIsRefused(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		tunnel := n.ask(&proto.ExecAsk{Command: []string{"a"}})
		f, err := tunnel.Recv()
		if err != nil || !f.GetDone() || codes.Code(f.GetCode()) != codes.FailedPrecondition || f.GetError() == "" {
			t.Errorf("got %v, %v", f, err)
		}
	})
}

func TestNothingIsSentAfterTheLastFrame(t *testing.T) {
	box(t, func(t *testing.T, n *node) {
		n.script.say(wanted(10, n.life(5, records.GoalRun)))
		n.wantReady(tok(5))
		late := make(chan io.Reader, 1)
		n.host.OnExec(func(_ context.Context, _ runtime.ContainerID, e runtime.Exec) (int, error) {
			late <- io.TeeReader(e.Stdin, e.Stdout)
			return 6, nil
		})
		tunnel := n.ask(&proto.ExecAsk{Command: []string{"a"}, Stdin: true})
		stdin := <-late
		synctest.Wait() // the last frame is sent
		must(t, tunnel.Send(&proto.Frame{Channel: proto.ChannelIn, Data: []byte("x")}))
		synctest.Wait()
		for range 20 { // as a pipe that was being filled when the command ended
			if _, err := stdin.Read(make([]byte, 8)); err != nil {
				break
			}
		}
		if f, err := tunnel.Recv(); err != nil || !f.GetDone() || f.GetExitCode() != 6 {
			t.Errorf("got %v, %v", f, err)
		}
	})
}
