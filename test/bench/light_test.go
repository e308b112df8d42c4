package bench

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// lightNodes tells this program to be that many light nodes of the server at a socket: "N SOCKET".
const lightNodes = "STEAD_LIGHT_NODES"

func TestMain(m *testing.M) {
	if text := os.Getenv(lightNodes); text != "" {
		if err := runLights(text); err != nil {
			fmt.Fprintln(os.Stderr, "light nodes:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lights are nodes in a process of their own, so that what this one uses is the server's share.
// Each speaks the protocol of a session, and says of each life at once that it is ready or
// that it has stopped.
type lights struct {
	b     *testing.B
	ask   io.WriteCloser
	reply *bufio.Reader
}

// startLights starts n nodes, and returns when all have a session. They end with the benchmark.
func startLights(b *testing.B, n int, socket string) *lights {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", lightNodes, n, socket))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() { must(b, errors.Join(in.Close(), cmd.Wait())) })
	return &lights{b: b, ask: in, reply: bufio.NewReader(out)}
}

// received is how many bytes the server has sent them so far.
func (l *lights) received() int64 {
	l.b.Helper()
	_, err := io.WriteString(l.ask, "\n")
	must(l.b, err)
	line, err := l.reply.ReadString('\n')
	must(l.b, err)
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	must(l.b, err)
	return n
}

// runLights is the process of the nodes: it answers each line of its input with the number of
// bytes received, and ends when that is closed.
func runLights(text string) error {
	var n int
	var socket string
	if _, err := fmt.Sscan(text, &n, &socket); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	var received atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		node := &light{name: fmt.Sprintf("n%04d", i), received: &received}
		wg.Go(func() {
			if err := node.run(ctx, socket); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", node.name, err))
			}
		})
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && ctx.Err() == nil {
		fmt.Println(received.Load())
	}
	cause := context.Cause(ctx)
	cancel(nil)
	wg.Wait()
	return cmp.Or(cause, lines.Err())
}

// light is one such node.
type light struct {
	name     string
	received *atomic.Int64
	session  spec.SessionID
}

func (l *light) run(ctx context.Context, socket string) error {
	conn, err := grpc.NewClient("passthrough:///"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
			return &counted{c, l.received}, err
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(proto.MaxMessageBytes)))
	if err != nil {
		return err
	}
	defer conn.Close()
	facts, err := json.Marshal(records.NodeFacts{Name: spec.NodeName(l.name), CPUMillis: 1 << 40, MemoryBytes: 1 << 50})
	if err != nil {
		return err
	}
	hello := &proto.Hello{Node: l.name, Uid: "u-" + l.name, Boot: "b1", FactsJson: facts, Inventory: &proto.Inventory{}}
	nodes := proto.NewNodesClient(conn)
	welcome, err := nodes.Join(ctx, hello)
	if err != nil {
		return err
	}
	hello.Cluster = welcome.GetCluster()
	s, err := nodes.Session(ctx)
	if err != nil {
		return err
	}
	if err := s.Send(&proto.FromNode{Kind: &proto.FromNode_Hello{Hello: hello}}); err != nil {
		return err
	}
	m, err := s.Recv()
	if err != nil {
		return err
	}
	l.session = spec.SessionID(m.GetWelcome().GetSession())
	return l.converse(ctx, s, time.Duration(m.GetWelcome().GetTtlMillis())*time.Millisecond)
}

// converse answers orders, and pings.
func (l *light) converse(ctx context.Context, s grpc.BidiStreamingClient[proto.FromNode, proto.ToNode], ttl time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	reports := make(chan *proto.FromNode, 1000)
	go func() {
		for {
			m, err := s.Recv()
			if err != nil {
				cancel(err)
				return
			}
			if w := m.GetWanted(); w != nil && len(w.GetLivesJson()) > 0 {
				answer, err := l.obey(w.GetLivesJson())
				if err != nil {
					cancel(err)
					return
				}
				reports <- answer
			}
		}
	}()
	pings := time.NewTicker(ttl / 3)
	defer pings.Stop()
	for n := int64(1); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-reports:
			if err := s.Send(m); err != nil {
				return err
			}
		case <-pings.C:
			if err := s.Send(&proto.FromNode{Kind: &proto.FromNode_Ping{Ping: &proto.Ping{Id: n}}}); err != nil {
				return err
			}
			n++
		}
	}
}

// obey does what lives ask for, in no time, and returns the report of all.
func (l *light) obey(docs [][]byte) (*proto.FromNode, error) {
	lives, err := wire.ToDocuments[records.Life](docs)
	if err != nil {
		return nil, err
	}
	reports := make([]records.Report, len(lives))
	for i := range lives {
		m := &lives[i].Member
		r := records.Report{
			ID: m.ID, Token: m.Token, Node: spec.NodeName(l.name), Session: l.session, Seq: 1,
			Phase: records.PhaseRunning, Ready: true, ReadyOnce: true, At: time.Now(),
		}
		if m.Goal == records.GoalStop {
			r.Seq, r.Phase, r.Ready = 2, records.PhaseStopped, false
		}
		reports[i] = r
	}
	out, err := wire.Documents(reports)
	return &proto.FromNode{Kind: &proto.FromNode_Reports{Reports: &proto.Reports{ReportsJson: out}}}, err
}

// counted adds what is read to a sum.
type counted struct {
	net.Conn
	sum *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.sum.Add(int64(n))
	return n, err
}
